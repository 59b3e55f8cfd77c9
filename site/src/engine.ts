// The SQL engine's own script: DuckDB-WASM over the Parquet files that lie beside the page.
import { AsyncDuckDB, type AsyncDuckDBConnection, VoidLogger } from "@duckdb/duckdb-wasm";
import { type Table as Arrow, DataType, tableToIPC } from "apache-arrow";
import initParquet, { readParquet, Table as Parquet, writeParquet } from "parquet-wasm/esm";
import { shown } from "./shown";

/** Null is NULL. */
export type Text = string | null;

export interface Answer {
  names: string[];
  rows: Text[][];
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
  const worker = new Worker(here("vendor/duckdb-browser-eh.worker.js"));
  const broken = new Promise<never>((_, reject) => {
    worker.addEventListener("error", () => reject(new Error("the worker of DuckDB could not be started")));
  });
  const database = new AsyncDuckDB(new VoidLogger(), worker);
  const ready = async () => {
    await Promise.all([database.instantiate(here("vendor/duckdb-eh.wasm")), initParquet({ module_or_path: here("vendor/parquet_wasm_bg.wasm") })]);
    const connection = await database.connect();
    await Promise.all(Object.entries(files).map(([name, file]) => fill(connection, name, here(`data/parquet/${file}`))));
    for (const statement of [...views, ...LOCKED]) await connection.query(statement);
    await connection.close();
  };
  try {
    await Promise.race([ready(), broken]);
  } catch (error) {
    worker.terminate();
    throw error;
  }
  return { ask: (sql) => reading(database, (connection) => ask(connection, sql)) };
}

/** Over a connection of its own in a transaction that may only read, so that a query leaves nothing behind. */
async function reading<Kind>(database: AsyncDuckDB, act: (connection: AsyncDuckDBConnection) => Promise<Kind>): Promise<Kind> {
  const connection = await database.connect();
  try {
    await connection.query("BEGIN TRANSACTION READ ONLY");
    return await act(connection);
  } finally {
    await connection.close();
  }
}

async function fill(connection: AsyncDuckDBConnection, name: string, address: string): Promise<void> {
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  const stream = readParquet(new Uint8Array(await response.arrayBuffer())).intoIPCStream();
  await connection.insertArrowFromIPCStream(stream, { name, create: true });
}

/** Prepared, which is refused for more than one statement. */
async function ask(connection: AsyncDuckDBConnection, sql: string): Promise<Answer> {
  const started = performance.now();
  const statement = await connection.prepare(sql);
  const found = await statement.query();
  const milliseconds = performance.now() - started;
  const names = found.schema.fields.map((field) => field.name);
  const text = told(found, await sqlTypes(connection, sql, found));
  return {
    names,
    rows: Array.from({ length: Math.min(SHOWN, found.numRows) }, (_, row) => text(row)),
    total: found.numRows,
    milliseconds,
    csv: () => csv(names, found.numRows, text),
    parquet: () => parquet(found),
  };
}

/** DuckDB's names of the columns' types, asked for only where Arrow's leave out the zone of a time. */
async function sqlTypes(connection: AsyncDuckDBConnection, sql: string, found: Arrow): Promise<string[]> {
  if (!found.schema.fields.some((field) => DataType.isTime(field.type))) return [];
  const described = await connection.query(`DESCRIBE ${sql}`);
  return Array.from(described.getChild("column_type")!, String);
}

function told(found: Arrow, types: string[]): (row: number) => Text[] {
  const columns = found.schema.fields.map((field, index) => shown(field, found.getChildAt(index)!, types[index] ?? ""));
  return (row) => columns.map((text) => text(row));
}

/** NULL as nothing, and an empty text in quotes. */
function csv(names: string[], rows: number, text: (row: number) => Text[]): string {
  const cell = (value: Text) => (value === null ? "" : /^$|[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const lines = [names, ...Array.from({ length: rows }, (_, row) => text(row))].map((values) => values.map(cell).join(","));
  return `${lines.join("\r\n")}\r\n`;
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
