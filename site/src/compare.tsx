// Two machines, or two SDKs, side by side on the tests that they share; where they share none, the condition that fails.
import { useMemo, useState } from "preact/hooks";
import type { Dataset } from "./dataset";
import { formatCount, formatUnit } from "./format";
import { FlagMark, Origin } from "./marks";
import { CONDITIONS, Index, MEASURES, type Pair, SIDES } from "./pairs";
import { Choice, LeftOut, PlainTable } from "./parts";
import { formatHash, setParameters, openPanel } from "./route";

const ASKED = { a: "Bow-2000", b: "1x A100-40GB", model: "BERT-Large" }; // the comparison that most ask for
const USUAL = 20; // names that are offered before all others
const ALL = "";

export function Compare({ data, query }: { data: Dataset; query: URLSearchParams }) {
  const asked = query.get("by") ?? "platform";
  const by = Object.hasOwn(SIDES, asked) ? asked : "platform";
  const { noun } = SIDES[by]!;
  const index = useMemo(() => new Index(data, by), [data, by]);
  const names = useMemo(() => index.listNames(), [index]);
  const first = by === "platform" && !query.has("a") && !query.has("b") && names.includes(ASKED.a) && names.includes(ASKED.b);
  const left = query.get("a") ?? (first ? ASKED.a : names[0] ?? "");
  const partners = useMemo(() => index.listPartners(left), [index, left]);
  const right = query.get("b") ?? (first ? ASKED.b : partners[0]?.name ?? "");
  const models = useMemo(() => index.listModels(left, right), [index, left, right]);
  const model = query.get("model") ?? (first ? ASKED.model : ALL);
  const pairs = useMemo(() => index.listPairs(left, right, model), [index, left, right, model]);
  const say = (name: string) => (noun === "SDK" ? `SDK ${name}` : name);
  const title = `${say(left)} against ${say(right)}${model && ` on ${model}`}`;
  document.title = `${title} · ipu-results`;
  return (
    <div class="compare">
      <h2>{title}</h2>
      <div class="predict">
        <Choice label="Compare" value={by} options={Object.entries(SIDES).map(([name, { title }]) => [name, title])} onChange={(side) => setParameters({ by: side, a: null, b: null, model: null })} />
        <Picker label={`First ${noun}`} value={left} usual={names.map((name) => ({ name }))} all={names} onChange={(a) => setParameters({ a, b: right, model: null })} />
        <Picker label={`Second ${noun}, by tests shared`} value={right} usual={partners} all={names} onChange={(b) => setParameters({ a: left, b, model: null })} />
        <Choice label="Model" value={model} options={[[ALL, "all that both ran"], ...models.map((name): [string, string] => [name, name])]} onChange={(name) => setParameters({ a: left, b: right, model: name })} />
        <button type="button" class="swap" onClick={() => setParameters({ a: right, b: left, model })}>
          Swap
        </button>
      </div>
      {pairs.length > 0 && <Answer data={data} left={say(left)} right={say(right)} pairs={pairs} official={by === "platform" && model && pairs.every(({ measure }) => measure.name !== "minutes") ? index.listOfficial(left, right, model) : []} model={model} />}
      {MEASURES.map(({ name, title }) => {
        const shown = pairs.filter(({ measure }) => measure.name === name);
        return shown.length > 0 && <Pairs key={name} data={data} title={title} left={left} right={right} pairs={shown} by={by} ordered={model !== ALL} />;
      })}
      <LeftOut count={index.countUnusable([left, right], model)} />
      {pairs.length === 0 && <Gaps index={index} left={left} right={right} model={model} models={model ? [model] : models} />}
      <details>
        <summary>What is compared, and what is not</summary>
        <ul>
          <li>Two figures are compared if model, task, training phase, sequence length and unit are the same.</li>
          <li>Latencies need the same batch size and basis as well; latencies of a single item are left out.</li>
          <li>MLPerf minutes are compared with MLPerf minutes of the same model, division and dataset only.</li>
          <li>
            Of all pairs of rows of one test, the one with the fewest differences is shown, then the one with the best figures. What
            still differs is named, and can be the reason for the ratio.
          </li>
        </ul>
      </details>
    </div>
  );
}

const WHO: Record<string, string> = { vendor: "by the makers of the chips", independent: "by others", official: "from MLPerf logs", own: "measured here" };
const MAX_OFFICIAL = 3;

