// Which rows the table shows, in which order, and how many there would be for each value of each facet.
import type { Dataset, Facet, FacetName } from "./dataset";
import { normaliseName } from "./frame";

export interface Filters {
  search: string;
  analysis: string | null;
  picked: Partial<Record<FacetName, string[]>>;
  sort: string;
  maxLatency: number | null; // milliseconds
  all: boolean; // also rows that may not be ranked
}

/** Rows that may be ranked against each other. */
export interface Group {
  label: string;
  task: string;
  item: string;
  start: number; // position of the first row
  size: number;
}

export interface Selection {
  rows: Int32Array;
  groups: Group[]; // none where any two rows may stand one below the other
  counts: Map<FacetName, Int32Array>;
  unusable: number; // rows that match and may not be ranked
  showsUnusable: boolean; // by choice, or as nothing else matches
}

const SEARCHED = [
  "model", "model_printed", "variant", "dataset", "dataset_printed", "platform", "chip", "framework", "sdk_version", "publisher",
  "origin", "task", "precision", "precision_printed", "mlperf_id", "table_name", "document_id", "phase", "family", "processor",
  "submitter", "item",
];
const FIGURES = [
  "throughput", "latency_ms", "minutes", "time_to_train_s", "time_to_result_s", "efficiency", "power_w", "quality_value",
  "latency_isolated_ms", "latency_p90_ms", "latency_p99_ms", "batch_size",
];
const MIN_DIGITS = 3; // of a whole number for it to be searched for in figures, since small ones are everywhere
const NONE = -1;
const SEVERAL = -2;

export function selectRows(data: Dataset, filters: Filters): Selection {
  const candidates = findCandidates(data, filters);
  const picks = data.facets.map((facet) => encodePicked(facet, filters.picked[facet.name]));
  const counts = data.facets.map((facet) => new Int32Array(facet.words.length));
  const matches = new Int32Array(data.rows);
  let [size, unusable] = [0, 0];
  for (let row = 0; row < data.rows; row += 1) {
    if (!candidates[row]) continue;
    // The count of a value is that of the rows which all other facets accept.
    const failed = findFailing(data.facets, picks, row);
    if (failed === SEVERAL) continue;
    const isUsable = data.isUsable(row);
    if (!isUsable && failed === NONE) unusable += 1;
    if (!isUsable && !filters.all) continue;
    if (failed === NONE) {
      matches[size] = row;
      size += 1;
      for (let facet = 0; facet < counts.length; facet += 1) countRow(data.facets[facet]!, counts[facet]!, row);
    } else countRow(data.facets[failed]!, counts[failed]!, row);
  }
  if (size === 0 && unusable > 0) return selectRows(data, { ...filters, all: true });
  const rows = matches.subarray(0, size);
  sortRows(data, rows, filters.sort);
  const groups = groupRows(data, rows, filters.sort.replace(/^-/, ""));
  return { rows, groups, counts: new Map(data.facets.map((facet, index) => [facet.name, counts[index]!])), unusable, showsUnusable: filters.all };
}

/** The one facet that rejects a row, NONE or SEVERAL. */
function findFailing(facets: Facet[], picks: (Uint8Array | null)[], row: number): number {
  let failed = NONE;
  for (let index = 0; index < facets.length; index += 1) {
    const picked = picks[index];
    if (!picked || accepts(facets[index]!, picked, row)) continue;
    if (failed !== NONE) return SEVERAL;
    failed = index;
  }
  return failed;
}

function accepts(facet: Facet, picked: Uint8Array, row: number): boolean {
  if (facet.codes) return picked[facet.codes[row]!] === 1;
  return facet.codeLists![row]!.some((code) => picked[code] === 1);
}

function countRow(facet: Facet, counts: Int32Array, row: number): void {
  if (facet.codes) counts[facet.codes[row]!]! += 1;
  else for (const code of facet.codeLists![row]!) counts[code]! += 1;
}

