// The SQL engine, a script of its own: DuckDB-WASM over the Parquet files next to the page.
import { AsyncDuckDB, type AsyncDuckDBConnection, VoidLogger } from "@duckdb/duckdb-wasm";
import { DataType, type Table, tableToIPC } from "apache-arrow";
import initParquet, { readParquet, Table as ParquetTable, writeParquet } from "parquet-wasm/esm";
import { makeFormatter } from "./sql-text";

/** Null is NULL. */
type Text = string | null;

export interface QueryResult {
  names: string[];
  rows: Text[][]; // the first ones
  total: number;
  milliseconds: number;
  toCsv: () => string;
  toParquet: () => Uint8Array;
}

export interface Engine {
  query: (sql: string) => Promise<QueryResult>;
}

const MAX_ROWS = 500; // shown on the page
// From then on nothing is fetched, neither an extension nor a file that a query names.
const LOCK = [
  "SET autoinstall_known_extensions = false",
  "SET autoload_known_extensions = false",
  "SET enable_external_access = false",
  "SET lock_configuration = true",
];

async function start(files: Record<string, string>, views: string[]): Promise<Engine> {
  const resolveUrl = (path: string) => new URL(path, location.href).href;
  const worker = new Worker(resolveUrl("vendor/duckdb-browser-eh.worker.js"));
  const failure = new Promise<never>((_, reject) => {
    worker.addEventListener("error", () => reject(new Error("the worker of DuckDB could not be started")));
  });
  const database = new AsyncDuckDB(new VoidLogger(), worker);
  const prepare = async () => {
    const wasm = { module_or_path: resolveUrl("vendor/parquet_wasm_bg.wasm") };
    await Promise.all([database.instantiate(resolveUrl("vendor/duckdb-eh.wasm")), initParquet(wasm)]);
    const connection = await database.connect();
    for (const schema of new Set(Object.keys(files).map(readSchema))) await connection.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await Promise.all(Object.entries(files).map(([name, file]) => loadTable(connection, name, resolveUrl(`data/parquet/${file}`))));
    for (const statement of [...views, ...LOCK]) await connection.query(statement);
    await connection.close();
  };
  try {
    await Promise.race([prepare(), failure]);
  } catch (error) {
    worker.terminate();
    throw error;
  }
  return { query: (sql) => query(database, sql) };
}

const MAIN = "main";

/** The schema of a table's name, such as `detail` of `detail.facts`. */
const readSchema = (name: string) => (name.includes(".") ? name.split(".")[0]! : MAIN);

async function loadTable(connection: AsyncDuckDBConnection, name: string, url: string): Promise<void> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  const stream = readParquet(new Uint8Array(await response.arrayBuffer())).intoIPCStream();
  await connection.insertArrowFromIPCStream(stream, { schema: readSchema(name), name: name.split(".").at(-1)!, create: true });
}

/** Runs one statement in a read-only transaction over its own connection, so that it leaves nothing behind. */
async function query(database: AsyncDuckDB, sql: string): Promise<QueryResult> {
  const connection = await database.connect();
  try {
    await connection.query("BEGIN TRANSACTION READ ONLY");
    const started = performance.now();
    const statement = await connection.prepare(sql); // refuses more than one statement
    const table = (await statement.query()) as Table;
    const milliseconds = performance.now() - started;
    const names = table.schema.fields.map((field) => field.name);
    const types = await describeTypes(connection, sql, table);
    const columns = table.schema.fields.map((field, index) => makeFormatter(field, table.getChildAt(index)!, types[index] ?? ""));
    const formatRow = (row: number) => columns.map((format) => format(row));
    return {
      names,
      rows: Array.from({ length: Math.min(MAX_ROWS, table.numRows) }, (_, row) => formatRow(row)),
      total: table.numRows,
      milliseconds,
      toCsv: () => formatCsv(names, table.numRows, formatRow),
      toParquet: () => writeParquet(ParquetTable.fromIPCStream(tableToIPC(table, "stream"))),
    };
  } finally {
    await connection.close();
  }
}

/** DuckDB's types of the columns, read only where Arrow's type lacks the zone of a time. */
async function describeTypes(connection: AsyncDuckDBConnection, sql: string, table: Table): Promise<string[]> {
  if (!table.schema.fields.some((field) => DataType.isTime(field.type))) return [];
  const description = await connection.query(`DESCRIBE ${sql}`);
  return Array.from(description.getChild("column_type")!, String);
}

/** NULL is an empty cell, and an empty text is quoted. */
function formatCsv(names: string[], rows: number, formatRow: (row: number) => Text[]): string {
  const formatCell = (value: Text) => (value === null ? "" : /^$|[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const table = [names, ...Array.from({ length: rows }, (_, row) => formatRow(row))];
  return table.map((values) => `${values.map(formatCell).join(",")}\r\n`).join("");
}

declare global {
  interface Window {
    __engine?: { start: typeof start };
  }
}
window.__engine = { start };
