// Compare my run: a verdict, the nearest published rows, the ratio and what differs. It runs in the browser; nothing is sent.
import { useEffect } from "preact/hooks";
import { FROM_DISK, FromDisk, startComparison, useAnswer } from "./comparison";
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatFigure, TITLES } from "./format";
import { normaliseName, type TextColumn } from "./frame";
import type { Known } from "./load";
import { Origin } from "./marks";
import { join, type Link, Links, PlainTable, SourceButton } from "./parts";
import { formatHash, navigate } from "./route";

const TASKS = ["inference", "training"];
const BASES = ["per-batch", "per-item", "several-in-flight"];
const DIGITS = 3;

/** A run as the form states it, in the columns of `results`; null is not stated. */
interface Run {
  model: string;
  task: string;
  platform: string | null;
  chip: string | null; // of a machine that the record does not have
  chip_count: number | null; // null: all of the machine
  batch_size: number | null;
  precision: string | null;
  framework: string | null;
  phase: string | null;
  sequence_length: number | null;
  latency_basis: string | null;
  throughput: number | null;
  latency_ms: number | null;
}

interface Ratio {
  figure: string;
  ours: number;
  theirs: number;
  ratio: number;
  unit: string;
}

/** A row of the record that is near, with its figures next to those of the run. */
interface Match {
  group_name: string;
  row: { result_id: string };
  ratios: Ratio[];
  not_compared: { figure: string; reason: string }[];
  differences: { what: string; ours: string | null; theirs: string | null; known: boolean }[];
  ratio_per_chip: number | null;
}

/** What schema/comparison/answer.sql says of a run. */
interface Verdict {
  status: string;
  verdict: string;
  matches: Match[];
  refusals: { reason: string; rows: number }[];
  checks: { name: string; outcome: string; message: string }[];
  unusable: string;
}

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

/** Starts DuckDB and has it compile the statements, while the visitor fills in the form; a failure is reported with the run. */
function warmUp(): void {
  if (!FROM_DISK) startComparison().then((comparison) => comparison.answer("comparison", { run: 0 })).catch(() => null);
}

function Content({ data, known, query }: { data: Dataset; known: Known; query: URLSearchParams }) {
  const sort = (words: string[]) => [...words].sort((left, right) => left.localeCompare(right, "en", { numeric: true }));
  const words = (name: string) => sort((data.getColumn(name) as TextColumn).words);
  const { run, problems } = parseRun(known, query);
  useEffect(() => {
    if (query.size === 0) warmUp();
  }, []);
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
          {select("model", "Model", sort(known.models), "choose a model")}
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
            {select("precision", "Precision", known.precision_names, "not stated", run.precision)}
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
      {query.size === 0 && <Examples />}
      {FROM_DISK && query.size === 0 && <FromDisk />}
      {query.size > 0 && (problems.length > 0 ? <p role="alert">{problems.join("; ")}.</p> : <Answer data={data} known={known} run={run} />)}
    </div>
  );
}

const EXAMPLES: [title: string, run: Record<string, string>][] = [
  ["ResNet-50 on an IPU-M2000: 7,800 images/s at batch 4", { model: "ResNet-50 v1.5", task: "inference", platform: "IPU-M2000", batch_size: "4", throughput: "7800", latency_ms: "1.66" }],
  ["The same with a slip: the latency in seconds", { model: "ResNet-50 v1.5", task: "inference", platform: "IPU-M2000", batch_size: "4", throughput: "7800", latency_ms: "0.00166" }],
  ["BERT-Large on one A100, 128 tokens", { model: "BERT-Large", task: "inference", platform: "1x A100-40GB", batch_size: "8", sequence_length: "128", precision: "INT8", latency_ms: "5.2" }],
];

function Examples() {
  return (
    <>
      <h3>Or try an example</h3>
      <Links to={EXAMPLES.map(([title, run]): Link => [title, formatHash("run", "", run)])} />
    </>
  );
}

const WARNED = ["implausible", "doubtful"];
const POWER = "power rating"; // a check that needs what the form does not ask

