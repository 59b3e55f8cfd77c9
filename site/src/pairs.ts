// Pairs of results that may be compared: what two machines, or two SDKs, share.
import comparison from "../../schema/comparison.toml";
import type { Dataset } from "./dataset";

/** What is compared, and what must be the same besides the test. */
export const SIDES: Record<string, { title: string; noun: string; same: string[] }> = {
  platform: { title: "Machines", noun: "machine", same: [] },
  sdk_version: { title: "SDKs", noun: "SDK", same: ["platform", "publisher"] },
};

interface Measure {
  name: string;
  title: string;
  higherIsBetter: boolean;
  test: string[]; // columns in which two figures must agree to be compared at all
  excluded: Record<string, string>; // values that leave a row out
}

// A time to train is never compared with a throughput, nor a latency with that of another batch or of another basis.
export const MEASURES: Measure[] = comparison.measures.map(({ column, title, higher_is_better, test, excluded }) => ({
  name: column,
  title,
  higherIsBetter: higher_is_better,
  test,
  excluded: { ...comparison.excluded.values, ...excluded },
}));

/** Conditions of a result that may differ in a pair, with the words for them. */
export const CONDITIONS = comparison.conditions;

export interface Pair {
  measure: Measure;
  left: number;
  right: number;
  differences: { name: string; left: string; right: string }[];
  ratio: number; // how many times as good the left one is
  perChip: number | null;
  candidates: number;
}

/** The tests of each name of a side: a key for each measure and test, with the rows of it. */
export class Index {
  readonly rows = new Map<string, Map<string, number[]>>(); // by name, then by key

  constructor(readonly data: Dataset, readonly side: string) {
    for (let row = 0; row < data.rows; row += 1) {
      const name = data.getText(row, side);
      if (!name) continue;
      for (const measure of MEASURES) {
        if (!isComparable(data, row, measure)) continue;
        const key = [measure.name, ...[...measure.test, ...SIDES[side]!.same].map((column) => data.getText(row, column))].join("|");
        const tests = this.rows.get(name) ?? new Map<string, number[]>();
        tests.set(key, [...(tests.get(key) ?? []), row]);
        this.rows.set(name, tests);
      }
    }
  }

  /** Names with the number of tests that they share with one, the most first. */
  listPartners(name: string): { name: string; shared: number }[] {
    const own = this.rows.get(name) ?? new Map<string, number[]>();
    return [...this.rows]
      .map(([other, tests]) => ({ name: other, shared: other === name ? 0 : [...own.keys()].filter((key) => tests.has(key)).length }))
      .filter(({ shared }) => shared > 0)
      .sort((left, right) => right.shared - left.shared || left.name.localeCompare(right.name, "en", { numeric: true }));
  }

  /** Names that share a test with any other. */
  listNames(): string[] {
    const owners = new Map<string, number>();
    for (const tests of this.rows.values()) for (const key of tests.keys()) owners.set(key, (owners.get(key) ?? 0) + 1);
    return [...this.rows]
      .filter(([, tests]) => [...tests.keys()].some((key) => owners.get(key)! > 1))
      .map(([name]) => name)
      .sort((left, right) => left.localeCompare(right, "en", { numeric: true }));
  }

  /** One pair for each test that two names share: the rows that differ in the fewest conditions, then the fastest. */
  listPairs(left: string, right: string): Pair[] {
    const [own, others] = [this.rows.get(left), this.rows.get(right)];
    if (!own || !others || left === right) return [];
    return [...own].flatMap(([key, rows]) => {
      const partners = others.get(key);
      return partners ? [this.choosePair(key, rows, partners)] : [];
    });
  }

  private choosePair(key: string, lefts: number[], rights: number[]): Pair {
    const measure = MEASURES.find(({ name }) => name === key.split("|")[0])!;
    const pairs = lefts.flatMap((left) => rights.map((right) => this.makePair(measure, left, right, lefts.length * rights.length)));
    const score = (pair: Pair) => [pair.differences.length, rank(this.data, measure, pair.left), rank(this.data, measure, pair.right)];
    return pairs.reduce((best, pair) => (compareScores(score(pair), score(best)) < 0 ? pair : best));
  }

  private makePair(measure: Measure, left: number, right: number, candidates: number): Pair {
    const { data, side } = this;
    const differences = Object.keys(CONDITIONS)
      .filter((name) => name !== side)
      .map((name) => ({ name, left: data.getText(left, name), right: data.getText(right, name) }))
      .filter((difference) => difference.left !== difference.right);
    const ratio = divide(data, measure, left, right, measure.name)!;
    const perChip = measure.name === "throughput" ? divide(data, measure, left, right, "throughput_per_chip") : null;
    return { measure, left, right, differences, ratio, perChip, candidates };
  }
}

/** Whether a figure may be compared: measured once, not emulated nor submitted, without an error flag or doubt, and not of a single item. */
function isComparable(data: Dataset, row: number, { name, excluded }: Measure): boolean {
  if (data.getValue(row, name) === null || data.getValue(row, "errors") !== 0) return false;
  if (comparison.excluded.blank.some((column) => data.getText(row, column))) return false;
  return Object.entries(excluded).every(([column, value]) => data.getText(row, column) !== value);
}

function divide(data: Dataset, { higherIsBetter }: Measure, left: number, right: number, name: string): number | null {
  const [first, second] = [data.getValue(left, name), data.getValue(right, name)];
  if (typeof first !== "number" || typeof second !== "number") return null;
  return higherIsBetter ? first / second : second / first;
}

/** A rank by which the best figure is first. */
function rank(data: Dataset, { name, higherIsBetter }: Measure, row: number): number {
  const value = Number(data.getValue(row, name));
  return higherIsBetter ? -value : value;
}

function compareScores(left: number[], right: number[]): number {
  for (let index = 0; index < left.length; index += 1) if (left[index] !== right[index]) return left[index]! - right[index]!;
  return 0;
}
