// Rows stored by column, as `pipeline/ipu_results/doors/site/data.py` writes them.
export interface TextColumn {
  name: string;
  kind: "text";
  words: string[];
  codes: number[]; // indexes into `words`, -1 for no value
}
interface NumberColumn {
  name: string;
  kind: "number";
  values: (number | null)[];
}
export type Column = TextColumn | NumberColumn;
export interface Frame {
  rows: number;
  columns: Column[];
}
export type Value = string | number | null;
export type Row = Record<string, Value>;

/** A column as compact frames store it: `runs` are lengths of runs of equal values; without codes, each row has its own word. */
type Compact<Kind> = Kind extends TextColumn ? Omit<Kind, "codes"> & { codes?: number[]; runs?: number[] } : Kind & { runs?: number[] };

export function isFrame(value: unknown): value is Frame {
  return typeof value === "object" && value !== null && "rows" in value && "columns" in value;
}

/** Expands the columns of a compact frame in place. */
export function expand(frame: Frame): Frame {
  for (const column of frame.columns as Compact<Column>[]) {
    if (column.kind === "text") column.codes = repeat(column.codes ?? column.words.map((_, row) => row), column.runs);
    else column.values = repeat(column.values, column.runs);
    delete column.runs;
  }
  return frame;
}

function repeat<Kind>(values: Kind[], runs: number[] | undefined): Kind[] {
  if (!runs) return values;
  return values.flatMap((value, index) => new Array<Kind>(runs[index]!).fill(value));
}

export function getColumn(frame: Frame, name: string): Column {
  const column = frame.columns.find((candidate) => candidate.name === name);
  if (!column) throw new Error(`there is no column ${name}`);
  return column;
}

export function getValue(column: Column, row: number): Value {
  if (column.kind === "number") return column.values[row] ?? null;
  const code = column.codes[row] ?? -1;
  return code < 0 ? null : (column.words[code] ?? null);
}

function getRow(frame: Frame, row: number): Row {
  return Object.fromEntries(frame.columns.map((column) => [column.name, getValue(column, row)]));
}

export function getRows(frame: Frame): Row[] {
  return Array.from({ length: frame.rows }, (_, row) => getRow(frame, row));
}

/** The rows with a value in a text column. */
export function filterRows(frame: Frame, name: string, value: string): Row[] {
  const column = getColumn(frame, name);
  const code = column.kind === "text" ? column.words.indexOf(value) : -1;
  if (column.kind !== "text" || code < 0) return [];
  return column.codes.flatMap((rowCode, row) => (rowCode === code ? [getRow(frame, row)] : []));
}

/** Removes what spellings of one name differ in: bow2000, Bow-2000. */
export function normaliseName(name: string): string {
  return name.toLowerCase().replace(/[\s_-]+/g, "");
}

export function getText(row: Row, name: string): string {
  return String(row[name] ?? "");
}

export function groupBy<Kind extends object>(rows: Kind[], name: keyof Kind): Map<string, Kind[]> {
  const groups = new Map<string, Kind[]>();
  for (const row of rows) {
    const key = String(row[name] ?? "");
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return groups;
}
