// The SQL engine's own script: DuckDB-WASM over the Parquet files that lie beside the page.
import { AsyncDuckDB, type AsyncDuckDBConnection, VoidLogger } from "@duckdb/duckdb-wasm";
import { type Table as Arrow, tableToIPC } from "apache-arrow";
import initParquet, { readParquet, Table as Parquet, writeParquet } from "parquet-wasm/esm";
import { shown } from "./shown";

export interface Answer {
  names: string[];
  rows: string[][];
  total: number;
  milliseconds: number;
  csv: () => string;
  parquet: () => Uint8Array;
}

export interface Engine {
  ask: (sql: string) => Promise<Answer>;
}

const SHOWN = 500;
// Nothing is fetched from then on, neither an extension nor a file that a query names.
const LOCKED = [
  "SET autoinstall_known_extensions = false",
  "SET autoload_known_extensions = false",
  "SET enable_external_access = false",
  "SET lock_configuration = true",
];

async function start(files: Record<string, string>, views: string[]): Promise<Engine> {
  const here = (path: string) => new URL(path, location.href).href;
  const [database] = await Promise.all([open(here), initParquet({ module_or_path: here("vendor/parquet_wasm_bg.wasm") })]);
  const connection = await database.connect();
  await Promise.all(Object.entries(files).map(([name, file]) => fill(connection, name, here(`data/parquet/${file}`))));
  for (const statement of [...views, ...LOCKED]) await connection.query(statement);
  return { ask: (sql) => ask(connection, sql) };
}

async function open(here: (path: string) => string): Promise<AsyncDuckDB> {
  const worker = new Worker(here("vendor/duckdb-browser-eh.worker.js"));
  const database = new AsyncDuckDB(new VoidLogger(), worker);
  await database.instantiate(here("vendor/duckdb-eh.wasm"));
  return database;
}

async function fill(connection: AsyncDuckDBConnection, name: string, address: string): Promise<void> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  const stream = readParquet(new Uint8Array(await response.arrayBuffer())).intoIPCStream();
  await connection.insertArrowFromIPCStream(stream, { name, create: true });
}

async function ask(connection: AsyncDuckDBConnection, sql: string): Promise<Answer> {
  const started = performance.now();
  const found = await connection.query(sql);
  const milliseconds = performance.now() - started;
  const names = found.schema.fields.map((field) => field.name);
  const text = told(found);
  return {
    names,
    rows: Array.from({ length: Math.min(SHOWN, found.numRows) }, (_, row) => text(row)),
    total: found.numRows,
    milliseconds,
    csv: () => csv(names, found.numRows, text),
    parquet: () => parquet(found),
  };
}

function told(found: Arrow): (row: number) => string[] {
  const columns = found.schema.fields.map((field, index) => ({ column: found.getChildAt(index), show: shown(field) }));
  return (row) =>
    columns.map(({ column, show }) => {
      const value: unknown = column?.get(row);
      return value === null || value === undefined ? "" : show(value);
    });
}

function csv(names: string[], rows: number, text: (row: number) => string[]): string {
  const line = (values: string[]) => values.map((value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value)).join(",");
  return `${[names, ...Array.from({ length: rows }, (_, row) => text(row))].map(line).join("\r\n")}\r\n`;
}

function parquet(found: Arrow): Uint8Array {
  return writeParquet(Parquet.fromIPCStream(tableToIPC(found, "stream")));
}

declare global {
  interface Window {
    __engine?: { start: typeof start };
  }
}
window.__engine = { start };
