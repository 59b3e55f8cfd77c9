// Two machines, or two SDKs, side by side on the tests that they share; where they share none, the condition that fails.
import { useState } from "preact/hooks";
import { useAnswer } from "./comparison";
import type { Dataset } from "./dataset";
import { formatCount, formatUnit } from "./format";
import { FlagMark, Origin } from "./marks";
import { Choice, join, LeftOut, PlainTable, SourceButton } from "./parts";
import { formatHash, setParameters } from "./route";

const ASKED = { a: "Bow-2000", b: "1x A100-40GB", model: "BERT-Large" }; // the comparison that most ask for
const USUAL = 20; // names that are offered before all others
const ALL = "";

/** What can be compared, and the word for one of it. */
const SIDES: Record<string, { title: string; noun: string }> = {
  platform: { title: "Machines", noun: "machine" },
  sdk_version: { title: "SDKs", noun: "SDK" },
};

/** Two figures of one test; `ratio` is how many times as fast the left one is. */
interface Pair {
  measure: string;
  title: string;
  higher_is_better: boolean;
  left: string; // result_id
  right: string;
  differences: { name: string; words: string; left: string | null; right: string | null }[];
  ratio: number;
  ratio_per_chip: number | null;
}

/** A pair with the rows of its results on the page. */
type ShownPair = Omit<Pair, "left" | "right"> & { left: number; right: number };

interface OfficialTime {
  left_name: string;
  right_name: string;
  ratio: number;
  round: string;
}

/** What schema/side_by_side/answer.sql says of two names. */
interface SideBySide {
  a: string | null;
  b: string | null;
  names: string[];
  partners: { name: string; tests: number }[];
  models: string[] | null;
  pairs: Pair[] | null;
  official: OfficialTime[] | null;
  siblings: string[] | null;
  gaps: { model: string; reason: string }[] | null;
  unusable: number;
}