function encodePicked(facet: Facet, words: string[] | undefined): Uint8Array | null {
  if (!words?.length) return null;
  return Uint8Array.from(facet.words, (word) => (words.includes(word) ? 1 : 0));
}

// What two figures must share to be ranked against each other. Latencies and batch sizes have one unit, and only a reader can tell.
const RATES = new Set(["throughput", "throughput_per_chip", "throughput_per_1000_usd", "efficiency"]);
const TIMES = new Set(["minutes", "time_to_train_s"]);

/** Sorts rows in place into groups that may be ranked, the largest first and rows without the figure last. */
function groupRows(data: Dataset, rows: Int32Array, name: string): Group[] {
  if (!RATES.has(name) && !TIMES.has(name)) return [];
  const groups = new Map<string, { group: Group; members: number[] }>();
  for (const row of rows) {
    const [task, item, model] = ["task", "item", "model"].map((column) => data.getText(row, column)) as [string, string, string];
    const blank = data.getValue(row, name) === null;
    const sparse = data.getText(row, "sparsity") ? ", sparse network" : "";
    const label = blank ? "" : RATES.has(name) ? `${task}, ${item ? `${item}s/s` : "unit not printed"}${sparse}` : `${task} of ${model}, minutes`;
    const known = groups.get(label) ?? { group: { label, task, item, start: 0, size: 0 }, members: [] };
    known.members.push(row);
    groups.set(label, known);
  }
  const ordered = [...groups.values()].sort(
    (left, right) => Number(!left.group.label) - Number(!right.group.label) || right.members.length - left.members.length,
  );
  if (ordered.filter(({ group }) => group.label).length < 2) return [];
  let start = 0;
  for (const { group, members } of ordered) {
    rows.set(members, start);
    Object.assign(group, { start, size: members.length });
    start += members.length;
  }
  return ordered.map(({ group }) => group);
}

/** Rows of the analysis, within the latency, that have every word of the search in some column. */
function findCandidates(data: Dataset, filters: Filters): Uint8Array {
  const candidates = new Uint8Array(data.rows).fill(filters.analysis === null ? 1 : 0);
  if (filters.analysis !== null) for (const row of data.getAnalysisRows(filters.analysis)) candidates[row] = 1;
  const latency = data.getColumn("latency_ms");
  if (filters.maxLatency !== null && latency.kind === "number")
    for (let row = 0; row < data.rows; row += 1) if (!((latency.values[row] ?? Infinity) <= filters.maxLatency)) candidates[row] = 0;
  for (const { word, columns } of parseTerms(filters.search)) {
    const matches = columns ? findFigure(data, word, columns) : findWord(data, word);
    for (let row = 0; row < data.rows; row += 1) candidates[row]! &= matches[row]!;
  }
  return candidates;
}

/** A word to find in a row, or a figure of the columns that its unit belongs to. */
interface Term {
  word: string;
  columns: string[] | null;
}

const LATENCIES = ["latency_ms", "latency_isolated_ms", "latency_p90_ms", "latency_p99_ms"];
const UNITS: Record<string, string[]> = {
  "/s": ["throughput"],
  ms: LATENCIES,
  min: ["minutes"],
  s: ["time_to_train_s", "time_to_result_s"],
  w: ["power_w"],
};

/** Splits a search into words; a figure takes the unit behind it, as in 0.58 ms and 46174 images/s. */
function parseTerms(search: string): Term[] {
  const terms: Term[] = [];
  for (const word of search.toLowerCase().split(/\s+/).filter(Boolean)) {
    const unit = /[a-z]\/s$/.test(word) ? "/s" : word;
    const columns = Object.hasOwn(UNITS, unit) ? UNITS[unit]! : null;
    const last = terms.at(-1);
    if (columns && last && parseFigure(last.word)) last.columns = columns;
    else terms.push({ word, columns: null });
  }
  return terms;
}