/** Who is faster in a sentence, what speaks against it, and the MLPerf times of like machines where these two have none. */
function Answer({ data, left, right, pairs, official, model }: { data: Dataset; left: string; right: string; pairs: Pair[]; official: Pair[]; model: string }) {
  const ratios = pairs.map(({ ratio }) => ratio).sort((one, other) => one - other);
  const faster = ratios.filter((ratio) => ratio > 1).length;
  const slower = ratios.filter((ratio) => ratio < 1).length;
  const rows = pairs.flatMap(({ left, right }) => [left, right]);
  const who = Object.entries(WHO).map(([name, words]): [number, string] => [rows.filter((row) => data.getText(row, "relationship") === name).length, words]);
  const counts = pairs.map(({ differences }) => differences.length);
  const range = (values: string[]) => [...new Set([values[0]!, values.at(-1)!])].join(" to ");
  return (
    <>
      <p>
        <strong>
          {faster >= slower ? left : right} is faster in {Math.max(faster, slower)} of {formatCount(pairs.length, "test")}
        </strong>
        : {left} is {range([ratios[0]!, ratios.at(-1)!].map(formatRatio))} as fast as {right}. Of the {rows.length} figures,{" "}
        {who.filter(([count]) => count > 0).map(([count, words]) => `${count} are ${words}`).join(", ")}. Besides the machine, {range([Math.min(...counts), Math.max(...counts)].map(String))} conditions differ in a
        test, and any of them can be the reason.
      </p>
      {official.length > 0 && (
        <p>
          MLPerf, with rules and logs, has these times of as many of the same chips:{" "}
          {official.slice(0, MAX_OFFICIAL).map((pair) => {
            const [a, b] = [pair.left, pair.right].map((row) => data.getText(row, "platform"));
            return (
              <a key={`${a} ${b}`} class="result" href={formatHash("compare", "", { a: a!, b: b!, model })}>
                {a} is {formatRatio(pair.ratio)} as fast as {b}, round {data.getText(pair.left, "mlperf_round")}
              </a>
            );
          })}
        </p>
      )}
    </>
  );
}

interface PickerProps {
  label: string;
  value: string;
  usual: { name: string; shared?: number }[];
  all: string[];
  onChange: (name: string) => void;
}

const SEARCH = "\0search";