export function Compare({ data, query }: { data: Dataset; query: URLSearchParams }) {
  const requested = query.get("by") ?? "platform";
  const by = Object.hasOwn(SIDES, requested) ? requested : "platform";
  const { noun } = SIDES[by]!;
  const isFirst = by === "platform" && !query.has("a") && !query.has("b");
  const asked = isFirst ? ASKED : { a: query.get("a"), b: query.get("b"), model: ALL };
  const model = query.get("model") ?? asked.model;
  const { answer, latest, note } = useAnswer<SideBySide>("side_by_side", { compared: by, a: asked.a, b: asked.b, model: model || null });
  const [left, right] = [asked.a ?? answer?.a ?? "", asked.b ?? answer?.b ?? ""];
  const question = { by, left, right, model };
  const say = (name: string) => (noun === "SDK" ? `SDK ${name}` : name);
  const title = left && right ? `${say(left)} against ${say(right)}${model && ` on ${model}`}` : `Compare two ${noun}s`;
  document.title = `${title} · ipu-results`;
  return (
    <div class="compare">
      <h2>{title}</h2>
      {latest && <Choices {...question} answer={latest} />}
      {note}
      {answer && <Answer {...question} data={data} answer={answer} />}
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

/** What is compared: a side, two names of it, and one model or all. */
interface Question {
  by: string;
  left: string;
  right: string;
  model: string;
}

function Choices({ by, left, right, model, answer }: Question & { answer: SideBySide }) {
  const { noun } = SIDES[by]!;
  const { names, partners } = answer;
  const sides = Object.entries(SIDES).map(([name, { title }]): [string, string] => [name, title]);
  const models = (answer.models ?? []).map((name): [string, string] => [name, name]);
  return (
    <div class="predict">
      <Choice label="Compare" value={by} options={sides} onChange={(side) => setParameters({ by: side, a: null, b: null, model: null })} />
      <Picker label={`First ${noun}`} value={left} usual={names.map((name) => ({ name }))} all={names} onChange={(a) => setParameters({ a, b: right, model: null })} />
      <Picker label={`Second ${noun}, by tests shared`} value={right} usual={partners} all={names} onChange={(b) => setParameters({ a: left, b, model: null })} />
      <Choice label="Model" value={model} options={[[ALL, "all that both ran"], ...models]} onChange={(name) => setParameters({ a: left, b: right, model: name })} />
      <button class="swap" onClick={() => setParameters({ a: right, b: left, model })}>
        Swap
      </button>
    </div>
  );
}

function Answer({ data, answer, ...question }: Question & { data: Dataset; answer: SideBySide }) {
  const pairs = (answer.pairs ?? []).map((pair): ShownPair => ({ ...pair, left: data.findRow(pair.left), right: data.findRow(pair.right) }));
  const titles = [...new Set(pairs.map(({ title }) => title))];
  const hasMinutes = pairs.some(({ measure }) => measure === "minutes");
  return (
    <>
      {pairs.length > 0 && <Summary {...question} data={data} pairs={pairs} />}
      {pairs.length > 0 && !hasMinutes && answer.official && <Official model={question.model} times={answer.official} />}
      {titles.map((title) => (
        <Pairs key={title} {...question} data={data} title={title} pairs={pairs.filter((pair) => pair.title === title)} />
      ))}
      <LeftOut count={answer.unusable} />
      {pairs.length === 0 && <Gaps {...question} gaps={answer.gaps ?? []} siblings={answer.siblings ?? []} />}
    </>
  );
}

const WHO: Record<string, string> = {
  maker: "by the makers of the chips",
  rival: "by makers of other chips",
  neither: "by parties that make no chip",
  both: "by makers together with others",
  own: "measured here",
};

/** Who is faster in a sentence, and what speaks against it. */
function Summary({ data, left, right, pairs }: Question & { data: Dataset; pairs: ShownPair[] }) {
  const ratios = pairs.map(({ ratio }) => ratio).sort((one, other) => one - other);
  const faster = ratios.filter((ratio) => ratio > 1).length;
  const slower = ratios.filter((ratio) => ratio < 1).length;
  const rows = pairs.flatMap(({ left, right }) => [left, right]);
  const who = Object.entries(WHO).map(([name, words]): [number, string] => [rows.filter((row) => data.getText(row, "interest") === name).length, words]);
  const counts = pairs.map(({ differences }) => differences.length);
  const range = (values: string[]) => [...new Set([values[0]!, values.at(-1)!])].join(" to ");
  const unlike = pairs.find((pair) => differs(pair, "chip_count"));
  const count = (row: number) => formatCount(Number(data.getValue(row, "chip_count")), "chip");
  return (
    <p>
      <strong>
        {faster >= slower ? left : right} is faster in {Math.max(faster, slower)} of {formatCount(pairs.length, "test")}
        {unlike && `, ${count(unlike.left)} against ${count(unlike.right)}`}
      </strong>
      : {left} is {range([ratios[0]!, ratios.at(-1)!].map(formatRatio))} as fast as {right}. Of the {rows.length} figures,{" "}
      {who.filter(([count]) => count > 0).map(([count, words]) => `${count} are ${words}`).join(", ")}. Besides the machine, {range([Math.min(...counts), Math.max(...counts)].map(String))} conditions differ in a
      test, and any of them can be the reason.
    </p>
  );
}

/** The MLPerf times of like machines, where the two have none themselves. */
function Official({ model, times }: { model: string; times: OfficialTime[] }) {
  return (
    <p>
      MLPerf, with rules and logs, has these times of as many of the same chips:{" "}
      {times.map(({ left_name, right_name, ratio, round }) => (
        <a key={left_name + right_name} class="result" href={formatHash("compare", "", { a: left_name, b: right_name, model })}>
          {left_name} is {formatRatio(ratio)} as fast as {right_name}, round {round}
        </a>
      ))}
    </p>
  );
}

interface PickerProps {
  label: string;
  value: string;
  usual: { name: string; tests?: number }[];
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
  const options = usual.slice(0, USUAL).map(({ name, tests }): [string, string] => [name, tests ? `${name} (${tests})` : name]);
  return <Choice label={label} value={value} options={[...options, [SEARCH, `Search all ${all.length} …`]]} onChange={(name) => (name === SEARCH ? setSearching(true) : onChange(name))} />;
}

interface GapsProps extends Question {
  gaps: { model: string; reason: string }[];
  siblings: string[];
}

/** Names the condition that fails, for each model that both ran. */
function Gaps({ left, right, model, gaps, siblings }: GapsProps) {
  return (
    <div role="status">
      <p>
        {left} and {right || "nothing else"} share no test that may be compared{gaps.length === 0 && ": no model has rows of both"}.
      </p>
      {gaps.length > 0 && (
        <>
          <p>What is missing, {left} / {right}:</p>
          <ul>
            {gaps.map(({ model, reason }) => (
              <li key={model}>
                <strong>{model}</strong>: {reason}.
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

interface PairsProps extends Question {
  data: Dataset;
  title: string;
  pairs: ShownPair[];
}

function Pairs({ data, title, left, right, pairs, by, model }: PairsProps) {
  const { higher_is_better, measure } = pairs[0]!;
  const number = (pair: ShownPair, column: string) => Number(data.getValue(pair.left, column) ?? 0);
  const byTest = (first: ShownPair, second: ShownPair) => number(first, "sequence_length") - number(second, "sequence_length") || number(first, "batch_size") - number(second, "batch_size");
  const sorted = [...pairs].sort((first, second) => (model !== ALL && byTest(first, second)) || second.ratio - first.ratio);
  const perChip = sorted.some((pair) => pair.ratio_per_chip !== null && differs(pair, "chip_count"));
  const headings = ["Test", "Batch", left, right, "Times as fast", ...(perChip ? ["Per chip"] : []), "What differs"];
  return (
    <section>
      <h3>
        {capitalise(title)} <small>{formatCount(sorted.length, "test")}, {higher_is_better ? "higher is better" : "lower is better"}</small>
      </h3>
      <PlainTable label={`${capitalise(title)} of both`} headings={headings} right={headings.slice(1, -1)}>
        {sorted.map((pair) => (
          <tr key={`${pair.left} ${pair.right}`}>
            <td>{describeTest(data, pair, by)}</td>
            <td class="right" data-label="Batch">
              {describeBatch(data, pair)}
            </td>
            <td class="right" data-label={left}>
              <Figure data={data} row={pair.left} name={measure} />
            </td>
            <td class="right" data-label={right}>
              <Figure data={data} row={pair.right} name={measure} />
            </td>
            <td class="right" data-label="Times as fast">
              <strong>{formatRatio(pair.ratio)}</strong>
            </td>
            {perChip && <td class="right" data-label="Per chip">{differs(pair, "chip_count") && pair.ratio_per_chip !== null ? formatRatio(pair.ratio_per_chip) : ""}</td>}
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

const capitalise = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const differs = (pair: ShownPair, name: string) => pair.differences.some((difference) => difference.name === name);
const formatRatio = (ratio: number) => `${ratio < 100 ? ratio.toPrecision(3) : Math.round(ratio).toLocaleString("en")}×`;

function describeBatch(data: Dataset, { left, right }: ShownPair): string {
  const [own, other] = [left, right].map((row) => data.formatFigure(row, "batch_size", 15) || "not stated");
  return own === other ? own! : `${own} / ${other}`;
}

function describeTest(data: Dataset, { left, measure }: ShownPair, by: string) {
  const text = data.readRow(left);
  const details = [text("task"), text("phase"), text("sequence_length") && `${text("sequence_length")} tokens`];
  if (measure === "latency_ms") details.push(text("latency_basis").replace("-", " "));
  if (measure === "minutes") details.push(text("division"));
  if (by !== "platform") details.push(text("platform"));
  return (
    <>
      <strong>{text("model")}</strong>{" "}
      <br />
      <small>{join(details)}</small>
    </>
  );
}

/** What differs in a pair, but for the batch, which has a column, and the flags of its two figures. */
function describeDifferences(data: Dataset, { differences, left, right, measure }: ShownPair) {
  const shown = differences.filter(({ name }) => name !== "batch_size");
  const flags = [left, right].flatMap((row) => data.findDoubts(row, measure));
  if (shown.length + flags.length === 0) return <small>nothing that is known</small>;
  return (
    <ul class="differences">
      {shown.map(({ name, words, left, right }) => (
        <li key={name}>
          <small>{words}</small> {left || "unknown"} / {right || "unknown"}
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
      <SourceButton of={`${data.getText(row, "result_id")}.${name}`}>
        {data.formatOnScreen(row, name)} <small>{formatUnit(name, data.getText(row, "item"))}</small>
      </SourceButton>
      <br />
      <Origin origin={data.getText(row, "origin")} />
    </>
  );
}
