// The certificate of a figure, as a release has it, and the check that its source has the figure.
import { useRef, useState } from "preact/hooks";
import { follow, readSource } from "../../pipeline/ipu_results/release/checker.mjs";
import type { Dataset } from "./dataset";
import { getText, type Row } from "./frame";

const COMPUTED = ["derived", "run"]; // kinds of documents whose figures have 12 digits
const DIGITS = 12;

interface Props {
  data: Dataset;
  row: number;
  id: string;
  cell: Row;
  document: Row | undefined;
}

export function Certificate({ data, row, id, cell, document }: Props) {
  const input = useRef<HTMLInputElement>(null);
  const [verdict, setVerdict] = useState("");
  if (!document || typeof cell["value"] !== "number") return null;
  const line = { ...describeSource(id, cell, document), ...describeFigure(data, row, id, cell) };
  const check = async (file: File | undefined) => {
    if (file) setVerdict(await judge(line, file));
  };
  return (
    <details class="certificate">
      <summary>Certificate of this figure</summary>
      <pre>{JSON.stringify(line)}</pre>
      <p>
        <button onClick={() => input.current?.click()}>Check it</button> with the file <code>raw/{line.file}</code> of the
        repository. The file stays in this browser.
      </p>
      <input
        ref={input}
        type="file"
        hidden
        aria-label={`The file raw/${line.file}`}
        onChange={(event) => check(event.currentTarget.files?.[0])}
      />
      <output>{verdict}</output>
    </details>
  );
}

type Line = ReturnType<typeof describeSource> & ReturnType<typeof describeFigure>;

/** Where the figure stands in its source, as docs/reference/certificates.md names it. */
function describeSource(id: string, cell: Row, document: Row) {
  return {
    kind: "printed",
    id: `${id} ${cell["cell_number"]}`,
    column: getText(cell, "column_name"),
    file: getText(document, "file"),
    sha256: getText(document, "sha256"),
    locator: getText(cell, "locator"),
    raw: getText(cell, "raw_text"),
    value: cell["value"],
    unit: cell["unit"] ?? null,
    factor: cell["factor"] ?? null,
    ...(COMPUTED.includes(getText(document, "kind")) && { digits: DIGITS }),
  };
}

/** Which cell of a release states the figure; nothing where none does. */
function describeFigure(data: Dataset, row: number, id: string, cell: Row) {
  if (typeof cell["factor"] !== "number") return {};
  const column = getText(cell, "column_name");
  const isFew = (data.figures.get(row) ?? []).some((each) => each.metric === column);
  return {
    stated: isFew ? "figures.csv" : "results.csv",
    key: isFew ? { result_id: id, metric: column } : { result_id: id },
    in: isFew ? "value" : column,
    figure: data.getValue(row, column),
  };
}

/** Says whether a file is the source, and has the figure at its place. */
async function judge(line: Line, file: File): Promise<string> {
  if (!globalThis.crypto?.subtle) return "Not checked: a browser does so only for pages of https and of this computer.";
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    follow(line, await readSource(line.file, line.sha256, bytes));
    return "Yes: the file has the bytes that the certificate names, and at its place the figure.";
  } catch (error) {
    return `No: ${error instanceof Error ? error.message : error}.`;
  }
}