function Answer({ data, known, run }: { data: Dataset; known: Known; run: Run }) {
  const [chip, chips] = (run.platform !== null && known.machines[run.platform]) || [null, null];
  const item = known.items[run.model] ?? null;
  const stated = { ...run, run: 1, origin: "measured", item, chip: run.chip ?? chip, chip_count: run.chip_count ?? chips };
  const { answer, note } = useAnswer<Verdict>("comparison", stated);
  if (!answer) return <>{note}</>;
  const lines = answer.matches.flatMap((match) => match.ratios.map((ratio) => ({ match, ratio })));
  return (
    <section aria-live="polite">
      <p class={WARNED.includes(answer.status) ? "judged warning" : "judged"}>{endSentence(nameFields(answer.verdict))}</p>
      <h3>The nearest rows</h3>
      {lines.length === 0 ? (
        <p>
          <strong>No row may be compared.</strong> The reasons are below.
        </p>
      ) : (
        <PlainTable label="Nearest rows" headings={["Nearest row", "Yours / theirs", "Yours", "Theirs", "What differs"]} right={["Yours / theirs", "Yours", "Theirs"]}>
          {lines.map(({ match, ratio }) => (
            <Line key={match.row.result_id + ratio.figure} data={data} match={match} ratio={ratio} />
          ))}
        </PlainTable>
      )}
      {run.latency_ms !== null && run.latency_basis === null && (
        <p>
          What your latency times is not stated, and it can decide the ratio. State it under <i>More conditions</i>.
        </p>
      )}
      <h3>Checks</h3>
      <ul class="checks">
        {answer.checks.filter(({ name }) => name !== POWER).map(({ name, outcome, message }) => (
          <li key={name}>
            <strong>{name}</strong>, {outcome}: {nameFields(message)}
          </li>
        ))}
      </ul>
      {answer.unusable && (
        <p class="note">
          Of {run.model} {run.task}, {answer.unusable}; no verdict rests on them.
        </p>
      )}
      {answer.refusals.length > 0 && (
        <>
          <h3>Not compared</h3>
          <ul class="refusals">
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
        <code>ipu-results compare</code> also checks power, the longest latency, minutes and stated intervals. Assumed here: one item is one {item ?? "item"}
        {run.platform && run.chip_count === null && `, and all chips of ${run.platform} took part`}
        {run.chip && `, on ${run.chip_count} × ${run.chip}`}.
      </p>
    </section>
  );
}

interface LineProps {
  data: Dataset;
  match: Match;
  ratio: Ratio;
}

function Line({ data, match, ratio }: LineProps) {
  const id = match.row.result_id;
  const row = data.findRow(id);
  const origin = data.getText(row, "origin");
  const isFirst = match.ratios[0] === ratio;
  const details = ["publisher", "platform", "published_on"].map(data.readRow(row));
  return (
    <tr>
      <td>
        <Origin origin={origin} brief={origin !== "emulated"} /> {match.group_name}
        <br />
        <small>{join(details)}</small>
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
        {TITLES[ratio.figure]}: {formatFigure(ratio.ours)} <small>{ratio.unit}</small>
      </td>
      <td class="right">
        <SourceButton look="figure link" of={`${id}.${ratio.figure}`}>
          {origin === "emulated" && "≈ "}
          {formatFigure(ratio.theirs, origin === "published" ? undefined : 5)} <small>{ratio.unit}</small>
        </SourceButton>
      </td>
      <td>{describeDifferences(match) || "nothing that is known"}</td>
    </tr>
  );
}

const endSentence = (text: string) => (text.endsWith("?") ? text : `${text}.`);
const formatRatio = (ratio: number) => formatFigure(Number(ratio.toPrecision(DIGITS)));

/** What differs, yours / theirs, then what only one side states, and the figures that are not compared. */
function describeDifferences({ differences, not_compared }: Match): string {
  const differing = differences.filter(({ known }) => known).map(({ what, ours, theirs }) => `${what} ${ours} / ${theirs}`);
  const open = differences.filter(({ ours, theirs }) => ours === null && theirs !== null).map(({ what, theirs }) => `${what} ${theirs}`);
  const stated = open.length > 0 ? [`theirs states: ${open.join(", ")}`] : [];
  const refused = not_compared.map(({ figure, reason }) => `${TITLES[figure] ?? figure} not compared: ${reason}`);
  return [...differing, ...stated, ...refused].join("; ");
}

const FIELDS: Record<string, string> = { latency_ms: "Latency", latency_basis: "The latency times", sequence_length: "Tokens a sequence" };

/** Names the fields of the form in the place of columns. */
const nameFields = (text: string) => text.replace(/\b[a-z]+_[a-z_]+\b/g, (name) => (FIELDS[name] ? `“${FIELDS[name]}”` : name));
