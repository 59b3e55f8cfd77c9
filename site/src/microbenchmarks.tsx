// Microbenchmarks: figures that are not a network's, by device, operation and metric, each with its page and table.
import { useMemo, useState } from "preact/hooks";
import { WithData } from "./data";
import { Dialog } from "./dialog";
import { formatCount, formatFigure } from "./format";
import { expand, getColumn, getRows, getText, groupBy, type Row, type TextColumn } from "./frame";
import type { MicrobenchmarkData, MicrobenchmarkFlag } from "./load";
import { FlagList, FlagMark } from "./marks";
import { DocumentFields, Field, PlainTable, Section } from "./parts";
import { closePanel, openPanel, navigate, setParameter, setParameters } from "./route";

const FILTERS = { device: "Device", operation: "Operation", metric: "Metric", publisher: "Publisher" };
type Filter = keyof typeof FILTERS;
const NAMES = Object.keys(FILTERS) as Filter[];
const PAGE = 200; // rows shown at once
const SEARCHED = ["device", "operation", "metric", "shape", "precision", "statistic", "conditions", "place", "raw_text", "publisher"];

export function Microbenchmarks({ query }: { query: URLSearchParams }) {
  return (
    <WithData name="microbenchmarks" loading="Loading the microbenchmarks">
      {(data) => <Content data={data} query={query} />}
    </WithData>
  );
}

let rowsOnce: Row[] | undefined;

function Content({ data, query }: { data: MicrobenchmarkData; query: URLSearchParams }) {
  const rows = (rowsOnce ??= getRows(expand(data.rows)));
  const search = query.get("q") ?? "";
  const picked = Object.fromEntries(NAMES.map((name) => [name, query.getAll(name)])) as Record<Filter, string[]>;
  const key = JSON.stringify([picked, search]);
  const { matches, counts } = useMemo(() => select(rows, picked, search), [rows, key]);
  const [shown, setShown] = useState({ key, count: PAGE });
  const count = shown.key === key ? shown.count : PAGE;
  const flags = useMemo(() => groupBy(data.flags, "result_id"), [data]);
  const show = query.get("show");
  return (
    <div class="micro">
      <h2>Microbenchmarks</h2>
      <p>
        What the parts of a chip reach: matrix products, memory, exchange, host link, single layers. Click a figure for its page and
        table. <a href="microbenchmarks.html">The same without scripts</a> · <a href="peak.html">Share of peak of each chip</a>
      </p>
      <div class="bar">
        {NAMES.map((name) => (
          <label key={name} class="small">
            {FILTERS[name]}{" "}
            <select value={picked[name][0] ?? ""} onChange={(event) => setParameters({ [name]: event.currentTarget.value || null })}>
              <option value="">all</option>
              {getWords(data, name).map((word) => (
                <option key={word} value={word}>
                  {word} ({counts[name].get(word) ?? 0})
                </option>
              ))}
            </select>
          </label>
        ))}
        <input
          type="search"
          aria-label="Search the microbenchmarks"
          placeholder="table 5.5, half, 58.9"
          value={search}
          onInput={(event) => setParameter("q", event.currentTarget.value || null, true)}
        />
        <p role="status" class="count">
          <strong>{formatCount(matches.length, "figure")}</strong> of {rows.length.toLocaleString("en")}
        </p>
        {(search || NAMES.some((name) => picked[name].length > 0)) && (
          <button type="button" class="quiet" onClick={() => navigate("#/microbenchmarks")}>
            Clear all
          </button>
        )}
      </div>
      <PlainTable label="Microbenchmarks" headings={["Device", "As printed", "Operation", "What", "Value", "Place in the source"]} right={["As printed", "Value"]}>
        {matches.slice(0, count).map((row) => (
          <Line key={getText(row, "microbenchmark_id")} row={row} flags={flags.get(getText(row, "microbenchmark_id")) ?? []} />
        ))}
      </PlainTable>
      {matches.length > count && (
        <p>
          <button type="button" onClick={() => setShown({ key, count: count + PAGE })}>
            Show {Math.min(PAGE, matches.length - count)} more
          </button>{" "}
          <small>{matches.length - count} are not shown.</small>
        </p>
      )}
      {show && <Panel key={show} id={show} data={data} row={rows.find((row) => row["microbenchmark_id"] === show)} flags={flags.get(show) ?? []} />}
    </div>
  );
}

