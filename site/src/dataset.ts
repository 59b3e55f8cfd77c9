// The results with what is looked up by row: flags, the facets' values and the rows of each analysis.
import { type Column, type TextColumn, column, valueAt, type Value } from "./frame";
import type { ResultsData, Severity } from "./load";

export const FACETS = ["origin", "task", "model", "platform", "sdk_version", "framework", "precision", "flag"] as const;
export type FacetName = (typeof FACETS)[number];

export const FACET_TITLES: Record<FacetName, string> = {
  origin: "Origin",
  task: "Task",
  model: "Model",
  platform: "Platform",
  sdk_version: "SDK",
  framework: "Framework",
  precision: "Precision",
  flag: "Flag",
};

// What a row is under in a facet; `blank` stands for no value, so that it can be picked as well.
export interface Facet {
  name: FacetName;
  words: string[];
  codes: Int32Array | null;
  many: number[][] | null;
}

export const BLANK = "(blank)";
export const NO_FLAG = "(no flag)";

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
  private readonly places = new Map<string, number>();

  constructor(readonly data: ResultsData) {
    this.rows = data.results.rows;
    for (const one of data.results.columns) this.columns.set(one.name, one);
    data.flags.rows.forEach((row, index) => {
      const flag = {
        rule: data.flags.rules[index] ?? "",
        severity: data.flags.severities[index] ?? "info",
        column: data.flags.columns[index] ?? "",
      };
      this.flags.set(row, [...(this.flags.get(row) ?? []), flag]);
    });
    this.facets = FACETS.map((name) => (name === "flag" ? this.flagFacet() : this.textFacet(name)));
  }

  column(name: string): Column {
    return this.columns.get(name) ?? column(this.data.results, name);
  }

  value(row: number, name: string): Value {
    return valueAt(this.column(name), row);
  }

  text(row: number, name: string): string {
    const found = this.value(row, name);
    return found === null ? "" : String(found);
  }

  precision(row: number): string {
    return this.text(row, "precision") || this.text(row, "compute_precision");
  }

  /** The row of a result, -1 where there is none. */
  place(resultId: string): number {
    if (this.places.size === 0) {
      const ids = this.column("result_id") as TextColumn;
      ids.codes.forEach((code, row) => this.places.set(ids.words[code] ?? "", row));
    }
    return this.places.get(resultId) ?? -1;
  }

  private textFacet(name: Exclude<FacetName, "flag">): Facet {
    const words = new Map<string, number>([[BLANK, 0]]);
    const codes = new Int32Array(this.rows);
    const source = this.column(name) as TextColumn;
    const other = name === "precision" ? (this.column("compute_precision") as TextColumn) : null;
    const coded = [source, other].map((one) => one?.words.map((word) => place(words, word)) ?? []);
    for (let row = 0; row < this.rows; row += 1) {
      const code = source.codes[row] ?? -1;
      const second = other?.codes[row] ?? -1;
      codes[row] = code >= 0 ? (coded[0]?.[code] ?? 0) : second >= 0 ? (coded[1]?.[second] ?? 0) : 0;
    }
    return { name, words: [...words.keys()], codes, many: null };
  }

  private flagFacet(): Facet {
    const words = new Map<string, number>([[NO_FLAG, 0]]);
    const none = [0];
    const many: number[][] = Array.from({ length: this.rows }, () => none);
    for (const rule of [...new Set(this.data.flags.rules)].sort()) place(words, rule);
    for (const [row, flags] of this.flags) many[row] = [...new Set(flags.map((flag) => place(words, flag.rule)))];
    return { name: "flag", words: [...words.keys()], codes: null, many };
  }
}

function place(words: Map<string, number>, word: string): number {
  const known = words.get(word);
  if (known !== undefined) return known;
  words.set(word, words.size);
  return words.size - 1;
}
