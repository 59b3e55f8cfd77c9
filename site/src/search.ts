// What a search means: figures with their unit, machines to compare, and words for a view.
import type { Dataset } from "./dataset";
import { formatCount } from "./format";
import { Index } from "./pairs";
import { formatHash } from "./route";

/** Something to find in a row: a figure, perhaps of some columns only, or any of some words. */
export interface Term {
  words: string[];
  columns: string[] | null; // of the figure, where its unit says which
}

export interface Offer {
  title: string;
  hash: string;
}

// The columns that a unit belongs to. What ends in /s is a rate.
const LATENCIES = ["latency_ms", "latency_isolated_ms", "latency_p90_ms", "latency_p99_ms"];
const UNITS: Record<string, string[]> = {
  ms: LATENCIES,
  min: ["minutes"],
  mins: ["minutes"],
  minutes: ["minutes"],
  s: ["time_to_train_s", "time_to_result_s"],
  seconds: ["time_to_train_s", "time_to_result_s"],
  w: ["power_w"],
  watts: ["power_w"],
};
const RATES = ["throughput"];
const FILLER = new Set("a an the of on in for and or is are was what which how vs versus against with within under below at to than me show compare".split(" "));
const BEST = new Set(["fastest", "best", "quickest", "highest", "fast", "top"]);

/** Words for a view rather than for a row. */
const VIEWS: [words: RegExp, title: string, hash: string][] = [
  [/^(watts?|power|energy|efficien\w*|joules?)$/, "Throughput per watt", "#/results?per=watt&sort=-efficiency"],
  [/^(joules?|energy)$/, "Joules per image and per token", "energy.html"],
  [/^(prices?|costs?|dollars?|usd|\$|cheap\w*|money)$/, "Throughput per $1,000 of list price", "#/results?per=dollar&sort=-throughput_per_1000_usd"],
  [/^(claims?|claimed|verdicts?|true)$/, "Claims, recomputed", "#/claims"],
  [/^(rankings?|leaders?|tied?)$/, "MLPerf rankings with ties", "#/charts/mlperf_ranking"],
  [/^(scal\w+)$/, "Does speed grow with the chips?", "#/charts/scaling"],
  [/^(replicat\w+|independent\w*|reproduc\w+)$/, "What others measured", "replications.html"],
  [/^(download\w*|csv|parquet|excel|dataset)$/, "Downloads", "downloads.html"],
  [/^(cite|citation|bibtex|licen[cs]e)$/, "How to cite", "#/about/cite"],
  [/^(glossary|meaning|definition|words?)$/, "Glossary", "#/about/glossary"],
  [/^(predict\w*|emulat\w+|simulat\w+)$/, "Emulator", "#/emulator"],
  [/^(memory|bandwidth|matmul|gemm|microbenchmarks?)$/, "Microbenchmarks", "#/microbenchmarks"],
  [/^(sql|query|duckdb)$/, "SQL", "#/sql"],
];
const MEASURE = /^(throughput|latency|speed|performance|time|per)$/; // words of columns, not of rows

const FIGURE = /^([≈~]?)(\d+(?:,\d{3})*(?:\.\d+)?[x×%]?)([a-z/$]*)$/i;

/** Splits a search into terms; a figure takes the unit behind it. Fillers and words for a view are left out. */
export function parseTerms(search: string): Term[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const terms: Term[] = [];
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index]!;
    const [, , figure, glued = ""] = FIGURE.exec(word) ?? [];
    const unit = figure && (glued || words[index + 1] || "");
    const columns = unit ? (Object.hasOwn(UNITS, unit) ? UNITS[unit]! : /[a-z]\/s(ec)?$/.test(unit) ? RATES : null) : null;
    if (figure && columns) {
      terms.push({ words: [figure], columns });
      if (!glued) index += 1;
    } else if (!FILLER.has(word) && !BEST.has(word) && !MEASURE.test(word) && !VIEWS.some(([pattern]) => pattern.test(word))) terms.push({ words: [word], columns: null });
  }
  return terms;
}

const squeeze = (name: string) => name.toLowerCase().replace(/[\s_-]+/g, "");