function getWords(data: MicrobenchmarkData, name: Filter): string[] {
  return (getColumn(data.rows, name) as TextColumn).words;
}

/** The rows that every filter accepts, and for each filter the counts of its values among the rows that the others accept. */
function select(rows: Row[], picked: Record<Filter, string[]>, search: string) {
  const counts = Object.fromEntries(NAMES.map((name) => [name, new Map<string, number>()])) as Record<Filter, Map<string, number>>;
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = rows.filter((row) => {
    const text = words.length ? SEARCHED.map((name) => getText(row, name)).join(" ").toLowerCase() : "";
    if (!words.every((word) => text.includes(word))) return false;
    const failed = NAMES.filter((name) => picked[name].length && !picked[name].includes(getText(row, name)));
    for (const name of NAMES)
      if (failed.every((other) => other === name)) counts[name].set(getText(row, name), (counts[name].get(getText(row, name)) ?? 0) + 1);
    return failed.length === 0;
  });
  return { matches, counts };
}

const describe = (row: Row) => ["metric", "statistic", "precision", "shape"].map((name) => getText(row, name)).filter(Boolean).join(", ");

/** The unit of a figure; a ratio has none. */
const formatUnit = (row: Row, name: string) => (row[name] === "1" ? "" : getText(row, name));

function describeDevice(row: Row): string {
  const count = row["device_count"];
  return typeof count === "number" && count > 1 ? `${count} × ${getText(row, "device")}` : getText(row, "device");
}

function Line({ row, flags }: { row: Row; flags: MicrobenchmarkFlag[] }) {
  return (
    <tr>
      <td>{describeDevice(row)}</td>
      <td class="right">
        <button type="button" class="figure link" aria-haspopup="dialog" onClick={() => openPanel(getText(row, "microbenchmark_id"))}>
          {getText(row, "raw_text")} <small>{formatUnit(row, "unit")}</small>
        </button>{" "}
        {flags.map((flag) => (
          <FlagMark key={flag.rule + flag.column_name} flag={flag} title={flag.title} />
        ))}
      </td>
      <td>{getText(row, "operation")}</td>
      <td>
        {describe(row)}
        {getText(row, "conditions") && <small> {getText(row, "conditions")}</small>}
      </td>
      <td class="right">
        {formatFigure(row["canonical_value"] ?? null, 5)} <small>{formatUnit(row, "canonical_unit")}</small>
      </td>
      <td>
        {getText(row, "publisher")}, <small>{getText(row, "place")}</small>
      </td>
    </tr>
  );
}

interface PanelProps {
  id: string;
  data: MicrobenchmarkData;
  row: Row | undefined;
  flags: MicrobenchmarkFlag[];
}

function Panel({ id, data, row, flags }: PanelProps) {
  const document = data.documents.find((candidate) => candidate.document_id === row?.["document_id"]);
  return (
    <Dialog onClose={closePanel}>
      {!row || !document ? (
        <>
          <h2 id="panel-title">No such microbenchmark</h2>
          <p>
            This build does not hold the microbenchmark <code>{id}</code>. It may come from another release.
          </p>
        </>
      ) : (
        <>
          <p class="over">{getText(row, "operation")}</p>
          <h2 id="panel-title">
            {getText(row, "raw_text")} <small>{formatUnit(row, "unit")}</small>
          </h2>
          <p class="what">
            {describeDevice(row)} · {describe(row)}
          </p>
          <Section title="Source">
            <blockquote class="printed">
              {getText(row, "raw_text")} <small>as printed</small>
            </blockquote>
            <dl>
              <Field name="Place in the source" value={getText(row, "place")} />
              <Field name="Place in our transcription" value={getText(row, "locator")} />
              <Field name="Unit as printed" value={getText(row, "unit")} />
              <Field name="In the unit of the metric" value={`${formatFigure(row["canonical_value"] ?? null)} ${getText(row, "canonical_unit")}`} />
              <DocumentFields document={document} url={document.url ?? ""} file={`raw/${document.file}`} />
            </dl>
          </Section>
          <FlagList flags={flags} />
          <Section title="This figure">
            <dl>
              <Field name="Id" value={id} code />
              <Field name="Who measured" value={getText(row, "relationship")} />
              <Field name="SDK or library" value={getText(row, "sdk_version")} />
              <Field name="Conditions" value={getText(row, "conditions")} />
            </dl>
          </Section>
        </>
      )}
    </Dialog>
  );
}
