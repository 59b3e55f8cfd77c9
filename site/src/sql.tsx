import { useEffect, useRef, useState } from "preact/hooks";
import type { Answer, Engine } from "./engine";
import { count } from "./format";
import { change } from "./hash";
import { useData } from "./hooks";
import { type Data, loadScript } from "./load";

const FROM_DISK = location.protocol === "file:";

export function Sql({ query }: { query: URLSearchParams }) {
  const loaded = useData("sql");
  if (loaded.state === "failed") return <p role="alert">{loaded.why}</p>;
  if (loaded.state === "waiting") return <p role="status">Loading …</p>;
  return <Box held={loaded.data} asked={query.get("q") ?? ""} />;
}

let engine: Promise<Engine> | null = null;

function started(held: Data["sql"]): Promise<Engine> {
  engine ??= loadScript("engine.js").then(() => window.__engine!.start(held.files, held.views));
  engine.catch(() => (engine = null));
  return engine;
}

// What was told of a query; it stands on the page only while the address asks that query.
type Told = { sql: string; why: string } | { sql: string; answer: Answer };

function Box({ held, asked }: { held: Data["sql"]; asked: string }) {
  const first = asked || held.examples[0]!.sql;
  const [sql, setSql] = useState(first);
  const [busy, setBusy] = useState("");
  const [last, setLast] = useState<Told | null>(null);
  const running = useRef(false); // known at once, and not only with the next painting
  const run = async (text: string) => {
    if (FROM_DISK || running.current) return;
    running.current = true;
    setSql(text);
    change("q", text);
    setLast(null);
    try {
      setBusy(engine ? "Running …" : "Starting DuckDB, some 9 MB packed, once …");
      const ready = await started(held);
      setBusy("Running …");
      setLast({ sql: text, answer: await ready.ask(text) });
    } catch (error) {
      setLast({ sql: text, why: why(error) });
    }
    running.current = false;
    setBusy("");
  };
  useEffect(() => setSql(first), [first]);
  const told = last?.sql === asked ? last : null;
  const keyed = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void run(sql);
  };
  return (
    <div class="sql">
      <div class="ask">
        <h2>Ask in SQL</h2>
        <p class="intro">
          DuckDB runs in this page over the release's Parquet files; no query leaves the browser, and none can change the data.
        </p>
        {FROM_DISK && (
          <p class="warning" role="note">
            This page was opened from disk, and browsers let no such page start DuckDB. Serve the folder over http, for example
            with <code>python3 -m http.server</code>, and open it there. Table, charts, claims and provenance work from disk.
          </p>
        )}
        <label class="unseen" for="query">
          SQL
        </label>
        <textarea id="query" spellcheck={false} rows={7} value={sql} onInput={(event) => setSql(event.currentTarget.value)} onKeyDown={keyed} />
        <p class="actions">
          <button type="button" class="main" disabled={FROM_DISK || busy !== ""} onClick={() => void run(sql)}>
            Run
          </button>
          <small>or Ctrl + Enter</small>
          {told && "answer" in told && <Downloads answer={told.answer} />}
        </p>
        <div aria-live="polite">
          {busy && <p>{busy}</p>}
          {told && "why" in told && <pre role="alert" class="problem">{told.why}</pre>}
          {told && "answer" in told && <Found answer={told.answer} />}
        </div>
      </div>
      <aside class="schema" aria-label="Examples, tables and columns">
        <h3>Examples</h3>
        <ul class="examples">
          {held.examples.map((example) => (
            <li key={example.title}>
              <button
                type="button"
                class="link"
                disabled={busy !== ""}
                onClick={() => {
                  document.getElementById("query")?.scrollIntoView({ block: "nearest" });
                  if (FROM_DISK) setSql(example.sql);
                  else void run(example.sql);
                }}
              >
                {example.title}
              </button>
            </li>
          ))}
        </ul>
        <h3>Tables and views</h3>
        <Tables columns={held.columns} />
      </aside>
    </div>
  );
}

function Tables({ columns }: { columns: Data["sql"]["columns"] }) {
  return (
    <>
      {columns
        .filter((one) => one.column_name === "")
        .map((table) => (
          <details key={table.table_name}>
            <summary>
              <code>{table.table_name}</code> <small>{table.type}</small>
            </summary>
            <p>{table.description}</p>
            <dl class="columns">
              {columns
                .filter((one) => one.table_name === table.table_name && one.column_name !== "")
                .map((one) => (
                  <>
                    <dt>
                      <code>{one.column_name}</code> <small>{[one.type, one.unit].filter(Boolean).join(", ")}</small>
                    </dt>
                    <dd>{one.description}</dd>
                  </>
                ))}
            </dl>
          </details>
        ))}
    </>
  );
}

function Found({ answer }: { answer: Answer }) {
  return (
    <>
      <p class="count">
        <strong>{count(answer.total, "row")}</strong> in {Math.max(1, Math.round(answer.milliseconds))} ms
        {answer.rows.length < answer.total && `; the first ${answer.rows.length} are shown, the download holds all`}
      </p>
      <div class="wide-content" tabIndex={0} role="region" aria-label="Result of the query">
        <table class="plain">
          <thead>
            <tr>
              {answer.names.map((name, index) => (
                <th key={index} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {answer.rows.map((row, index) => (
              <tr key={index}>
                {row.map((value, place) => (
                  <td key={place}>{value ?? <small class="null">NULL</small>}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Downloads({ answer }: { answer: Answer }) {
  const [problem, setProblem] = useState("");
  const give = (name: string, type: string, content: () => string | Uint8Array) => {
    try {
      save(name, type, content());
      setProblem("");
    } catch (error) {
      setProblem(why(error)); // a row beyond those shown holds what has no text
    }
  };
  return (
    <>
      <button type="button" onClick={() => give("result.csv", "text/csv", answer.csv)}>
        CSV
      </button>
      <button type="button" onClick={() => give("result.parquet", "application/vnd.apache.parquet", answer.parquet)}>
        Parquet
      </button>
      {problem && <span role="alert" class="problem">{problem}</span>}
    </>
  );
}

function why(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function save(name: string, type: string, content: string | Uint8Array): void {
  const address = URL.createObjectURL(new Blob([content as BlobPart], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
