// The ranking of a benchmark of MLPerf Training, with the interval of each score and ties.
import { useMemo } from "preact/hooks";
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatFigure } from "./format";
import { type Frame, getRows, getText, type Row } from "./frame";
import { Choice, join, LeftOut, PlainTable, SourceButton } from "./parts";
import { setParameter } from "./route";

export const RANKING = "mlperf_ranking";
export const RANKING_QUESTION = "Who leads an MLPerf benchmark, and who is tied?";

// Whether the runs show that an entry is slower than the one above, by the column `outcome`.
const OUTCOMES: Record<string, string> = { separable: "yes", tied: "no, tied", untested: "not tested" };
const FIRST = "first";
const HEADINGS = ["Rank", "Submitter", "Machine", "Chips", "Minutes", "95 % interval", "Surely slower", "Tied with ranks"];
const FIGURES = ["Rank", "Chips", "Minutes", "95 % interval"];
const DIGITS = 5; // of what is computed from logs
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
  const inRound = rows.filter((row) => row.round === round);
  const benchmark = pick(list(inRound, "benchmark"), query.get("benchmark"), "resnet");
  const all = inRound.filter((row) => row.benchmark === benchmark);
  const entries = all.filter((row) => row.usable === "true");
  const unscored = Number(entries[0]?.["unscored"] ?? 0);
  const published = Number(entries[0]?.["published"] ?? 0);
  const tied = entries.filter((row) => describeOutcome(row).startsWith("no,")).length;
  const choose = (name: string, values: string[], value: string, label: string) => (
    <Choice label={label} value={value} options={values.map((each) => [each, each])} onChange={(picked) => setParameter(name, picked)} />
  );
  return (
    <>
      <h2>
        MLPerf v{round}, {benchmark}: the runs cannot separate {tied} of the {Math.max(0, entries.length - 1)} closed entries from the one
        above.
      </h2>
      <div class="predict">
        {choose("round", rounds, round, "Round")}
        {choose("benchmark", list(inRound, "benchmark"), benchmark, "Benchmark")}
      </div>
      <LeftOut count={all.length - entries.length} />
      <PlainTable label="Ranking" headings={HEADINGS} right={FIGURES}>
        {entries.map((row, index) => (
          <Entry key={index} data={data} row={row} />
        ))}
      </PlainTable>
      <h3>What the rows cannot show</h3>
      <ul class="caveats">
        <li>Systems of all sizes are ranked together, so a larger machine leads.</li>
        <li>The interval says how far this score may be off at 95 %. Whether two are tied, it does not say: intervals may overlap and their entries be separable.</li>
        <li>“Surely slower” is said of the entry above, by a test of the runs of both: two are tied if it does not reject equal scores at 5 %. More runs could separate them.</li>
        {unscored > 0 && <li>{unscored} more published entries have no score here, as their logs are missing. {published < unscored ? "Each whose minutes are not known may be faster, so ranks are lower bounds." : "Ranks count their published minutes."}</li>}
        <li>{ATTRIBUTION}</li>
      </ul>
    </>
  );
}

const describeOutcome = (row: Row) => OUTCOMES[getText(row, "outcome")] ?? FIRST;

function Entry({ data, row }: { data: Dataset; row: Row }) {
  const id = getText(row, "result_id");
  const figure = (name: string) => formatFigure(row[name] ?? null, DIGITS);
  const interval = join([figure("minutes_low"), figure("minutes_high")], " to ");
  return (
    <tr>
      <td class="right">{row.rank}</td>
      <td>{row.submitter}</td>
      <td>{row.platform}</td>
      <td class="right">{row.chip_count}</td>
      <td class="right">
        {data.findRow(id) < 0 ? (
          figure("minutes")
        ) : (
          <SourceButton of={id}>{figure("minutes")}</SourceButton>
        )}
      </td>
      <td class="right">{interval}</td>
      <td>{describeOutcome(row)}</td>
      <td>{row.tied_ranks}</td>
    </tr>
  );
}

/** The requested value where there is one, else a usual one, else the first. */
function pick(values: string[], requested: string | null, usual: string): string {
  return values.find((value) => value === requested) ?? values.find((value) => value === usual) ?? values[0]!;
}
