// Rows as columns, as `pipeline/site/frame.py` writes them.
export interface TextColumn {
  name: string;
  kind: "text";
  words: string[];
  codes: number[];
}
export interface NumberColumn {
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

export function column(frame: Frame, name: string): Column {
  const found = frame.columns.find((one) => one.name === name);
  if (!found) throw new Error(`no column ${name}`);
  return found;
}

export function valueAt(from: Column, row: number): Value {
  if (from.kind === "number") return from.values[row] ?? null;
  const code = from.codes[row] ?? -1;
  return code < 0 ? null : (from.words[code] ?? null);
}

export function rowAt(frame: Frame, row: number): Row {
  return Object.fromEntries(frame.columns.map((one) => [one.name, valueAt(one, row)]));
}

export function allRows(frame: Frame): Row[] {
  return Array.from({ length: frame.rows }, (_, row) => rowAt(frame, row));
}

export function rowsWhere(frame: Frame, name: string, wanted: string): Row[] {
  const by = column(frame, name);
  if (by.kind !== "text") return [];
  const code = by.words.indexOf(wanted);
  if (code < 0) return [];
  return by.codes.flatMap((one, row) => (one === code ? [rowAt(frame, row)] : []));
}

export function text(row: Row, name: string): string {
  const found = row[name];
  return found === null || found === undefined ? "" : String(found);
}
