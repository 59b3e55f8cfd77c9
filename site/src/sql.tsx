import { useEffect, useRef, useState } from "preact/hooks";
import { WithData } from "./data";
import { ENGINE_SIZE, FROM_DISK, FromDisk } from "./comparison";
import type { Engine, QueryResult } from "./engine";
import { formatCount, formatError } from "./format";
import { getRows, groupBy } from "./frame";
import { type Data, loadScript } from "./load";
import { join, PlainTable, saveFile } from "./parts";
import { setParameter } from "./route";

export function Sql({ query }: { query: URLSearchParams }) {
  return (
    <WithData name="sql" loading="Loading">
      {(data) => <QueryBox data={data} requested={query.get("q") ?? ""} />}
    </WithData>
  );
}

let engine: Promise<Engine> | null = null;

function startEngine(data: Data["sql"]): Promise<Engine> {
  engine ??= loadScript("engine.js").then(() => window.__engine!.start(data.files, data.views));
  engine.catch(() => (engine = null));
  return engine;
}

type Outcome = { sql: string; problem: string } | { sql: string; result: QueryResult };

function QueryBox({ data, requested }: { data: Data["sql"]; requested: string }) {
  const initial = requested || data.examples[0]!.sql;
  const [sql, setSql] = useState(initial);
  const [busy, setBusy] = useState("");
  const [last, setLast] = useState<Outcome | null>(null);
  const running = useRef(false); // state would be known only with the next rendering
  const run = async (text: string) => {
    if (FROM_DISK || running.current) return;
    running.current = true;
    setSql(text);
    setParameter("q", text);
    setLast(null);
    try {
      setBusy(engine ? "Running …" : `Loading DuckDB, ${ENGINE_SIZE}, once …`);
      const started = await startEngine(data);
      setBusy("Running …");
      setLast({ sql: text, result: await started.query(text) });
    } catch (error) {
      setLast({ sql: text, problem: formatError(error) });
    }
    running.current = false;
    setBusy("");
  };
  useEffect(() => setSql(initial), [initial]);
  const outcome = last?.sql === requested ? last : null; // shown only while the address holds its query
  const runOnEnter = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void run(sql);
  };
  const runExample = (example: string) => {
    document.getElementById("query")?.scrollIntoView({ block: "nearest" });
    if (FROM_DISK) setSql(example);
    else void run(example);
  };
  return (
    <div class="sql">
      <div class="query-box">
        <h2>Query in SQL</h2>
        <p class="intro">
          DuckDB runs in this page over the Parquet files of the release. No query leaves the browser, and none can change the data.
          The first query loads the engine: <strong>{ENGINE_SIZE}</strong>. Nothing is loaded before you press Run.
        </p>
        {FROM_DISK && <FromDisk />}
        <label class="unseen" for="query">
          SQL
        </label>
        <textarea id="query" spellcheck={false} rows={7} value={sql} onInput={(event) => setSql(event.currentTarget.value)} onKeyDown={runOnEnter} />
        <p class="actions">
          <button class="main" disabled={FROM_DISK || busy !== ""} onClick={() => void run(sql)}>
            Run
          </button>
          <small>or Ctrl + Enter</small>
          {outcome && "result" in outcome && <Downloads result={outcome.result} />}
        </p>
        <div aria-live="polite">
          {busy && <p>{busy}</p>}
          {outcome && "problem" in outcome && <pre role="alert" class="problem">{outcome.problem}</pre>}
          {outcome && "result" in outcome && <ResultTable result={outcome.result} />}
        </div>
      </div>
      <aside class="schema" aria-label="Examples, tables and columns">
        <h3>Examples</h3>
        <ul class="examples">
          {data.examples.map((example) => (
            <li key={example.title}>
              <button class="link" disabled={busy !== ""} onClick={() => runExample(example.sql)}>
                {example.title}
              </button>
            </li>
          ))}
        </ul>
        <h3>Tables and views</h3>
        <Tables data={data} />
      </aside>
    </div>
  );
}

/** The data dictionary. */
function Tables({ data }: { data: Data["sql"] }) {
  const columns = groupBy(getRows(data.columns), "table_name");
  return (
    <>
      {data.relations.map(({ schema_name, table_name, type, description }) => (
        <details key={table_name}>
          <summary>
            <code>{schema_name === "main" ? table_name : `${schema_name}.${table_name}`}</code> <small>{type}</small>
          </summary>
          <p>{description}</p>
          <dl class="columns">
            {columns.get(table_name)?.map((column) => (
              <>
                <dt>
                  <code>{column.column_name}</code> <small>{join([column.type, column.unit])}</small>
                </dt>
                <dd>{column.description}</dd>
              </>
            ))}
          </dl>
        </details>
      ))}
    </>
  );
}

function ResultTable({ result }: { result: QueryResult }) {
  return (
    <>
      <p class="count">
        <strong>{formatCount(result.total, "row")}</strong> in {Math.max(1, Math.round(result.milliseconds))} ms
        {result.rows.length < result.total && `; the first ${result.rows.length} are shown, the download holds all`}
      </p>
      <PlainTable label="Result of the query" headings={result.names}>
        {result.rows.map((row, index) => (
          <tr key={index}>
            {row.map((value, column) => (
              <td key={column}>{value ?? <small class="null">NULL</small>}</td>
            ))}
          </tr>
        ))}
      </PlainTable>
    </>
  );
}

function Downloads({ result }: { result: QueryResult }) {
  const [problem, setProblem] = useState("");
  const download = (name: string, type: string, format: () => string | Uint8Array) => {
    try {
      saveFile(name, type, format());
      setProblem("");
    } catch (error) {
      setProblem(formatError(error)); // a row that is not shown holds a value without a text
    }
  };
  return (
    <>
      <button onClick={() => download("result.csv", "text/csv", result.toCsv)}>
        CSV
      </button>
      <button onClick={() => download("result.parquet", "application/vnd.apache.parquet", result.toParquet)}>
        Parquet
      </button>
      {problem && <span role="alert" class="problem">{problem}</span>}
    </>
  );
}
