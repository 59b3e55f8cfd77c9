// How to cite results, in four formats, ready to copy.
import { useState } from "preact/hooks";
import { type Citations, type Format, formatCitation, FORMATS } from "./citation";
import { Copied } from "./copied";
import { WithData } from "./data";
import { formatError } from "./format";

export function Cite({ ids }: { ids: string[] }) {
  return (
    <WithData name="citations" loading="Loading the citations">
      {(data) => <Formats data={data} ids={ids} />}
    </WithData>
  );
}

function Formats({ data, ids }: { data: Citations; ids: string[] }) {
  const [format, setFormat] = useState<Format>("bibtex");
  const [text, problem] = tryFormat(data, ids, format);
  return (
    <div class="cite">
      <p class="actions" role="group" aria-label="Format of the citation">
        {Object.entries(FORMATS).map(([name, title]) => (
          <button key={name} type="button" aria-pressed={name === format} onClick={() => setFormat(name as Format)}>
            {title}
          </button>
        ))}
      </p>
      {problem ? <p role="alert">{problem}.</p> : <Copied key={format + text.length} label={FORMATS[format]} text={text} />}
      <p>
        <small>
          As <code>ipu-results cite</code> prints it, for {data.dataset.text}.
        </small>
      </p>
    </div>
  );
}

function tryFormat(data: Citations, ids: string[], format: Format): [string, string] {
  try {
    return [formatCitation(data, ids, format), ""];
  } catch (error) {
    return ["", formatError(error)];
  }
}
