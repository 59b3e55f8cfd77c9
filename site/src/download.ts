// Files that the browser saves, and the rows of a view as CSV.
import type { Dataset } from "./dataset";
import type { Value } from "./frame";

export function saveFile(name: string, type: string, content: string | Uint8Array): void {
  const url = URL.createObjectURL(new Blob([content as BlobPart], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Formats rows with all columns and every digit; a blank is an empty cell. */
export function formatCsv(data: Dataset, rows: Int32Array): string {
  const { names } = data;
  const lines = Array.from(rows, (row) => names.map((name) => formatCell(data.getValue(row, name))).join(","));
  return [names.join(","), ...lines, ""].join("\r\n");
}

/** Formats a cell of a CSV file; a blank is empty. */
export function formatCell(value: Value): string {
  const text = String(value ?? "");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