/** Parses a word of a search as a figure: 9297, 9,297 or 40×. */
function parseFigure(word: string): { value: number; decimals: number } | null {
  const [, digits, fraction = ""] = /^(\d+|\d{1,3}(?:,\d{3})+)(\.\d+)?[x×%]?$/i.exec(word) ?? [];
  if (!digits) return null;
  return { value: Number(digits.replaceAll(",", "") + fraction), decimals: Math.max(0, fraction.length - 1) };
}

/** Marks rows with a figure that is the number, or is rounded to it; of some columns, also one of few digits. */
function findFigure(data: Dataset, word: string, columns = FIGURES): Uint8Array {
  const matches = new Uint8Array(data.rows);
  const figure = parseFigure(word);
  if (!figure || (columns === FIGURES && figure.decimals === 0 && word.replace(/\D/g, "").length < MIN_DIGITS)) return matches;
  const margin = 0.5 * 10 ** -figure.decimals;
  for (const name of columns) {
    const column = data.getColumn(name);
    if (column.kind !== "number") continue;
    for (let row = 0; row < data.rows; row += 1) {
      const value = column.values[row];
      if (value !== null && value !== undefined && Math.abs(value - figure.value) <= margin * (1 + 1e-9)) matches[row] = 1;
    }
  }
  return matches;
}

/** The unit of an item as a reader may type it: images/s. */
function listUnits(item: string): string {
  return `${item}s/s ${item}/s ${item}s/sec`;
}

function findWord(data: Dataset, word: string): Uint8Array {
  const matches = findFigure(data, word);
  if (/^r[0-9a-f]{16}$/.test(word)) matches[data.findRow(word)] = 1;
  for (const name of SEARCHED) {
    const column = data.getColumn(name);
    if (column.kind !== "text") continue;
    const aliases = data.data.aliases[name] ?? {};
    const matching = column.words.map((value) => {
      const others = name === "item" ? listUnits(value) : Object.hasOwn(aliases, value) ? aliases[value]! : "";
      const texts = [value.toLowerCase(), others];
      return texts.some((text) => text.includes(word)) || matchesSpelling(value, word) ? 1 : 0;
    });
    if (!matching.includes(1)) continue;
    for (let row = 0; row < data.rows; row += 1) matches[row]! |= matching[column.codes[row]!] ?? 0;
  }
  return matches;
}

function matchesSpelling(value: string, word: string): boolean {
  const spelling = normaliseName(word);
  return spelling !== "" && normaliseName(value).includes(spelling);
}

/** Sorts in place, blanks last in both directions; an unknown column leaves the order unchanged. */
function sortRows(data: Dataset, rows: Int32Array, sort: string): void {
  const name = sort.replace(/^-/, "");
  if (name !== "flags" && !data.has(name)) return;
  const keys = makeSortKeys(data, name);
  const sign = sort.startsWith("-") ? -1 : 1;
  rows.sort((left, right) => {
    const [first, second] = [keys[left]!, keys[right]!];
    if (Number.isNaN(first)) return Number.isNaN(second) ? left - right : 1;
    if (Number.isNaN(second)) return -1;
    return sign * (first - second) || left - right;
  });
}

function makeSortKeys(data: Dataset, name: string): Float64Array {
  const make = (key: (row: number) => number | null | undefined) => {
    const keys = new Float64Array(data.rows);
    for (let row = 0; row < data.rows; row += 1) keys[row] = key(row) ?? Number.NaN;
    return keys;
  };
  if (name === "flags") return make((row) => data.flags.get(row)?.length);
  const column = data.getColumn(name);
  if (column.kind === "number") return make((row) => column.values[row]);
  const order = new Intl.Collator("en", { numeric: true });
  const ranks = new Float64Array(column.words.length);
  const sorted = column.words.map((word, code) => ({ word, code })).sort((left, right) => order.compare(left.word, right.word));
  sorted.forEach(({ code }, rank) => (ranks[code] = rank));
  return make((row) => ranks[column.codes[row]!]);
}
