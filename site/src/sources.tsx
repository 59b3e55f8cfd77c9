// The source of a figure: its cells and document, the flags of its row, its run and its public configuration.
import { Fragment } from "preact";
import { Certificate } from "./certificate";
import type { Dataset } from "./dataset";
import { formatFigure } from "./format";
import { filterRows, getRows, getText, type Row } from "./frame";
import type { Data, RowFlag } from "./load";
import { FlagList } from "./marks";
import { Fields, inCode, PlainTable, Section, WebLink } from "./parts";

export const DIGITS = 7; // of a figure that the emulator calculated

interface Props {
  data: Dataset;
  row: number;
  id: string;
  name: string;
  tables: Data["provenance"];
}

export function Sources({ data, row, id, name, tables }: Props) {
  const cells = filterRows(tables.cells, "result_id", id);
  const documents = new Map(getRows(tables.documents).map((document) => [getText(document, "document_id"), document]));
  const own = cells.filter((cell) => cell.column_name === name);
  return (
    <>
      <Section title="Source">
        {own.map((cell, index) => {
          const document = documents.get(getText(cell, "document_id"));
          return (
            <Fragment key={index}>
              <Cell cell={cell} result={data.formatFigure(row, name, DIGITS)} document={document} />
              <Certificate data={data} row={row} id={id} cell={cell} document={document} />
            </Fragment>
          );
        })}
        {own.length === 0 && (
          <>
            <p>No cell of a source holds this figure by itself. The row comes from the document below.</p>
            <Document document={documents.get(data.getText(row, "document_id"))} />
          </>
        )}
      </Section>
      <FlagList flags={sortFlags(filterRows(tables.flags, "result_id", id), getRows(tables.rules), data.data.rules, name)} />
      {filterRows(tables.runs, "run_id", data.getText(row, "run_id")).map((run) => (
        <Section key={getText(run, "run_id")} title="The run of this project that produced it">
          <Fields
            of={{
              Run: inCode(run.run_id),
              Backend: run.backend,
              Device: run.device,
              Started: run.started_at,
              Calibration: inCode(run.calibration_id),
            }}
          />
        </Section>
      ))}
      {filterRows(tables.configurations, "result_id", id).map((configuration, index) => (
        <Configuration key={index} row={configuration} />
      ))}
      <details>
        <summary>All {cells.length} cells of this row as printed</summary>
        <PlainTable label="Cells of this row" headings={["Header", "As printed", "Column", "Place"]}>
          {cells.map((cell, index) => (
            <tr key={index} class={cell.column_name === name ? "own" : ""}>
              <td>{cell.header}</td>
              <td>{cell.raw_text}</td>
              <td>{cell.column_name}</td>
              <td>{cell.locator}</td>
            </tr>
          ))}
        </PlainTable>
      </details>
    </>
  );
}

const PLACES: Record<string, string> = {
  transcription: "Place in our transcription",
  derivation: "Place in our derived file",
  source: "Place in the source",
};

function Cell({ cell, result, document }: { cell: Row; result: string; document: Row | undefined }) {
  return (
    <>
      <blockquote class="printed">
        {cell.raw_text}
        <small>
          {" "}
          {document?.["kind"] === "transcription" ? "as printed" : "as in the file"}
        </small>
      </blockquote>
      <Fields
        of={{
          Column: cell.header,
          [PLACES[getText(cell, "locator_in")] ?? "Place"]: cell.locator,
          ...(cell.locator_in !== "source" && { "Place in the source": cell.source_locator }),
          "Unit as printed": cell.unit,
          Conversion: describeConversion(cell, result),
        }}
      />
      <Document document={document} address={getText(cell, "source_url")} />
    </>
  );
}

function describeConversion({ factor, value }: Row, result: string): string {
  if (typeof factor !== "number" || typeof value !== "number") return "";
  return factor === 1 ? "none (factor 1)" : `${value} × ${formatFigure(factor)} = ${result}`;
}

function Document({ document, address = "" }: { document: Row | undefined; address?: string }) {
  if (!document) return null;
  const url = address || getText(document, "url");
  return (
    <Fields
      of={{
        Document: <cite>{document.title}</cite>,
        Publisher: document.publisher,
        Published: document.published_on,
        Address: url && <WebLink to={url} />,
        Licence: document.licence,
        "Our file": `${getText(document, "kind")}: raw/${getText(document, "file")}`,
      }}
    />
  );
}

/** The flags of a row with their rules, those of the figure first. */
function sortFlags(flags: Row[], rules: Row[], titles: Record<string, string>, name: string): RowFlag[] {
  const isOwn = (flag: Row) => Number(flag.column_name === name);
  const sorted = [...flags].sort((left, right) => isOwn(right) - isOwn(left));
  return sorted.map((flag) => {
    const rule = rules.find((each) => each.rule === flag.rule);
    return { ...rule, ...flag, title: titles[getText(flag, "rule")] ?? "" } as unknown as RowFlag;
  });
}

function Configuration({ row }: { row: Row }) {
  const { repository, tag, path } = row;
  const file = (
    <WebLink to={`https://github.com/${repository}/blob/${tag || "HEAD"}/${path}`}>
      {repository} {tag}, {path}
    </WebLink>
  );
  return (
    <Section title={`Public configuration (${getText(row, "match_confidence")} match)`}>
      <Fields
        of={{
          File: file,
          Benchmark: row.benchmark,
          "Micro-batch": row.micro_batch_size,
          Replicas: row.replicas,
          "Batch from it": row.global_batch_from_config,
          "Data fed": row.data_fed,
          Latency: row.latency_definition,
          Note: row.note,
        }}
      />
    </Section>
  );
}
