// Compare my run: a verdict, the nearest published rows, the ratio and what differs. It runs in the browser; nothing is sent.
import * as comparison from "../../schema/comparison.toml";
import { WithData } from "./data";
import { type Dataset, SUBMITTED } from "./dataset";
import { formatFigure, formatUnit, TITLES } from "./format";
import { getRows, getText, normaliseName, type Row, type TextColumn } from "./frame";
import { Origin } from "./marks";
import type { Known, Match, Run } from "./nearest";
import { LeftOut, PlainTable } from "./parts";
import { formatHash, navigate, openPanel } from "./route";
import { judgeRun } from "./verdict";

const RULES = comparison.run;
const TASKS = ["inference", "training"];
const BASES = ["per-batch", "per-item", "several-in-flight"];
const SHOWN = [
  "result_id", "origin", "run_id", "relationship", "publisher", "published_on", "document_id", "table_name", "row_number", "model", "variant",
  "task", "phase", "sequence_length", "packed", "platform", "chip", "chip_count", "family", "framework", "sdk_version", "precision",
  "batch_size", "throughput", "item", "latency_ms", "latency_basis", "minutes", "efficiency", "power_w", "dataset",
  "conditions", "benchmark", "usable", "errors", "latency_ms_low", "latency_ms_high",
];
// A column that a rule looks at and a row lacks would count as blank, and the row as comparable.
const COLUMNS = [...new Set([...SHOWN, ...[...RULES.rules, ...RULES.figure_rules].map((rule) => rule.column)])];
const DIGITS = 3;

export function OwnRun({ data, query }: { data: Dataset; query: URLSearchParams }) {
  return (
    <WithData name="run" loading="Loading the machines">
      {(known) => <Content data={data} known={known} query={query} />}
    </WithData>
  );
}

/** A precision under the name that its spellings share: 16.16 is FP16. */
const spellPrecision = (known: Known, precision: string | null) => precision && (known.precisions[normaliseName(precision)] ?? precision);

function parseRun(known: Known, query: URLSearchParams): { run: Run; problems: string[] } {
  const problems: string[] = [];
  const text = (name: string) => query.get(name)?.trim() || null;
  const number = (name: string, whole = false) => {
    const stated = text(name);
    if (stated === null) return null;
    const value = Number(stated.replaceAll(",", ""));
    if (Number.isFinite(value) && value > 0 && (!whole || Number.isInteger(value))) return value;
    problems.push(`${name.replaceAll("_", " ")} ${stated} is not a ${whole ? "whole " : ""}number above 0`);
    return null;
  };
  const run = {
    model: text("model") ?? "",
    task: text("task") ?? "inference",
    platform: text("platform"),
    chip: text("chip"),
    chip_count: number("chip_count", true),
    batch_size: number("batch_size", true),
    precision: spellPrecision(known, text("precision")),
    framework: text("framework"),
    phase: text("phase"),
    sequence_length: number("sequence_length", true),
    latency_basis: text("latency_basis"),
    throughput: number("throughput"),
    latency_ms: number("latency_ms"),
  };
  if (run.platform && run.chip) problems.push("state a machine, or the chip of one that is not listed, not both");
  if (run.chip && run.chip_count === null) run.chip_count = 1;
  if (!run.model) problems.push("state which model ran");
  if (query.size > 0 && !problems.length && run.throughput === null && run.latency_ms === null) problems.push("state a throughput or a latency");
  return { run, problems };
}

