// The results, with what is looked up by row: figures, flags, facets and the rows of each analysis.
import { equalIgnoringCase, formatFigure, MANY_DIGITS, ROUNDED, ROUNDED_DIGITS, SOURCES } from "./format";
import { type Column, getColumn, getRows, getText, getValue, type TextColumn, type Value } from "./frame";
import type { ResultsData, Severity } from "./load";

export const FACET_TITLES = {
  origin: "Origin",
  interest: "Who measured",
  relationship: "Publisher",
  task: "Task",
  item: "Unit of throughput",
  model: "Model",
  chip: "Chip",
  platform: "Platform",
  sdk_version: "SDK",
  framework: "Framework",
  precision: "Precision",
  flag: "Flag",
};
export type FacetName = keyof typeof FACET_TITLES;
export const FACETS = Object.keys(FACET_TITLES) as FacetName[];

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
const SUSPECT = "R47"; // the rule that flags measured rows as suspect, whatever their figure
const STORED_DIGITS = 12; // of what is computed, here as in the tables
const COUNTS = new Set(["batch_size", "chip_count"]); // set by whoever ran it, never emulated
const MAIN_FIGURES = ["throughput", "minutes", "latency_ms"];
const BLANK = "(blank)";
const NO_FLAG = "(no flag)";

export interface Flag {
  rule: string;
  severity: Severity;
  column: string;
}

/** A figure that few rows have: the column of its value, and what it covers. */
export interface FewFigure {
  metric: string;
  scope: string;
}

export class Dataset {
  readonly rows: number;
  readonly facets: Facet[];
  readonly flags = new Map<number, Flag[]>();
  readonly figures = new Map<number, FewFigure[]>();
  private readonly columns = new Map<string, Column>();
  private readonly rowById = new Map<string, number>();

