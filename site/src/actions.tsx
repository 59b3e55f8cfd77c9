// What a reader can do with a figure: copy its link, cite it, report that it is wrong.
import { useState } from "preact/hooks";
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatFigure, formatUnit } from "./format";
import { getRows, getText, type Row } from "./frame";
import type { StartData } from "./load";

interface Props {
  data: Dataset;
  row: number;
  id: string;
  name: string;
  start: StartData;
}

export function Actions(props: Props) {
  const [shown, setShown] = useState<"link" | "cite" | null>(null);
  const toggle = (what: "link" | "cite") => setShown(shown === what ? null : what);
  return (
    <>
      <p class="actions">
        <button type="button" aria-expanded={shown === "link"} onClick={() => toggle("link")}>
          Copy link
        </button>
        <button type="button" aria-expanded={shown === "cite"} onClick={() => toggle("cite")}>
          Cite
        </button>
        <a href={formatReport(props)} rel="noreferrer noopener" target="_blank">
          Report a wrong figure
        </a>
      </p>
      {shown === "link" && <Copied label="Link" text={location.href} />}
      {shown === "cite" && (
        <WithData name="provenance" loading="Loading the source">
          {({ documents }) => <Copied label="BibTeX" text={formatBibtex(props, getRows(documents))} />}
        </WithData>
      )}
    </>
  );
}

/** A text that is copied at once where the browser allows it, and can be copied by hand elsewhere. */
function Copied({ label, text }: { label: string; text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (area: HTMLTextAreaElement | null) => {
    if (!area || copied) return;
    area.select();
    const clipboard = navigator.clipboard as Clipboard | undefined; // none on a page opened from disk
    clipboard?.writeText(text).then(() => setCopied(true), () => undefined);
  };
  return (
    <p>
      <textarea ref={copy} readOnly aria-label={label} rows={Math.min(16, text.split("\n").length + 1)} value={text} />
      <small role="status">{copied ? `${label} copied.` : "Select and copy."}</small>
    </p>
  );
}

function describe({ data, row, name }: Props): string {
  const unit = formatUnit(name, data.getText(row, "item"));
  const details = ["model", "variant", "task", "platform", "framework", "sdk_version"].map((column) => data.getText(row, column));
  const figure = `${data.isEmulated(row, name) ? "emulated: " : ""}${formatFigure(data.getValue(row, name))} ${unit}`;
  return `${figure.trim()} (${name}); ${details.filter(Boolean).join(", ")}`;
}

function formatBibtex(props: Props, documents: Row[]): string {
  const { data, row, id, start } = props;
  const document = documents.find((candidate) => getText(candidate, "document_id") === data.getText(row, "document_id"));
  const version = start.build.version ?? `unreleased, build ${start.build.build_id.slice(0, 12)}`;
  const entries = [
    formatEntry(`ipu-results-${id}`, {
      author: "{The ipu-results authors}",
      title: "ipu-results: the open, verified record of Graphcore IPU performance",
      year: start.build.as_of.slice(0, 4),
      version,
      url: start.repository,
      note: `Result ${id}: ${describe(props)}`,
    }),
  ];
  if (document)
    entries.push(
      formatEntry(getText(document, "document_id"), {
        author: `{${getText(document, "publisher")}}`,
        title: getText(document, "title"),
        year: getText(document, "published_on").slice(0, 4),
        url: getText(document, "url"),
        note: data.getText(row, "mlperf_id") && `MLPerf id ${data.getText(row, "mlperf_id")}`,
      }),
    );
  return entries.join("\n\n");
}

function formatEntry(key: string, fields: Record<string, string>): string {
  const lines = Object.entries(fields).filter(([, value]) => value && value !== "{}");
  return `@misc{${key.replace(/[^\w.:-]/g, "-")},\n${lines.map(([name, value]) => `  ${name} = {${escape(name, value)}}`).join(",\n")}\n}`;
}

/** Escapes what LaTeX would read as a command; an address is kept. */
function escape(name: string, value: string): string {
  return name === "url" || name === "author" ? value : value.replace(/[\\{}]/g, "").replace(/[%&#_$]/g, "\\$&").replaceAll("×", "$\\times$");
}

function formatReport(props: Props): string {
  const { data, row, id, name, start } = props;
  const body = [
    `Result ${id}, column ${name}: ${describe(props)}`,
    `Document ${data.getText(row, "document_id")}, table ${data.getText(row, "table_name")}, row ${data.getText(row, "row_number")}`,
    `Build ${start.build.build_id}`,
    "",
    "What is wrong, and where you can see it:",
    "",
  ].join("\n");
  return `${start.repository}/issues/new?${new URLSearchParams({ title: `Wrong figure: ${id}.${name}`, body })}`;
}
