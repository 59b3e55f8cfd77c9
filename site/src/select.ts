// Which rows a state of the table shows, in which order, and how many there would be under each value of each facet.
import type { Dataset, Facet, FacetName } from "./dataset";

export interface Asked {
  words: string;
  set: string | null;
  picked: Partial<Record<FacetName, string[]>>;
  sort: string;
}

export interface Selection {
  rows: Int32Array;
  counts: Map<FacetName, Int32Array>;
}

const SEARCHED = [
  "model", "variant", "dataset", "platform", "chip", "framework", "sdk_version", "publisher", "origin", "task",
  "precision", "compute_precision", "mlperf_id", "table_name", "document_id", "result_id",
];

export function select(data: Dataset, asked: Asked): Selection {
  const within = base(data, asked);
  const picks = data.facets.map((facet) => picksOf(facet, asked.picked[facet.name]));
  const counts = data.facets.map((facet) => new Int32Array(facet.words.length));
  const found = new Int32Array(data.rows);
  let size = 0;
  for (let row = 0; row < data.rows; row += 1) {
    if (!within[row]) continue;
    // A value's count is that of the rows which every other facet lets through.
    const failed = failing(data.facets, picks, row);
    if (failed === SEVERAL) continue;
    if (failed === NONE) {
      found[size] = row;
      size += 1;
      for (let facet = 0; facet < counts.length; facet += 1) count(data.facets[facet]!, counts[facet]!, row);
    } else count(data.facets[failed]!, counts[failed]!, row);
  }
  const rows = found.subarray(0, size);
  sorted(data, rows, asked.sort);
  return { rows, counts: new Map(data.facets.map((facet, index) => [facet.name, counts[index]!])) };
}

const NONE = -1;
const SEVERAL = -2;

function failing(facets: Facet[], picks: (Uint8Array | null)[], row: number): number {
  let failed = NONE;
  for (let index = 0; index < facets.length; index += 1) {
    const picked = picks[index];
    if (!picked || holds(facets[index]!, picked, row)) continue;
    if (failed !== NONE) return SEVERAL;
    failed = index;
  }
  return failed;
}

function holds(facet: Facet, picked: Uint8Array, row: number): boolean {
  if (facet.codes) return picked[facet.codes[row]!] === 1;
  return facet.many![row]!.some((code) => picked[code] === 1);
}

function count(facet: Facet, into: Int32Array, row: number): void {
  if (facet.codes) into[facet.codes[row]!]! += 1;
  else for (const code of facet.many![row]!) into[code]! += 1;
}

function picksOf(facet: Facet, words: string[] | undefined): Uint8Array | null {
  if (!words?.length) return null;
  const picked = new Uint8Array(facet.words.length);
  for (const word of words) {
    const code = facet.words.indexOf(word);
    if (code >= 0) picked[code] = 1;
  }
  return picked;
}

/** Rows of the asked set that hold every word of the search in some column. */
function base(data: Dataset, asked: Asked): Uint8Array {
  const within = new Uint8Array(data.rows);
  const set = asked.set === null ? undefined : data.set(asked.set);
  if (set) for (const row of set) within[row] = 1;
  else within.fill(1);
  for (const word of asked.words.toLowerCase().split(/\s+/).filter(Boolean)) {
    const found = holding(data, word);
    for (let row = 0; row < data.rows; row += 1) within[row]! &= found[row]!;
  }
  return within;
}

function holding(data: Dataset, word: string): Uint8Array {
  const found = new Uint8Array(data.rows);
  for (const name of SEARCHED) {
    const column = data.column(name);
    if (column.kind !== "text") continue;
    const matches = column.words.map((one) => (one.toLowerCase().includes(word) ? 1 : 0));
    if (!matches.includes(1)) continue;
    for (let row = 0; row < data.rows; row += 1) found[row]! |= matches[column.codes[row]!] ?? 0;
  }
  return found;
}

/** In place; blanks last in both directions. By a column that there is none of, the order stays. */
function sorted(data: Dataset, rows: Int32Array, sort: string): void {
  const down = sort.startsWith("-");
  const name = down ? sort.slice(1) : sort;
  if (name !== "flags" && !data.has(name)) return;
  const keys = ranks(data, name);
  const sign = down ? -1 : 1;
  rows.sort((one, other) => {
    const first = keys[one]!;
    const second = keys[other]!;
    if (Number.isNaN(first)) return Number.isNaN(second) ? one - other : 1;
    if (Number.isNaN(second)) return -1;
    return sign * (first - second) || one - other;
  });
}

function ranks(data: Dataset, name: string): Float64Array {
  const keys = new Float64Array(data.rows);
  if (name === "flags") {
    for (let row = 0; row < data.rows; row += 1) keys[row] = data.flags.get(row)?.length ?? Number.NaN;
    return keys;
  }
  if (name === "precision") return precisionRanks(data, keys);
  const column = data.column(name);
  if (column.kind === "number") {
    for (let row = 0; row < data.rows; row += 1) keys[row] = column.values[row] ?? Number.NaN;
    return keys;
  }
  const order = new Intl.Collator("en", { numeric: true });
  const places = column.words.map((word, code) => ({ word, code })).sort((a, b) => order.compare(a.word, b.word));
  const rank = new Float64Array(column.words.length);
  places.forEach(({ code }, at) => (rank[code] = at));
  for (let row = 0; row < data.rows; row += 1) keys[row] = rank[column.codes[row]!] ?? Number.NaN;
  return keys;
}

function precisionRanks(data: Dataset, keys: Float64Array): Float64Array {
  const facet = data.facets.find((one) => one.name === "precision")!;
  for (let row = 0; row < data.rows; row += 1) keys[row] = facet.codes![row] || Number.NaN;
  return keys;
}