/** The values of a column that a word names, by their spelling or another name. */
function findNames(data: Dataset, column: string, word: string): string[] {
  const values = data.getColumn(column);
  if (values.kind !== "text" || squeeze(word).length < 2) return [];
  const aliases = data.data.aliases[column] ?? {};
  return values.words.filter((value) => squeeze(value).includes(squeeze(word)) || (Object.hasOwn(aliases, value) && ` ${aliases[value]} `.includes(` ${squeeze(word)} `)));
}

/** The names that words name, those with the most rows first. */
function rankNames(data: Dataset, column: string, terms: Term[]): string[] {
  const names = new Set(terms.flatMap(({ words: [word], columns }) => (columns ? [] : findNames(data, column, word!))));
  const values = data.getColumn(column);
  if (values.kind !== "text" || names.size === 0) return [];
  const counts = new Map([...names].map((name) => [name, 0]));
  for (const code of values.codes) {
    const word = values.words[code] ?? "";
    if (counts.has(word)) counts.set(word, counts.get(word)! + 1);
  }
  return [...counts].sort(([, left], [, right]) => right - left).map(([name]) => name);
}

const indexes = new WeakMap<Dataset, Index>();

/** Two words that each name machines, no machine both. */
export function findMachines(data: Dataset, terms: Term[]): [Term, Term] | null {
  const named = terms.filter(({ words: [word], columns }) => columns === null && findNames(data, "platform", word!).length > 0 && findNames(data, "model", word!).length === 0);
  for (const first of named)
    for (const second of named) {
      const others = new Set(findNames(data, "platform", second.words[0]!));
      if (first !== second && !findNames(data, "platform", first.words[0]!).some((name) => others.has(name))) return terms.indexOf(first) < terms.indexOf(second) ? [first, second] : [second, first];
    }
  return null;
}

/** What else a search may mean, each with the view that answers it. */
export function listOffers(data: Dataset, search: string): Offer[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const terms = parseTerms(search);
  const offers: Offer[] = [];
  const machines = findMachines(data, terms);
  if (machines) {
    if (!indexes.has(data)) indexes.set(data, new Index(data, "platform"));
    const index = indexes.get(data)!;
    const [lefts, rights] = machines.map(({ words: [word] }) => findNames(data, "platform", word!));
    const count = (a: string, b: string, on = "") => index.listPairs(a, b, on).length;
    const pairs = lefts!.flatMap((a) => rights!.map((b) => ({ a, b, shared: count(a, b) })));
    pairs.sort((one, other) => other.shared - one.shared || one.a.length + one.b.length - other.a.length - other.b.length);
    const add = (a: string, b: string, shared: number, network = "") =>
      offers.push({ title: `Compare ${a} with ${b}${network && ` on ${network}`} (${formatCount(shared, "test")})`, hash: formatHash("compare", "", { a, b, ...(network ? { network } : {}) }) });
    const named = rankNames(data, "network", terms.filter((term) => !machines.includes(term))).flatMap((network) => pairs.map(({ a, b }) => ({ a, b, network, shared: count(a, b, network) })));
    for (const { a, b, network, shared } of named.filter(({ shared }) => shared > 0).sort((one, other) => other.shared - one.shared).slice(0, 3)) add(a, b, shared, network);
    for (const { a, b, shared } of pairs.slice(0, 3)) add(a, b, shared);
  }
  if (words.some((word) => BEST.has(word)) && !machines) {
    const limit = /([\d.]+)\s*ms/.exec(search.toLowerCase())?.[1];
    const model = rankNames(data, "model", terms)[0];
    const machine = terms.find(({ words: [word], columns }) => columns === null && findNames(data, "model", word!).length === 0 && findNames(data, "platform", word!).length > 0)?.words[0];
    if (model)
      offers.push({
        title: `The fastest on ${model}${machine ? ` of the machines named ${machine}` : ""}${limit ? ` within ${limit} ms` : ""}`,
        hash: formatHash("results", "", { ...(machine ? { q: machine } : {}), model, task: "inference", ...(limit ? { ms: limit } : {}), sort: "-throughput" }),
      });
  }
  for (const [pattern, title, hash] of VIEWS) if (words.some((word) => pattern.test(word))) offers.push({ title, hash });
  return offers.filter((offer, index) => offers.findIndex(({ hash }) => hash === offer.hash) === index);
}
