// Two machines, or two SDKs, side by side on the tests that they share.
import { useMemo } from "preact/hooks";
import type { Dataset } from "./dataset";
import { formatUnit, SOURCES } from "./format";
import { DoubtSign, Origin } from "./marks";
import { CONDITIONS, Index, MEASURES, type Pair, SIDES } from "./pairs";
import { Choice, PlainTable } from "./parts";
import { setParameter, setParameters } from "./route";

export function Compare({ data, query }: { data: Dataset; query: URLSearchParams }) {
  const asked = query.get("by") ?? "platform";
  const by = Object.hasOwn(SIDES, asked) ? asked : "platform";
  const { noun } = SIDES[by]!;
  const index = useMemo(() => new Index(data, by), [data, by]);
  const names = useMemo(() => index.listNames(), [index]);
  const left = query.get("a") ?? findWidest(index);
  const partners = useMemo(() => index.listPartners(left), [index, left]);
  const right = query.get("b") ?? partners[0]?.name ?? "";
  const pairs = useMemo(() => index.listPairs(left, right), [index, left, right]);
  return (
    <div class="compare">
      <h2>
        {[left, right].map((name) => (noun === "SDK" ? `SDK ${name}` : name)).join(" against ")}
      </h2>
      <div class="predict">
        <Choice label="Compare" value={by} options={Object.entries(SIDES).map(([name, { title }]) => [name, title])} onChange={(side) => setParameters({ by: side, a: null, b: null })} />
        <Choice label={`First ${noun}`} value={left} options={names.map((name) => [name, name])} onChange={(a) => setParameters({ a, b: null })} />
        <Choice
          label={`Second ${noun}, by tests shared`}
          value={right}
          options={partners.map(({ name, shared }) => [name, `${name} (${shared})`])}
          onChange={(b) => setParameters({ a: left, b })}
        />
        <button type="button" class="swap" onClick={() => setParameters({ a: right, b: left })}>
          Swap
        </button>
      </div>
      {pairs.length === 0 ? (
        <p role="status">
          {left} and {right || `no other ${noun}`} share no test that may be compared. A network, task, phase and unit must be the same;
          an MLPerf time is never compared with a throughput.
        </p>
      ) : (
        MEASURES.map(({ name, title }) => {
          const shown = pairs.filter(({ measure }) => measure.name === name);
          return shown.length > 0 && <Pairs key={name} data={data} title={title} left={left} right={right} pairs={shown} by={by} />;
        })
      )}
      <details>
        <summary>What is compared, and what is not</summary>
        <ul>
          <li>Two figures are compared if network, task, training phase, sequence length and unit are the same.</li>
          <li>Latencies need the same batch size and basis as well; latencies of a single item are left out.</li>
          <li>MLPerf minutes are compared with MLPerf minutes of the same network, division and dataset only.</li>
          <li>
            Of all pairs of rows of one test, the one with the fewest differences is shown, then the one with the best figures. What
            still differs is named, and can be the reason for the ratio.
          </li>
          <li>Emulated and submitted results, rows with an error flag or a doubt, and repeated rows are left out.</li>
        </ul>
      </details>
    </div>
  );
}

/** The name with the most tests that others have too. */
function findWidest(index: Index): string {
  const count = (name: string) => index.rows.get(name)?.size ?? 0;
  return index.listNames().reduce((best, name) => (count(name) > count(best) ? name : best), "");
}

interface PairsProps {
  data: Dataset;
  title: string;
  left: string;
  right: string;
  pairs: Pair[];
  by: string;
}

function Pairs({ data, title, left, right, pairs, by }: PairsProps) {
  const { higherIsBetter } = pairs[0]!.measure;
  const ordered = [...pairs].sort((first, second) => second.ratio - first.ratio);
  const perChip = ordered.some((pair) => pair.perChip !== null && differs(pair, "chips"));
  const headings = ["Test", left, right, "Times as fast", ...(perChip ? ["Per chip"] : []), "What differs"];
  return (
    <section>
      <h3>
        {title} <small>{higherIsBetter ? "higher is better" : "lower is better"}</small>
      </h3>
      <PlainTable label={`${title} of both`} headings={headings} right={headings.slice(1, -1)}>
        {ordered.map((pair) => (
          <tr key={`${pair.left} ${pair.right}`}>
            <td>{describeTest(data, pair, by)}</td>
            <td class="right" data-label={left}>
              <Figure data={data} row={pair.left} name={pair.measure.name} />
            </td>
            <td class="right" data-label={right}>
              <Figure data={data} row={pair.right} name={pair.measure.name} />
            </td>
            <td class="right" data-label="Times as fast">
              <strong>{formatRatio(pair.ratio)}</strong>
            </td>
            {perChip && <td class="right" data-label="Per chip">{differs(pair, "chips") && pair.perChip !== null ? formatRatio(pair.perChip) : ""}</td>}
            <td data-label="What differs">{describeDifferences(pair)}</td>
          </tr>
        ))}
      </PlainTable>
    </section>
  );
}

const differs = (pair: Pair, name: string) => pair.differences.some((difference) => difference.name === name);
const formatRatio = (ratio: number) => `${ratio < 100 ? ratio.toPrecision(3) : Math.round(ratio).toLocaleString("en")}×`;

function describeTest(data: Dataset, { left, measure }: Pair, by: string) {
  const text = (name: string) => data.getText(left, name);
  const details = [text("task"), text("phase"), text("sequence_length") && `${text("sequence_length")} tokens`];
  if (measure.name === "latency_ms") details.push(`batch ${text("batch_size")}`);
  if (measure.name === "minutes") details.push(text("division"));
  if (by !== "platform") details.push(text("platform"));
  return (
    <>
      <strong>{text("network")}</strong>
      <br />
      <small>{details.filter(Boolean).join(", ")}</small>
    </>
  );
}

function describeDifferences({ differences }: Pair) {
  if (differences.length === 0) return <small>nothing that is known</small>;
  return (
    <ul class="differences">
      {differences.map(({ name, left, right }) => (
        <li key={name}>
          <small>{CONDITIONS[name]}</small> {left || "unknown"} / {right || "unknown"}
        </li>
      ))}
    </ul>
  );
}

function Figure({ data, row, name }: { data: Dataset; row: number; name: string }) {
  const origin = data.getText(row, "origin");
  const column = SOURCES[name] ?? name;
  const flags = (data.flags.get(row) ?? []).filter((flag) => flag.severity !== "info" && flag.column === column);
  return (
    <>
      <button type="button" class="figure" aria-haspopup="dialog" onClick={() => setParameter("show", `${data.getText(row, "result_id")}.${name}`)}>
        <DoubtSign flags={flags} />
        {data.formatOnScreen(row, name)} <small>{formatUnit(name, data.getText(row, "item"))}</small>
      </button>
      <br />
      <Origin origin={origin} />
    </>
  );
}
