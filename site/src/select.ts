// Which rows the table shows, in which order, and how many there would be for each value of each facet.
import type { Dataset, Facet, FacetName } from "./dataset";

export interface Filters {
  search: string;
  analysis: string | null;
  picked: Partial<Record<FacetName, string[]>>;
  sort: string;
}

interface Selection {
  rows: Int32Array;
  counts: Map<FacetName, Int32Array>;
}

const SEARCHED = [
  "model", "variant", "dataset", "platform", "chip", "framework", "sdk_version", "publisher", "origin", "task",
  "precision", "compute_precision", "mlperf_id", "table_name", "document_id", "result_id",
];
const NONE = -1;
const SEVERAL = -2;

export function selectRows(data: Dataset, filters: Filters): Selection {
  const candidates = findCandidates(data, filters);
  const picks = data.facets.map((facet) => encodePicked(facet, filters.picked[facet.name]));
  const counts = data.facets.map((facet) => new Int32Array(facet.words.length));
  const matches = new Int32Array(data.rows);
  let size = 0;
  for (let row = 0; row < data.rows; row += 1) {
    if (!candidates[row]) continue;
    // The count of a value is that of the rows which all other facets accept.
    const failed = findFailing(data.facets, picks, row);
    if (failed === SEVERAL) continue;
    if (failed === NONE) {
      matches[size] = row;
      size += 1;
      for (let facet = 0; facet < counts.length; facet += 1) countRow(data.facets[facet]!, counts[facet]!, row);
    } else countRow(data.facets[failed]!, counts[failed]!, row);
  }
  const rows = matches.subarray(0, size);
  sortRows(data, rows, filters.sort);
  return { rows, counts: new Map(data.facets.map((facet, index) => [facet.name, counts[index]!])) };
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

/** Rows of the analysis that have every word of the search in some column. */
function findCandidates(data: Dataset, filters: Filters): Uint8Array {
  const candidates = new Uint8Array(data.rows).fill(filters.analysis === null ? 1 : 0);
  if (filters.analysis !== null) for (const row of data.getAnalysisRows(filters.analysis)) candidates[row] = 1;
  for (const word of filters.search.toLowerCase().split(/\s+/).filter(Boolean)) {
    const matches = findWord(data, word);
    for (let row = 0; row < data.rows; row += 1) candidates[row]! &= matches[row]!;
  }
  return candidates;
}

function findWord(data: Dataset, word: string): Uint8Array {
  const matches = new Uint8Array(data.rows);
  for (const name of SEARCHED) {
    const column = data.getColumn(name);
    if (column.kind !== "text") continue;
    const matching = column.words.map((value) => (value.toLowerCase().includes(word) ? 1 : 0));
    if (!matching.includes(1)) continue;
    for (let row = 0; row < data.rows; row += 1) matches[row]! |= matching[column.codes[row]!] ?? 0;
  }
  return matches;
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
  if (name === "precision") {
    const { codes } = data.facets.find((facet) => facet.name === "precision")!;
    return make((row) => codes![row] || null);
  }
  const column = data.getColumn(name);
  if (column.kind === "number") return make((row) => column.values[row]);
  const order = new Intl.Collator("en", { numeric: true });
  const ranks = new Float64Array(column.words.length);
  const sorted = column.words.map((word, code) => ({ word, code })).sort((left, right) => order.compare(left.word, right.word));
  sorted.forEach(({ code }, rank) => (ranks[code] = rank));
  return make((row) => ranks[column.codes[row]!]);
}
