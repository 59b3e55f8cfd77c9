// The results, with what is looked up by row: flags, facets and the rows of each analysis.
import { equalIgnoringCase, formatFigure, ROUNDED, ROUNDED_DIGITS } from "./format";
import { type Column, getColumn, getValue, type TextColumn, type Value } from "./frame";
import type { ResultsData, Severity } from "./load";

export const FACETS = ["origin", "relationship", "task", "item", "model", "platform", "sdk_version", "framework", "precision", "flag"] as const;
export type FacetName = (typeof FACETS)[number];

export const FACET_TITLES: Record<FacetName, string> = {
  origin: "Origin",
  relationship: "Who measured",
  task: "Task",
  item: "Unit of throughput",
  model: "Model",
  platform: "Platform",
  sdk_version: "SDK",
  framework: "Framework",
  precision: "Precision",
  flag: "Flag",
};

/** The values of a facet, and for each row the codes of those it has; a value for blank can be selected as well. */
export interface Facet {
  name: FacetName;
  words: string[];
  codes: Int32Array | null; // one code per row
  codeLists: number[][] | null; // or several
}

export const PER_PRICE = "throughput_per_1000_usd";
export const SUBMITTED = "submitted";
export const EMULATED = "emulated";
/** What is shown by an explicit choice only: rows that contributors handed in, and predictions. */
export const APART: Partial<Record<FacetName, string>> = { relationship: SUBMITTED, origin: EMULATED };
const COUNTS = new Set(["batch_size", "chips"]); // set by whoever ran it, never emulated
const MAIN_FIGURES = ["throughput", "minutes", "latency_ms"];
const BLANK = "(blank)";
const NO_FLAG = "(no flag)";

export interface Flag {
  rule: string;
  severity: Severity;
  column: string;
}

export class Dataset {
  readonly rows: number;
  readonly facets: Facet[];
  readonly flags = new Map<number, Flag[]>();
  private readonly columns = new Map<string, Column>();
  private readonly rowById = new Map<string, number>();

  constructor(readonly data: ResultsData) {
    this.rows = data.results.rows;
    for (const column of data.results.columns) this.columns.set(column.name, column);
    this.columns.set(PER_PRICE, this.makePerPrice());
    const { rules, severities, columns } = data.flags;
    data.flags.rows.forEach((row, index) => {
      const flag = { rule: rules[index] ?? "", severity: severities[index] ?? "info", column: columns[index] ?? "" };
      this.flags.set(row, [...(this.flags.get(row) ?? []), flag]);
    });
    this.facets = FACETS.map((name) => (name === "flag" ? this.makeFlagFacet() : this.makeTextFacet(name)));
  }

  /** The names of all columns, in the order of the dataset. */
  get names(): string[] {
    return [...this.columns.keys()];
  }

  has(name: string): boolean {
    return this.columns.has(name);
  }

  getColumn(name: string): Column {
    return this.columns.get(name) ?? getColumn(this.data.results, name);
  }

  getValue(row: number, name: string): Value {
    return getValue(this.getColumn(name), row);
  }

  getText(row: number, name: string): string {
    return String(this.getValue(row, name) ?? "");
  }

  /** Formats a figure: with some `digits` where the emulator calculated it, else with every digit. */
  formatFigure(row: number, name: string, digits: number): string {
    return formatFigure(this.getValue(row, name), this.isEmulated(row, name) ? digits : undefined);
  }

  /** Formats a figure for the table: what is computed or measured to many digits is rounded, printed figures and counts never. */
  formatOnScreen(row: number, name: string): string {
    const exact = COUNTS.has(name) || (this.getText(row, "origin") === "published" && !ROUNDED.has(name));
    return formatFigure(this.getValue(row, name), exact ? undefined : ROUNDED_DIGITS);
  }

  /** The column of the figure that a result is known by. */
  findFigure(row: number): string {
    return MAIN_FIGURES.find((name) => row >= 0 && this.getValue(row, name) !== null) ?? MAIN_FIGURES[0]!;
  }

  isEmulated(row: number, name: string): boolean {
    return !COUNTS.has(name) && this.getText(row, "origin") === EMULATED;
  }

  /** Whether a network leaves out weights that are zero, which makes it another one than the dense. */
  isSparse(row: number): boolean {
    return this.has("sparsity") && this.getValue(row, "sparsity") !== null;
  }

  /** A precision under the name that its spellings share: 16.16 is FP16. */
  spellPrecision(name: string): string {
    return this.data.precisions[name] ?? name.toLowerCase();
  }

  getPrecision(row: number): string {
    return this.getText(row, "precision") || this.getText(row, "compute_precision");
  }

  /** The rows of an analysis; none where it does not exist. */
  getAnalysisRows(name: string): number[] {
    return Object.hasOwn(this.data.sets, name) ? this.data.sets[name]! : [];
  }

  /** The row of a result, -1 where it does not exist. */
  findRow(resultId: string): number {
    if (this.rowById.size === 0) {
      const ids = this.getColumn("result_id") as TextColumn;
      ids.codes.forEach((code, row) => this.rowById.set(ids.words[code] ?? "", row));
    }
    return this.rowById.get(resultId) ?? -1;
  }

  /** Spells a value as its facet does: INT8 for int8. A value that no row has is returned unchanged. */
  spell(name: FacetName, word: string): string {
    const facet = this.facets.find((candidate) => candidate.name === name);
    return facet?.words.find((known) => equalIgnoringCase(known, word)) ?? word;
  }

  /** Throughput per 1,000 USD of the list price, where one is known. */
  private makePerPrice(): Column {
    const values = Array.from({ length: this.rows }, (_, row) => {
      const [throughput, price] = [this.getValue(row, "throughput"), this.data.prices[this.getText(row, "platform")]];
      return typeof throughput === "number" && price ? (1000 * throughput) / price : null;
    });
    return { name: PER_PRICE, kind: "number", values };
  }

  private makeTextFacet(name: Exclude<FacetName, "flag">): Facet {
    const words = new Map<string, number>([[BLANK, 0]]);
    const spellings = new Map<string, string>(); // the first spelling is used for all
    const encode = (word: string) => getOrSet(words, getOrSet(spellings, word.toLowerCase(), word), words.size);
    const names = name === "precision" ? ["precision", "compute_precision"] : [name];
    const columns = names.map((source) => this.getColumn(source) as TextColumn);
    const encoded = columns.map((column) => column.words.map(encode));
    const codes = new Int32Array(this.rows);
    for (let row = 0; row < this.rows; row += 1) {
      const source = columns.findIndex((column) => (column.codes[row] ?? -1) >= 0);
      if (source >= 0) codes[row] = encoded[source]![columns[source]!.codes[row]!]!;
    }
    return { name, words: [...words.keys()], codes, codeLists: null };
  }

  private makeFlagFacet(): Facet {
    const words = [NO_FLAG, ...[...new Set(this.data.flags.rules)].sort()];
    const none = [0];
    const codeLists = Array.from({ length: this.rows }, () => none);
    for (const [row, flags] of this.flags) codeLists[row] = [...new Set(flags.map((flag) => words.indexOf(flag.rule)))];
    return { name: "flag", words, codes: null, codeLists };
  }
}

function getOrSet<Kind>(map: Map<string, Kind>, key: string, value: Kind): Kind {
  if (!map.has(key)) map.set(key, value);
  return map.get(key)!;
}