function Content({ data, known, query }: { data: Dataset; known: Known; query: URLSearchParams }) {
  const words = (name: string) => [...(data.getColumn(name) as TextColumn).words].sort((left, right) => left.localeCompare(right, "en", { numeric: true }));
  const { run, problems } = parseRun(known, query);
  const select = (name: string, title: string, values: string[], blank: string, stated = query.get(name)) => (
    <label>
      {title}
      <select name={name} defaultValue={stated ?? ""} key={stated}>
        {blank && <option value="">{blank}</option>}
        {values.map((value) => (
          <option key={value} value={value} selected={value === stated}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
  const input = (name: string, title: string) => (
    <label>
      {title}
      <input name={name} inputMode="decimal" autocomplete="off" defaultValue={query.get(name) ?? ""} key={query.get(name)} />
    </label>
  );
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const stated = [...new FormData(event.currentTarget as HTMLFormElement)].filter(([, value]) => String(value).trim());
    navigate(formatHash("run", "", Object.fromEntries(stated.map(([name, value]) => [name, String(value).trim()]))));
  };
  return (
    <div class="own-run">
      <h2>Compare my run</h2>
      <p>
        State what you ran. You get a verdict, and the nearest figures of the record, each with the ratio and what differs. The comparison
        runs in this page: nothing is sent.
      </p>
      <form onSubmit={submit} key={query.toString()}>
        <div class="choices">
          {select("model", "Model", words("model"), "choose a model")}
          {select("task", "Task", TASKS, "")}
          {select("platform", "Machine", Object.keys(known.machines), "unknown here, or not stated")}
          {input("batch_size", "Batch, over the whole machine")}
          {input("throughput", "Throughput, items/s")}
          {input("latency_ms", "Latency, ms")}
          {select("chip", "Chip, where the machine is not listed", known.accelerators, "not stated")}
          {input("chip_count", "Chips, where not all of the machine")}
        </div>
        <details open={["precision", "framework", "latency_basis", "sequence_length", "phase"].some((name) => query.has(name))}>
          <summary>More conditions</summary>
          <div class="choices">
            {select("precision", "Precision", Object.keys(known.types), "not stated", run.precision)}
            {select("framework", "Framework", words("framework"), "not stated")}
            {select("latency_basis", "The latency times", BASES, "not stated")}
            {input("sequence_length", "Tokens a sequence")}
            {select("phase", "Phase of training", words("phase"), "none")}
          </div>
        </details>
        <button type="submit" class="main">
          Compare
        </button>
      </form>
      {query.size > 0 && (problems.length > 0 ? <p role="alert">{problems.join("; ")}.</p> : <Answer data={data} known={known} run={run} />)}
    </div>
  );
}

/** The rows of a model as records, each measurement once; rows that contributors submitted are left to the command. */
function collectRows(data: Dataset, known: Known, model: string): Row[] {
  const rows: Row[] = [];
  const columns = COLUMNS.filter((name) => data.has(name));
  const doubts = new Map(getRows(known.doubts).map((row) => [row["result_id"], row["doubt"]]));
  for (let row = 0; row < data.rows; row += 1) {
    if (data.getText(row, "model") !== model || data.getText(row, "relationship") === SUBMITTED || data.isRepetition(row)) continue;
    const record: Row = Object.fromEntries(columns.map((name) => [name, data.getValue(row, name)]));
    record["doubt"] = doubts.get(data.getText(row, "result_id")) ?? null;
    record["suspect"] = data.isSuspect(row) ? record["doubt"] : null;
    rows.push(record);
  }
  return rows;
}

function Answer({ data, known, run }: { data: Dataset; known: Known; run: Run }) {
  const rows = collectRows(data, known, run.model);
  const answer = judgeRun({ rows, rules: RULES, known }, run);
  const item = known.items[run.model] ?? "item";
  return (
    <section aria-live="polite">
      <p class={WARNED.includes(answer.status) ? "judged warning" : "judged"}>
        {nameFields(answer.verdict)}.
      </p>
      <h3>The nearest rows</h3>
      {answer.matches.length === 0 ? (
        <p>
          <strong>No row may be compared.</strong> The reasons are below.
        </p>
      ) : (
        <PlainTable label="Nearest rows" headings={["Nearest row", "Yours / theirs", "Yours", "Theirs", "What differs"]} right={["Yours / theirs", "Yours", "Theirs"]}>
          {answer.matches.flatMap((match) => match.ratios.map((ratio) => <Line key={String(match.row["result_id"]) + ratio.figure} match={match} ratio={ratio} run={run} known={known} />))}
        </PlainTable>
      )}
      {run.latency_ms !== null && run.latency_basis === null && (
        <p>
          What your latency times is not stated, and it can decide the ratio. State it under <i>More conditions</i>.
        </p>
      )}
      <h3>Checks</h3>
      <ul>
        {answer.checks.map(({ name, outcome, message }) => (
          <li key={name}>
            <strong>{name}</strong>, {outcome}: {nameFields(message)}
          </li>
        ))}
      </ul>
      <LeftOut count={rows.filter((row) => row["task"] === run.task && row["usable"] !== "true").length} />
      {answer.refusals.length > 0 && (
        <>
          <h3>Not compared</h3>
          <ul>
            {answer.refusals.map(({ reason, rows }) => (
              <li key={reason}>
                {rows.toLocaleString("en")} × {reason}
              </li>
            ))}
          </ul>
        </>
      )}
      <h3>The full comparison</h3>
      <p>
        <code>ipu-results compare</code> also checks power, the longest latency, minutes and stated intervals. Assumed here: one item is one {item}
        {run.platform && run.chip_count === null && `, and all chips of ${run.platform} took part`}
        {run.chip && `, on ${run.chip_count} × ${run.chip}`}.
      </p>
    </section>
  );
}

interface LineProps {
  match: Match;
  ratio: Match["ratios"][number];
  run: Run;
  known: Known;
}

function Line({ match, ratio, run, known }: LineProps) {
  const { row, group } = match;
  const unit = formatUnit(ratio.figure, getText(row, "item"));
  const isFirst = match.ratios[0] === ratio;
  const details = [getText(row, "publisher"), getText(row, "platform"), getText(row, "published_on")].filter(Boolean);
  const digits = row["origin"] === "published" ? undefined : 5;
  return (
    <tr>
      <td>
        <Origin origin={getText(row, "origin")} brief={row["origin"] !== "emulated"} /> {RULES.groups[group]}
        <br />
        <small>{details.join(", ")}</small>
      </td>
      <td class="right">
        <strong>{formatRatio(ratio.ratio)}×</strong>
        {isFirst && match.ratio_per_chip !== null && (
          <>
            <br />
            <small>{formatRatio(match.ratio_per_chip)}× per chip</small>
          </>
        )}
      </td>
      <td class="right">
        {TITLES[ratio.figure]}: {formatFigure(ratio.ours)} <small>{unit}</small>
      </td>
      <td class="right">
        <button type="button" class="figure link" aria-haspopup="dialog" onClick={() => openPanel(`${getText(row, "result_id")}.${ratio.figure}`)}>
          {row["origin"] === "emulated" && "≈ "}
          {formatFigure(ratio.theirs, digits)} <small>{unit}</small>
        </button>
      </td>
      <td>{listDifferences(match, run, known).join("; ") || "nothing that is known"}</td>
    </tr>
  );
}

const formatRatio = (ratio: number) => formatFigure(Number(ratio.toPrecision(DIGITS)));

/** What differs, yours / theirs, then what only the row states. */
function listDifferences({ row, not_compared }: Match, run: Run, known: Known): string[] {
  const ours: Record<string, string | number | null> = {
    platform: run.platform,
    chip_count: run.chip_count ?? (run.platform === null ? null : (known.machines[run.platform]?.[2] ?? null)),
    batch_size: run.batch_size,
    precision: run.precision,
    framework: run.framework,
    latency_basis: run.latency_basis,
  };
  const names: Record<string, string> = { platform: "machine", latency_basis: "latency times", ...comparison.conditions, conditions: "conditions" };
  const texts = { differs: [] as string[], theirs: [] as string[] };
  for (const name of [...Object.keys(ours), "variant", "sdk_version", "dataset", "conditions"]) {
    const [own, theirs] = [ours[name] ?? null, row[name] ?? null];
    if (theirs === null || own === theirs) continue;
    if (own === null) texts.theirs.push(`${names[name] ?? name} ${theirs}`);
    else texts.differs.push(`${names[name] ?? name} ${own} / ${theirs}`);
  }
  const stated = texts.theirs.length ? [`theirs states: ${texts.theirs.join(", ")}`] : [];
  return [...texts.differs, ...stated, ...Object.entries(not_compared).map(([figure, reason]) => `${TITLES[figure] ?? figure} not compared: ${reason}`)];
}

const WARNED = ["implausible", "doubtful"];
const FIELDS: Record<string, string> = { latency_ms: "Latency", latency_basis: "The latency times", sequence_length: "Tokens a sequence" };

/** Names the fields of the form in the place of columns. */
const nameFields = (text: string) => text.replace(/\b[a-z]+_[a-z_]+\b/g, (name) => (FIELDS[name] ? `“${FIELDS[name]}”` : name));