/** A choice of the names with the most tests; the last one opens a search of all names. */
function Picker({ label, value, usual, all, onChange }: PickerProps) {
  const [searching, setSearching] = useState(false);
  if (searching)
    return (
      <label>
        {label}
        <input
          list="names"
          type="search"
          placeholder={`Any of ${all.length}`}
          ref={(input) => input?.focus()}
          onChange={(event) => {
            const name = all.find((each) => each.toLowerCase() === event.currentTarget.value.trim().toLowerCase());
            if (name) onChange(name);
            setSearching(false);
          }}
        />
        <datalist id="names">
          {all.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
    );
  const options = usual.slice(0, USUAL).map(({ name, shared }): [string, string] => [name, shared ? `${name} (${shared})` : name]);
  return <Choice label={label} value={value} options={[...options, [SEARCH, `Search all ${all.length} …`]]} onChange={(name) => (name === SEARCH ? setSearching(true) : onChange(name))} />;
}

/** Names the condition that fails, for each model that both ran. */
function Gaps({ index, left, right, model, models }: { index: Index; left: string; right: string; model: string; models: string[] }) {
  const siblings = index.listSiblings(left, right, model);
  return (
    <div role="status">
      <p>
        {left} and {right || "nothing else"} share no test that may be compared{models.length === 0 && ": no model has rows of both"}.
      </p>
      {models.length > 0 && (
        <>
          <p>What is missing, {left} / {right}:</p>
          <ul>
            {models.map((model) => (
              <li key={model}>
                <strong>{model}</strong>: {index.explainGap(left, right, model)}.
              </li>
            ))}
          </ul>
        </>
      )}
      {siblings.length > 0 && (
        <p>
          Other machines with this chip, in whatever form, that do:{" "}
          {siblings.map((name) => (
            <a key={name} class="result" href={formatHash("compare", "", { a: left, b: name, ...(model ? { model } : {}) })}>
              {name}
            </a>
          ))}
        </p>
      )}
    </div>
  );
}

interface PairsProps {
  data: Dataset;
  title: string;
  left: string;
  right: string;
  pairs: Pair[];
  by: string;
  ordered: boolean; // by test, not by ratio
}

function Pairs({ data, title, left, right, pairs, by, ordered }: PairsProps) {
  const { higherIsBetter, name } = pairs[0]!.measure;
  const number = (pair: Pair, column: string) => Number(data.getValue(pair.left, column) ?? 0);
  const byTest = (first: Pair, second: Pair) => number(first, "sequence_length") - number(second, "sequence_length") || number(first, "batch_size") - number(second, "batch_size");
  const sorted = [...pairs].sort((first, second) => (ordered && byTest(first, second)) || second.ratio - first.ratio);
  const perChip = sorted.some((pair) => pair.perChip !== null && differs(pair, "chip_count"));
  const headings = ["Test", "Batch", left, right, "Times as fast", ...(perChip ? ["Per chip"] : []), "What differs"];
  return (
    <section>
      <h3>
        {title} <small>{formatCount(sorted.length, "test")}, {higherIsBetter ? "higher is better" : "lower is better"}</small>
      </h3>
      <PlainTable label={`${title} of both`} headings={headings} right={headings.slice(1, -1)}>
        {sorted.map((pair) => (
          <tr key={`${pair.left} ${pair.right}`}>
            <td>{describeTest(data, pair, by)}</td>
            <td class="right" data-label="Batch">
              {describeBatch(data, pair)}
            </td>
            <td class="right" data-label={left}>
              <Figure data={data} row={pair.left} name={name} />
            </td>
            <td class="right" data-label={right}>
              <Figure data={data} row={pair.right} name={name} />
            </td>
            <td class="right" data-label="Times as fast">
              <strong>{formatRatio(pair.ratio)}</strong>
            </td>
            {perChip && <td class="right" data-label="Per chip">{differs(pair, "chip_count") && pair.perChip !== null ? formatRatio(pair.perChip) : ""}</td>}
            <td data-label="What differs">{describeDifferences(data, pair)}</td>
          </tr>
        ))}
      </PlainTable>
      {sorted.some((pair) => differs(pair, "latency_scope")) && (
        <p class="note">A latency that is timed on the host has the copies to and from the chip in it; one that is timed on the device has not, and so is shorter.</p>
      )}
    </section>
  );
}

const differs = (pair: Pair, name: string) => pair.differences.some((difference) => difference.name === name);
const formatRatio = (ratio: number) => `${ratio < 100 ? ratio.toPrecision(3) : Math.round(ratio).toLocaleString("en")}×`;

function describeBatch(data: Dataset, { left, right }: Pair): string {
  const [own, other] = [left, right].map((row) => data.formatFigure(row, "batch_size", 15) || "not stated");
  return own === other ? own! : `${own} / ${other}`;
}

function describeTest(data: Dataset, { left, measure }: Pair, by: string) {
  const text = (name: string) => data.getText(left, name);
  const details = [text("task"), text("phase"), text("sequence_length") && `${text("sequence_length")} tokens`];
  if (measure.name === "latency_ms") details.push(text("latency_basis").replace("-", " "));
  if (measure.name === "minutes") details.push(text("division"));
  if (by !== "platform") details.push(text("platform"));
  return (
    <>
      <strong>{text("model")}</strong>{" "}
      <br />
      <small>{details.filter(Boolean).join(", ")}</small>
    </>
  );
}

/** What differs in a pair, but for the batch, which has a column, and the flags of its two figures. */
function describeDifferences(data: Dataset, { differences, left, right, measure }: Pair) {
  const shown = differences.filter(({ name }) => name !== "batch_size");
  const flags = [left, right].flatMap((row) => data.findDoubts(row, measure.name));
  if (shown.length + flags.length === 0) return <small>nothing that is known</small>;
  return (
    <ul class="differences">
      {shown.map(({ name, left, right }) => (
        <li key={name}>
          <small>{CONDITIONS[name]}</small> {left || "unknown"} / {right || "unknown"}
        </li>
      ))}
      {flags.map((flag, index) => (
        <li key={index}>
          <FlagMark flag={flag} title={data.data.rules[flag.rule] ?? ""} /> {(data.data.rules[flag.rule] ?? "").replaceAll("-", " ")}
        </li>
      ))}
    </ul>
  );
}

function Figure({ data, row, name }: { data: Dataset; row: number; name: string }) {
  return (
    <>
      <button type="button" class="figure" aria-haspopup="dialog" onClick={() => openPanel(`${data.getText(row, "result_id")}.${name}`)}>
        {data.formatOnScreen(row, name)} <small>{formatUnit(name, data.getText(row, "item"))}</small>
      </button>
      <br />
      <Origin origin={data.getText(row, "origin")} />
    </>
  );
}
