// The SQL engine, a script of its own: DuckDB-WASM over the files next to the page.
import { AsyncDuckDB, type AsyncDuckDBConnection, VoidLogger } from "@duckdb/duckdb-wasm";
import { DataType, StructRow, type Table, tableToIPC, Vector } from "apache-arrow";
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

const resolveUrl = (path: string) => new URL(path, location.href).href;

/** Starts DuckDB in a worker, which is ended if it does not start or `prepare` fails. */
async function startDatabase<Kind>(prepare: (database: AsyncDuckDB) => Promise<Kind>): Promise<Kind> {
  const worker = new Worker(resolveUrl("vendor/duckdb-browser-eh.worker.js"));
  const failure = new Promise<never>((_, reject) => {
    worker.addEventListener("error", () => reject(new Error("the worker of DuckDB could not be started")));
  });
  const database = new AsyncDuckDB(new VoidLogger(), worker);
  try {
    return await Promise.race([prepare(database), failure]);
  } catch (error) {
    worker.terminate();
    throw error;
  }
}

const instantiate = (database: AsyncDuckDB) => database.instantiate(resolveUrl("vendor/duckdb-eh.wasm"));

function start(files: Record<string, string>, views: string[]): Promise<Engine> {
  return startDatabase(async (database) => {
    const wasm = { module_or_path: resolveUrl("vendor/parquet_wasm_bg.wasm") };
    await Promise.all([instantiate(database), initParquet(wasm)]);
    const connection = await database.connect();
    for (const schema of new Set(Object.keys(files).map(readSchema))) await connection.query(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
    await Promise.all(Object.entries(files).map(([name, file]) => loadTable(connection, name, resolveUrl(`data/parquet/${file}`))));
    for (const statement of [...views, ...LOCK]) await connection.query(statement);
    await connection.close();
    return { query: (sql) => query(database, sql) };
  });
}

const MAIN = "main";

/** The schema of a table's name, such as `detail` of `detail.facts`. */
const readSchema = (name: string) => (name.includes(".") ? name.split(".")[0]! : MAIN);

async function download(url: string): Promise<Uint8Array> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function loadTable(connection: AsyncDuckDBConnection, name: string, url: string): Promise<void> {
  const stream = readParquet(await download(url)).intoIPCStream();
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

/** What a question of the views that compare is put with: a value for each column that is stated. */
export type Stated = Record<string, string | number | null>;

export interface Comparison {
  answer: (question: string, stated: Stated) => Promise<object>;
}

/** A statement of `schema/`, of which a temporary table is made. */
interface Statement {
  question: string;
  name: string;
  path: string;
  sql: string;
}

const COMPARISON = "comparison.duckdb";
const MACROS = "macros"; // in place of a question: definitions

/** Opens the file of the views that compare: rows of the record, lookups, macros and statements. */
function openComparison(): Promise<Comparison> {
  return startDatabase(async (database) => {
    const [content] = await Promise.all([download(resolveUrl(`data/${COMPARISON}`)), instantiate(database)]);
    await database.registerFileBuffer(COMPARISON, content);
    const connection = await database.connect();
    await connection.query(`ATTACH '${COMPARISON}' AS record (READ_ONLY)`);
    const statements = (await readRows(connection, "FROM record.statements ORDER BY position")) as Statement[];
    const macros = statements.filter(({ question }) => question === MACROS).map(({ sql }) => sql);
    for (const statement of [...macros, "SET search_path = 'record,memory'", ...LOCK]) await connection.query(statement);
    let previous: Promise<unknown> = Promise.resolve(); // the temporary tables are those of one question
    return {
      answer: (question, stated) => {
        const own = statements.filter((statement) => statement.question === question);
        const answer = previous.then(() => runStatements(connection, own, stated));
        previous = answer.catch(() => null);
        return answer;
      },
    };
  });
}

/** Makes the tables of the statements; what is stated is a row of the first, and the last is the answer. */
async function runStatements(connection: AsyncDuckDBConnection, statements: Statement[], stated: Stated): Promise<object> {
  const [question, ...others] = statements as [Statement, ...Statement[]];
  const columns = Object.keys(stated);
  const create = async ({ name, path, sql }: Statement) => {
    try {
      await connection.query(`CREATE OR REPLACE TEMP TABLE ${name} AS ${sql}`);
    } catch (error) {
      throw new Error(`schema/${path}: ${(error as Error).message}`);
    }
  };
  await create(question);
  const insert = await connection.prepare(`INSERT INTO ${question.name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`);
  await insert.query(...Object.values(stated));
  await insert.close();
  for (const statement of others) await create(statement);
  const [answer] = await readRows(connection, `FROM ${statements.at(-1)!.name}`);
  return answer!;
}

async function readRows(connection: AsyncDuckDBConnection, sql: string): Promise<object[]> {
  return Array.from(await connection.query(sql), toPlain) as object[];
}

/** Turns values of Arrow into objects, lists and numbers. */
function toPlain(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof StructRow) return Object.fromEntries([...value].map(([name, own]) => [name, toPlain(own)]));
  if (value instanceof Vector) return Array.from(value, toPlain);
  return value;
}

declare global {
  interface Window {
    __engine?: { start: typeof start; openComparison: typeof openComparison };
  }
}
window.__engine = { start, openComparison };
