// What a reader can do with a figure: cite it, report that it is wrong.
import { useState } from "preact/hooks";
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatFigure, formatUnit } from "./format";
import type { StartData } from "./load";
import { join } from "./parts";

interface Props {
  data: Dataset;
  row: number;
  id: string;
  name: string;
  start: StartData;
}

export function Actions(props: Props) {
  const [citing, setCiting] = useState(false);
  return (
    <>
      <p class="actions">
        <button aria-expanded={citing} onClick={() => setCiting(!citing)}>
          Cite
        </button>
        <a href={formatReport(props)} rel="noreferrer noopener" target="_blank">
          Report a wrong figure
        </a>
      </p>
      {citing && <Citation id={props.id} />}
    </>
  );
}

/** How to cite a result, in the words that `ipu-results cite` prints. */
function Citation({ id }: { id: string }) {
  return (
    <WithData name="citations" loading="Loading the citation">
      {({ dataset, results }) => {
        const [text = "", entry = ""] = results[id] ?? [];
        return (
          <>
            <ToCopy label="Footnote" text={text} />
            <ToCopy label="BibTeX" text={`${dataset}\n\n${entry}`} />
            <small>
              <code>ipu-results cite {id}</code> also prints Markdown and CSL-JSON.
            </small>
          </>
        );
      }}
    </WithData>
  );
}

/** A text that is selected as a whole, ready to copy. */
function ToCopy({ label, text }: { label: string; text: string }) {
  return (
    <label>
      {label}
      <textarea readOnly rows={7} value={text} onFocus={(event) => event.currentTarget.select()} />
    </label>
  );
}

function describe({ data, row, name }: Props): string {
  const unit = formatUnit(name, data.getText(row, "item"));
  const columns = ["model", "variant", "task", "platform", "framework", "sdk_version"];
  const details = columns.map(data.readRow(row));
  const figure = `${data.isEmulated(row, name) ? "emulated: " : ""}${formatFigure(data.getValue(row, name))} ${unit}`;
  return `${figure.trim()} (${name}); ${join(details)}`;
}

function formatReport(props: Props): string {
  const { data, row, id, name, start } = props;
  const [document, table, number] = ["document_id", "table_name", "row_number"].map(data.readRow(row));
  const body = [
    `Result ${id}, column ${name}: ${describe(props)}`,
    `Document ${document}, table ${table}, row ${number}`,
    `Build ${start.build.build_id}`,
    "",
    "What is wrong, and where you can see it:",
    "",
  ].join("\n");
  return `${start.repository}/issues/new?${new URLSearchParams({ title: `Wrong figure: ${id}.${name}`, body })}`;
}
