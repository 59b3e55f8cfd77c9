// The results with what is looked up by row: flags, the facets' values and the rows of each analysis.
import { figure } from "./format";
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

  has(name: string): boolean {
    return this.columns.has(name);
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

  /** A figure as the page tells it: cut where the emulator calculated it, else with every digit. */
  figure(row: number, name: string, digits: number): string {
    return figure(this.value(row, name), this.emulated(row, name) ? digits : undefined);
  }

  emulated(row: number, name: string): boolean {
    return name !== "batch_size" && this.text(row, "origin") === "emulated";
  }

  precision(row: number): string {
    return this.text(row, "precision") || this.text(row, "compute_precision");
  }

  /** The rows behind an analysis; none where there is no such one. */
  set(name: string): number[] {
    return Object.hasOwn(this.data.sets, name) ? this.data.sets[name]! : [];
  }

  /** The row of a result, -1 where there is none. */
  place(resultId: string): number {
    if (this.places.size === 0) {
      const ids = this.column("result_id") as TextColumn;
      ids.codes.forEach((code, row) => this.places.set(ids.words[code] ?? "", row));
    }
    return this.places.get(resultId) ?? -1;
  }

  /** A value of a facet as its list spells it: INT8 for int8. What no row holds stays as it is. */
  spelled(name: FacetName, word: string): string {
    return this.facets.find((facet) => facet.name === name)?.words.find((one) => same(one, word)) ?? word;
  }

  private textFacet(name: Exclude<FacetName, "flag">): Facet {
    const words = new Map<string, number>([[BLANK, 0]]);
    const codes = new Int32Array(this.rows);
    const source = this.column(name) as TextColumn;
    const other = name === "precision" ? (this.column("compute_precision") as TextColumn) : null;
    const spelled = new Map<string, string>(); // the first spelling stands for all
    const spell = (word: string) => place(spelled, word.toLowerCase(), word);
    const coded = [source, other].map((one) => one?.words.map((word) => place(words, spell(word), words.size)) ?? []);
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
    for (const rule of [...new Set(this.data.flags.rules)].sort()) place(words, rule, words.size);
    for (const [row, flags] of this.flags) many[row] = [...new Set(flags.map((flag) => place(words, flag.rule, words.size)))];
    return { name: "flag", words: [...words.keys()], codes: null, many };
  }
}

export function same(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

/** What a map holds under a key, put there where it held nothing. */
function place<Kind>(found: Map<string, Kind>, key: string, value: Kind): Kind {
  if (!found.has(key)) found.set(key, value);
  return found.get(key)!;
}
