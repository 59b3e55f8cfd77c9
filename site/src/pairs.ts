// Pairs of results that may be compared: what two machines, or two SDKs, share.
import * as comparison from "../../schema/comparison.toml";
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
  excluded: Record<string, string>; // values that leave a usable row out
}

// A time to train is never compared with a throughput, nor a latency with that of another batch or of another basis.
export const MEASURES: Measure[] = comparison.measures.map(({ column, title, higher_is_better, test, excluded }) => ({
  name: column,
  title,
  higherIsBetter: higher_is_better,
  test,
  excluded: excluded ?? {},
}));

/** Conditions of a result that may differ in a pair, with the words for them. */
export const CONDITIONS = comparison.conditions;

const WORDS: Record<string, string> = { ...CONDITIONS, latency_basis: "what the latency times", sequence_length: "sequence length" };

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
  private readonly all = new Map<string, number[]>(); // every row by name, those that may not be compared, too

  constructor(readonly data: Dataset, readonly side: string) {
    for (let row = 0; row < data.rows; row += 1) {
      const name = data.getText(row, side);
      if (!name) continue;
      this.all.set(name, this.all.get(name) ?? []);
      this.all.get(name)!.push(row);
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

  /** Names that share a test with any other, those with the most such tests first. */
  listNames(): string[] {
    const owners = new Map<string, number>();
    for (const tests of this.rows.values()) for (const key of tests.keys()) owners.set(key, (owners.get(key) ?? 0) + 1);
    const count = new Map([...this.rows].map(([name, tests]) => [name, [...tests.keys()].filter((key) => owners.get(key)! > 1).length]));
    return [...count.keys()].filter((name) => count.get(name)! > 0).sort((left, right) => count.get(right)! - count.get(left)! || left.localeCompare(right, "en", { numeric: true }));
  }

  /** The models that each of two names has rows of. */
  listModels(left: string, right: string): string[] {
    const [own, others] = [left, right].map((name) => new Set((this.all.get(name) ?? []).map((row) => this.data.getText(row, "model"))));
    return [...own!].filter((model) => model && others!.has(model)).sort();
  }

  /** One pair for each test that two names share: the rows that differ in the fewest conditions, then the fastest. */
  listPairs(left: string, right: string, model = ""): Pair[] {
    const [own, others] = [this.rows.get(left), this.rows.get(right)];
    if (!own || !others || left === right) return [];
    return [...own].flatMap(([key, rows]) => {
      const partners = others.get(key);
      return partners && (!model || this.data.getText(rows[0]!, "model") === model) ? [this.choosePair(key, rows, partners)] : [];
    });
  }

  /** How many rows of some names and a model, or of all, may not be ranked. */
  countUnusable(names: string[], model: string): number {
    const rows = new Set(names.flatMap((name) => this.all.get(name) ?? []));
    return [...rows].filter((row) => !this.data.isUsable(row) && (!model || this.data.getText(row, "model") === model)).length;
  }

  /** Other names with the chip of `right`, whatever its form, that share a test with `left`, on a model if one is given. */
  listSiblings(left: string, right: string, model: string): string[] {
    const chip = (name: string) => this.data.getText(this.all.get(name)?.[0] ?? -1, "chip").replace(/-(SXM\d?|PCIe|NVL)/, "");
    if (!this.all.has(right) || !chip(right)) return [];
    return [...this.rows.keys()].filter((name) => name !== left && name !== right && chip(name) === chip(right) && this.listPairs(left, name, model).length > 0);
  }

  /** MLPerf times of machines with as many of the same chips, both of one round: those of the same publishers, then the latest, first. */
  listOfficial(left: string, right: string, model: string): Pair[] {
    const text = (row: number, column: string) => this.data.getText(row, column);
    const first = (name: string) => this.all.get(name)?.[0] ?? -1;
    const describe = (name: string) => `${/[A-Z]+\d+/.exec(text(first(name), "chip"))?.[0] ?? text(first(name), "chip")} ${text(first(name), "chip_count")}`;
    const [own, others] = [left, right].map((name) => [...this.rows.keys()].filter((other) => describe(other) === describe(name)));
    const isOwn = (pair: Pair) => Number(text(pair.right, "submitter") === text(first(right), "publisher")) + Number(text(pair.left, "submitter") === text(first(left), "publisher"));
    return own!
      .flatMap((a) => others!.flatMap((b) => this.listPairs(a, b, model)))
      .filter(({ measure, differences }) => measure.name === "minutes" && differences.every(({ name }) => name !== "mlperf_round"))
      .sort((one, other) => isOwn(other) - isOwn(one) || text(other.left, "mlperf_round").localeCompare(text(one.left, "mlperf_round")) || rank(this.data, one.measure, other.right) - rank(this.data, one.measure, one.right));
  }

  /** Why two names share no test of a model: the conditions that fail for the rows that come nearest, in words. */
  explainGap(left: string, right: string, model: string): string {
    const [own, others] = [left, right].map((name) => (this.all.get(name) ?? []).filter((row) => this.data.getText(row, "model") === model));
    for (const [name, rows] of [[left, own!], [right, others!]] as const) if (rows.length === 0) return `no row of ${model} on ${name}`;
    const reasons = MEASURES.flatMap((measure) => {
      const [first, second] = [own!, others!].map((rows) => rows.filter((row) => this.data.getValue(row, measure.name) !== null));
      if (first!.length === 0 || second!.length === 0) return [];
      const [kept, keptOthers] = [first!, second!].map((rows) => rows.filter((row) => isComparable(this.data, row, measure)));
      if (kept!.length === 0 || keptOthers!.length === 0) {
        const name = kept!.length === 0 ? left : right;
        return [{ failed: 0, text: `${measure.title.toLowerCase()}: no row of ${name} may be ranked and measures a batch` }];
      }
      const columns = [...measure.test, ...SIDES[this.side]!.same];
      const gaps = kept!.flatMap((row) => keptOthers!.map((other) => columns.filter((column) => this.data.getText(row, column) !== this.data.getText(other, column)).map((column) => [column, this.data.getText(row, column), this.data.getText(other, column)] as const)));
      const nearest = gaps.reduce((best, gap) => (gap.length < best.length ? gap : best));
      const words = nearest.map(([column, mine, theirs]) => `${WORDS[column] ?? column.replaceAll("_", " ")} is ${mine || "not stated"} / ${theirs || "not stated"}`);
      return [{ failed: nearest.length, text: `${measure.title.toLowerCase()}: ${words.join(", ")}` }];
    });
    if (reasons.length > 0) return reasons.sort((one, other) => one.failed - other.failed).map(({ text }) => text).join("; ");
    const [mine, theirs] = [own!, others!].map((rows) => MEASURES.filter(({ name }) => rows.some((row) => this.data.getValue(row, name) !== null)).map(({ title }) => title.toLowerCase()).join(" and "));
    return `no kind of figure in common: ${mine || "none"} / ${theirs || "none"}`;
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
      .filter(({ left: own, right: other }) => own !== other)
      .filter(({ name, left: own, right: other }) => name !== "latency_scope" || (measure.name === "latency_ms" && own && other));
    const ratio = divide(data, measure, left, right, measure.name)!;
    const perChip = measure.name === "throughput" ? divide(data, measure, left, right, "throughput_per_chip") : null;
    return { measure, left, right, differences, ratio, perChip, candidates };
  }
}

/** Whether a figure may be compared: it may be ranked, and is not of a single item. */
function isComparable(data: Dataset, row: number, { name, excluded }: Measure): boolean {
  if (data.getValue(row, name) === null || !data.isUsable(row)) return false;
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