  constructor(readonly data: ResultsData) {
    this.rows = data.results.rows;
    for (const column of data.results.columns) this.columns.set(column.name, column);
    this.addFigures();
    this.addComputed("minutes", (row) => divide(this.getValue(row, "time_to_train_s"), 60));
    this.addComputed(PER_PRICE, (row) => divide(this.getValue(row, "throughput"), (data.prices[this.getText(row, "platform")] ?? 0) / 1000));
    for (const flag of getRows(data.flags)) {
      const row = Number(flag.row);
      const own = { rule: getText(flag, "rule"), severity: getText(flag, "severity") as Severity, column: getText(flag, "column_name") };
      this.flags.set(row, [...(this.flags.get(row) ?? []), own]);
    }
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

  /** The texts of a row, by column. */
  readRow(row: number): (name: string) => string {
    return (name) => this.getText(row, name);
  }

  /** Formats a figure: with some `digits` where the emulator calculated it, else with every digit. */
  formatFigure(row: number, name: string, digits: number): string {
    return formatFigure(this.getValue(row, name), this.isEmulated(row, name) ? digits : undefined);
  }

  /**
   * Formats a figure for the table: what is computed or measured to many digits is rounded; counts and printed figures are
   * not, but a printed one of very many digits is cut, and "…" says so. The panel has every digit.
   */
  formatOnScreen(row: number, name: string): string {
    const value = this.getValue(row, name);
    const exact = COUNTS.has(name) || (this.getText(row, "origin") === "published" && !ROUNDED.has(name));
    if (!exact) return formatFigure(value, ROUNDED_DIGITS);
    const text = formatFigure(value);
    return text.replace(/\D/g, "").length > MANY_DIGITS ? `${formatFigure(value, ROUNDED_DIGITS)}…` : text;
  }

  /** The column of the figure that a result is known by. */
  findFigure(row: number): string {
    return MAIN_FIGURES.find((name) => row >= 0 && this.getValue(row, name) !== null) ?? MAIN_FIGURES[0]!;
  }

  /** Whether a row may be ranked: no error, not suspect, no repetition, still printed, neither emulated nor submitted. */
  isUsable(row: number): boolean {
    return this.getText(row, "usable") === "true";
  }

  /** Whether another row has the measurement: of an MLPerf entry, one of the same round. */
  isRepetition(row: number): boolean {
    return this.getText(row, "same_as") !== "" || (this.getText(row, "origin") === "official" && !this.isUsable(row));
  }

  isSuspect(row: number): boolean {
    return this.flags.get(row)?.some(({ rule }) => rule === SUSPECT) ?? false;
  }

  /** Why a row may not be ranked; nothing where it may. */
  explainUnusable(row: number): string[] {
    const reasons = [
      [this.isEmulated(row, ""), "it is emulated, not measured: calculated from the architecture by a model"],
      [this.getText(row, "relationship") === SUBMITTED, "a contributor submitted it"],
      [this.getValue(row, "errors") !== 0, "it has an error flag"],
      [this.isSuspect(row), "it is suspect"],
      [this.isRepetition(row), "it prints the measurement of another row again"],
      [this.getText(row, "printed_until") !== "", "its page no longer prints it"],
    ] as const;
    const found = reasons.filter(([applies]) => applies).map(([, reason]) => reason);
    // what remains is what its sidecar says: `documents.figures_are`
    return found.length || this.isUsable(row) ? found : ["its document has reference values of tests, not measurements"];
  }

  /** The column that a figure is computed from, or its own; a throughput per chip is sometimes printed as such. */
  findSource(row: number, name: string): string {
    const source = SOURCES[name] ?? name;
    const isOfOneChip = name === "throughput_per_chip" && this.getValue(row, source) === null;
    return isOfOneChip ? "chip_throughput" : source;
  }

  /** The errors and warnings on a figure; a suspect row has all of its figures in doubt. */
  findDoubts(row: number, name: string): Flag[] {
    const source = this.findSource(row, name);
    const isOfFigure = ({ rule, column }: Flag) => column === source || (rule === SUSPECT && !COUNTS.has(name));
    return (this.flags.get(row) ?? []).filter((flag) => flag.severity !== "info" && isOfFigure(flag));
  }

  isEmulated(row: number, name: string): boolean {
    return !COUNTS.has(name) && this.getText(row, "origin") === EMULATED;
  }

  /** Whether a network leaves out weights that are zero, which makes it another one than the dense. */
  isSparse(row: number): boolean {
    return this.getValue(row, "sparsity") !== null;
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

  /** A column for each metric of the figures that few rows have. */
  private addFigures(): void {
    const columns = new Map<string, (number | null)[]>();
    for (const figure of getRows(this.data.figures)) {
      const [row, metric] = [Number(figure.row), getText(figure, "metric")];
      if (!columns.has(metric)) columns.set(metric, new Array(this.rows).fill(null));
      columns.get(metric)![row] = Number(figure.value);
      this.figures.set(row, [...(this.figures.get(row) ?? []), { metric, scope: getText(figure, "scope") }]);
    }
    for (const [name, values] of columns) this.columns.set(name, { name, kind: "number", values });
  }

  private addComputed(name: string, compute: (row: number) => number | null): void {
    this.columns.set(name, { name, kind: "number", values: Array.from({ length: this.rows }, (_, row) => compute(row)) });
  }

  private makeTextFacet(name: Exclude<FacetName, "flag">): Facet {
    const column = this.getColumn(name) as TextColumn;
    return { name, words: [BLANK, ...column.words], codes: Int32Array.from(column.codes, (code) => code + 1), codeLists: null };
  }

  private makeFlagFacet(): Facet {
    const rules = [...this.flags.values()].flatMap((flags) => flags.map(({ rule }) => rule));
    const words = [NO_FLAG, ...[...new Set(rules)].sort()];
    const none = [0];
    const codeLists = Array.from({ length: this.rows }, () => none);
    for (const [row, flags] of this.flags) codeLists[row] = [...new Set(flags.map((flag) => words.indexOf(flag.rule)))];
    return { name: "flag", words, codes: null, codeLists };
  }
}

/** The quotient with the digits of what is computed; null where one of the two is not known. */
function divide(value: Value, by: number): number | null {
  return typeof value === "number" && by > 0 ? Number((value / by).toPrecision(STORED_DIGITS)) : null;
}
