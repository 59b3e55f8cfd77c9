// The ranking of a benchmark of MLPerf Training, with the interval of each score and ties.
import { useMemo } from "preact/hooks";
import { Chart } from "./chart";
import { ChartDownloads } from "./chart-downloads";
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { type Frame, getRows, getText, type Row } from "./frame";
import type { NumberTable } from "./load";
import { OUTCOME_COLORS } from "./palette";
import { Choice } from "./parts";
import { describeSource, Numbers, showSource } from "./points";
import { formatHash, setParameter } from "./route";

export const RANKING = "mlperf_ranking";
export const RANKING_QUESTION = "Who leads an MLPerf benchmark, and who is tied?";

// Whether the runs show that an entry is slower than the one above, by the column `outcome`.
const OUTCOMES: Record<string, string> = { separable: "yes", tied: "no, tied", "shared-logs": "no, the same logs", untested: "not tested" };
const FIRST = "first";
const WIDE_RANGE = 10; // of times that only a logarithmic axis shows
const ATTRIBUTION = "Minutes and intervals are computed from the logs by ipu-results, and not verified by MLCommons Association.";

export function Ranking({ data, query }: { data: Dataset; query: URLSearchParams }) {
  return (
    <WithData name="rankings" loading="Loading the rankings">
      {(rankings) => <Benchmark data={data} rankings={rankings} query={query} />}
    </WithData>
  );
}

function Benchmark({ data, rankings, query }: { data: Dataset; rankings: Frame; query: URLSearchParams }) {
  const rows = useMemo(() => getRows(rankings), [rankings]);
  const list = (of: Row[], name: string) => [...new Set(of.map((row) => getText(row, name)))];
  const rounds = list(rows, "round").sort((left, right) => Number(right) - Number(left));
  const round = pick(rounds, query.get("round"), "2.0");
  const inRound = rows.filter((row) => getText(row, "round") === round);
  const benchmark = pick(list(inRound, "benchmark"), query.get("benchmark"), "resnet");
  const entries = inRound.filter((row) => getText(row, "benchmark") === benchmark);
  const unscored = Number(entries[0]?.["unscored"] ?? 0);
  const chart = useMemo(() => makeChart(entries, round, benchmark), [rows, round, benchmark]);
  const choose = (name: string, values: string[], value: string, label: string) => (
    <Choice label={label} value={value} options={values.map((each) => [each, each])} onChange={(picked) => setParameter(name, picked)} />
  );
  return (
    <>
      <h2>{chart.finding}</h2>
      <p>Each mark is an entry, each bar the 95 % interval of its score from the spread of its runs.</p>
      <div class="predict">
        {choose("round", rounds, round, "Round")}
        {choose("benchmark", list(inRound, "benchmark"), benchmark, "Benchmark")}
      </div>
      <Chart
        specification={chart.specification}
        label={`Chart: ${chart.finding} The numbers are in the table below.`}
        onPoint={(datum) => showSource(data, datum["result_id"])}
        describe={(datum) => describeSource(data, datum["result_id"])}
      />
      <ChartDownloads data={data} chart={chart} picture={false} hash={formatHash("charts", RANKING, { round, benchmark })} />
      <h3>What the rows cannot show</h3>
      <ul class="caveats">
        <li>Systems of all sizes are ranked together, so a larger machine leads.</li>
        <li>Two neighbours count as tied if a permutation test of their runs does not reject equal scores at 5 %. More runs could separate them.</li>
        {unscored > 0 && <li>{unscored} more published entries have no minutes here, as their logs are missing: each may be faster, so ranks are lower bounds.</li>}
        <li>{ATTRIBUTION}</li>
      </ul>
      <Numbers data={data} tables={chart.numbers} />
    </>
  );
}

/** The requested value where there is one, else a usual one, else the first. */
function pick(values: string[], requested: string | null, usual: string): string {
  return values.find((value) => value === requested) ?? values.find((value) => value === usual) ?? values[0]!;
}

const HEADINGS = ["Rank", "Submitter", "System", "Accelerators", "Minutes", "95 % interval from", "to", "Tied with ranks", "Surely slower than the one above"];

function makeChart(entries: Row[], round: string, benchmark: string) {
  const records = entries.map((row) => ({
    ...row,
    name: `${getText(row, "rank")} ${getText(row, "submitter")}, ${getText(row, "system")}`,
    slower: OUTCOMES[getText(row, "outcome")] ?? FIRST,
  }));
  const tied = records.filter((record) => record.slower.startsWith("no,")).length;
  const finding = `MLPerf v${round}, ${benchmark}: the runs cannot separate ${tied} of the ${Math.max(0, entries.length - 1)} closed entries from the one above.`;
  const table: NumberTable = {
    headings: HEADINGS,
    rows: records.map((record) => {
      const row = record as Row;
      const names = ["rank", "submitter", "system", "accelerators", "minutes", "minutes_low", "minutes_high", "tied_ranks", "slower"];
      return names.map((name) => row[name] ?? null);
    }),
    ids: entries.map((row) => getText(row, "result_id") || null),
  };
  return { name: RANKING, finding, numbers: [table], specification: makeSpecification(records, finding) };
}

function makeSpecification(records: Record<string, any>[], finding: string): Record<string, unknown> {
  const names = [...Object.values(OUTCOMES), FIRST];
  const ends = records.flatMap((row) => [row.minutes_low, row.minutes, row.minutes_high]).filter((value) => typeof value === "number");
  const log = Math.min(...ends) > 0 && Math.max(...ends) > WIDE_RANGE * Math.min(...ends);
  const title = `Time to train (min${log ? ", log scale" : ""})`;
  const x = { field: "minutes", type: "quantitative", title, scale: log ? { type: "log", nice: false, padding: 6 } : { zero: false } };
  const y = { field: "name", type: "nominal", title: null, sort: null, axis: { labelLimit: 320, grid: true } };
  const color = { field: "slower", type: "nominal", title: "Surely slower than the one above", scale: { domain: names, range: OUTCOME_COLORS } };
  const shape = { ...color, scale: { domain: names, range: ["circle", "diamond", "square", "triangle-up", "circle"] } };
  const titles: [string, string][] = [["name", "Rank and system"], ["minutes", "Minutes"], ["minutes_low", "95 % interval from (min)"], ["minutes_high", "to (min)"], ["tied_ranks", "Tied with ranks"]];
  return {
    title: { text: finding, anchor: "start" },
    data: { values: records },
    width: 420,
    height: { step: 18 },
    encoding: { y, color },
    layer: [
      { mark: { type: "rule", strokeWidth: 2 }, encoding: { x: { ...x, field: "minutes_low" }, x2: { field: "minutes_high" } } },
      { mark: { type: "point", filled: true, size: 55, opacity: 1 }, encoding: { x, shape, tooltip: titles.map(([field, title]) => ({ field, title, type: "nominal" })) } },
    ],
    config: { legend: { orient: "bottom", columns: 3, labelLimit: 0 } },
  };
}
