// The columns of the table of results.
import type { ComponentChildren } from "preact";
import { type Dataset, type Flag, PER_PRICE } from "./dataset";
import { FlagMark, Origin } from "./marks";
import { join } from "./parts";

interface TextColumn {
  name: string; // what it is sorted by
  title: string;
  width: number;
  least: number; // the width that it may shrink to, to leave room for long figures
  render?: (data: Dataset, row: number) => ComponentChildren;
}

/** A column of figures, one below another in a row. It widens with its content, since a figure is never cut. */
interface FigureColumn {
  name: string;
  width: number;
  figures: { name: string; title: string; withUnit?: boolean }[];
}
export type Column = TextColumn | FigureColumn;

function makeFigureColumn(name: string, title: string, width: number, withUnit = false): FigureColumn {
  return { name, width, figures: [{ name, title, withUnit }] };
}

/** What a heading means, by what it sorts. */
export const HELP: Record<string, string> = {
  model: "The network, with its variant and task. The mark says where the figure is from: a dot is published, a diamond official, a triangle measured here",
  platform: "The whole machine that ran it, and how many chips of it",
  framework: "The framework, and the version of the SDK",
  precision: "The type of the numbers; X.Y is X bits multiplied and Y bits added up",
  batch_size: "Items at once, over all chips of the machine",
  throughput: "Items per second of the whole machine",
  throughput_per_chip: "Items per second, divided by the chips",
  efficiency: "Items per second and watt",
  [PER_PRICE]: "Items per second for each $1,000 of the list price",
  latency_ms: "Milliseconds from an input to its output; the panel says what was timed",
  minutes: "Minutes until the quality of MLPerf or of the source was reached",
  flags: "Rules that found something: ! is doubtful, i is to know. Each is explained under Quality rules",
  publisher: "Who published it, in which relation to the maker of the chip, and when",
};

/** The throughput as printed, or for what one pays with. */
export const MEASURES: Record<string, { name: string; title: string; option: string }> = {
  "": { name: "throughput", title: "Throughput", option: "as printed" },
  chip: { name: "throughput_per_chip", title: "Per chip", option: "per chip" },
  watt: { name: "efficiency", title: "Per watt", option: "per watt" },
  dollar: { name: PER_PRICE, title: "Per $1,000", option: "per $1,000" },
};

export function getMeasure(per: string) {
  return Object.hasOwn(MEASURES, per) ? MEASURES[per]! : MEASURES[""]!;
}

/** The columns of a wide screen, with the throughput per what the reader wants. */
export function selectColumns(per: string): Column[] {
  const rate = getMeasure(per);
  return [
    { name: "model", title: "Result", width: 156, least: 128, render: (data, row) => <Lines title={data.getText(row, "model")} first={renderModel(data, row)} second={describeTest(data, row)} /> },
    { name: "platform", title: "Machine", width: 132, least: 96, render: (data, row) => <Lines first={data.getText(row, "platform")} second={describeMachine(data, row)} /> },
    { name: "framework", title: "Software", width: 110, least: 110, render: (data, row) => <Lines first={data.getText(row, "framework")} second={data.getText(row, "sdk_version")} /> },
    { name: "precision", title: "Precision", width: 80, least: 80 },
    makeFigureColumn("batch_size", "Batch", 66),
    makeFigureColumn(rate.name, rate.title, 100, true),
    makeFigureColumn("latency_ms", "Latency, ms", 82),
    makeFigureColumn("minutes", "Train, min", 72),
    { name: "flags", title: "Flags", width: 108, least: 72, render: (data, row) => renderFlags(data, row, "info") },
    { name: "publisher", title: "Publisher", width: 124, least: 100, render: (data, row) => <Lines first={data.getText(row, "publisher")} second={describeWhen(data, row)} /> },
  ];
}

const NARROW: Column[] = [
  { name: "model", title: "Result", width: 150, least: 128, render: renderCard },
  {
    name: "figures",
    width: 120,
    figures: [
      { name: "throughput", title: "items/s", withUnit: true },
      { name: "latency_ms", title: "ms", withUnit: true },
      { name: "minutes", title: "min", withUnit: true },
    ],
  },
];

/** The columns of a phone, with the throughput per what the reader wants. */
export function selectNarrow(per: string): Column[] {
  if (!per) return NARROW;
  const { name, title } = getMeasure(per);
  return NARROW.map((column) =>
    "figures" in column ? { ...column, figures: [{ name, title, withUnit: true }, ...column.figures.slice(1)] } : column,
  );
}

function Lines({ first, second, title = typeof first === "string" ? first : undefined }: { first: ComponentChildren; second: string; title?: string | undefined }) {
  return (
    <span class="lines">
      <span title={title}>{first}</span>
      {second && <small title={second}>{second}</small>}
    </span>
  );
}

function renderModel(data: Dataset, row: number) {
  const text = data.readRow(row);
  const origin = text("origin");
  const variant = text("variant");
  return (
    <>
      <Origin origin={origin} brief={origin !== "emulated"} /> <strong>{text("model")}</strong> {variant && <small>{variant}</small>}
      {data.isSparse(row) && (
        <span class="flag flag-info" title="Weights that are zero are left out: do not compare it with a dense network">
          sparse
        </span>
      )}
    </>
  );
}

/** Who measured, seen from the maker of the chip, and the month: the panel has the day. */
function describeWhen(data: Dataset, row: number): string {
  const text = data.readRow(row);
  return join([text("relationship"), text("published_on").slice(0, 7)]);
}

function describeTest(data: Dataset, row: number): string {
  const text = data.readRow(row);
  const mlperf = text("benchmark").startsWith("mlperf") && join(["MLPerf", text("mlperf_round"), text("division")], " ");
  return join([text("task"), mlperf], " · ");
}

function describeMachine(data: Dataset, row: number): string {
  const chips = data.getValue(row, "chip_count");
  return chips === null ? "" : `${data.formatFigure(row, "chip_count", 5)} ${chips === 1 ? "chip" : "chips"}`;
}

function renderCard(data: Dataset, row: number) {
  const text = data.readRow(row);
  const batch = text("batch_size");
  const details = [text("platform"), describeMachine(data, row), text("relationship")];
  const more = [describeTest(data, row), text("framework"), text("sdk_version"), batch && `batch ${batch}`];
  return (
    <span class="card">
      <span>{renderModel(data, row)}</span>
      <small>{join(details, " · ")}</small>
      <small>
        {join(more, " · ")} {renderFlags(data, row, "warn")}
      </small>
    </span>
  );
}

const MAX_FLAGS = 4; // in a cell, the most severe first
const SEVERITIES = ["error", "warn", "info"];
const rank = ({ severity }: Flag) => SEVERITIES.indexOf(severity);

/** Marks of the flags of a row, at least of a severity. */
function renderFlags(data: Dataset, row: number, least: string) {
  const byRule = new Map(data.flags.get(row)?.map((flag) => [flag.rule, flag])); // one of each rule
  const flags = [...byRule.values()].filter((flag) => rank(flag) <= SEVERITIES.indexOf(least)).sort((left, right) => rank(left) - rank(right));
  const shown = flags.length > MAX_FLAGS ? MAX_FLAGS - 1 : MAX_FLAGS;
  const more = flags.slice(shown);
  return (
    <span class="flag-marks">
      {flags.slice(0, shown).map((flag) => (
        <FlagMark key={flag.rule} flag={flag} title={data.data.rules[flag.rule] ?? ""} />
      ))}
      {more.length > 0 && <small title={more.map(({ rule }) => rule).join(", ")}>+{more.length}</small>}
    </span>
  );
}
