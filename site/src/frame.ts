// Rows stored by column, as `pipeline/ipu_results/site/encode.py` writes them.
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

export function getText(row: Row, name: string): string {
  return String(row[name] ?? "");
}

export function groupBy(rows: Row[], name: string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) groups.set(getText(row, name), [...(groups.get(getText(row, name)) ?? []), row]);
  return groups;
}
