// The official entry behind a row of MLPerf, with its log files.
import type { Dataset } from "./dataset";
import { figure } from "./format";
import { type Row, rowsWhere, text } from "./frame";
import { useData } from "./hooks";
import { Section, Told, Web } from "./provenance";

export function Official({ data, row, id }: { data: Dataset; row: number; id: string }) {
  if (data.text(row, "benchmark") !== "mlperf-training") return null;
  return <Entries id={id} mlperfId={data.text(row, "mlperf_id")} published={data.text(row, "origin") === "published"} />;
}

function Entries({ id, mlperfId, published }: { id: string; mlperfId: string; published: boolean }) {
  const loaded = useData("mlperf");
  if (loaded.state === "failed") return <p role="alert">{loaded.why}</p>;
  if (loaded.state === "waiting") return <p role="status">Loading the official log …</p>;
  const { entries, logs } = loaded.data;
  const found = published ? rowsWhere(entries, "mlperf_id", mlperfId) : rowsWhere(entries, "result_id", id);
  if (found.length === 0) return <p>No official entry at hand bears the id {mlperfId || "of this row"}.</p>;
  return (
    <>
      {found.map((entry) => (
        <Entry
          key={text(entry, "path")}
          entry={entry}
          logs={rowsWhere(logs, "path", text(entry, "path")).filter((log) => log["round"] === entry["round"])}
          published={published}
        />
      ))}
    </>
  );
}

function Entry({ entry, logs, published }: { entry: Row; logs: Row[]; published: boolean }) {
  const path = text(entry, "path");
  const repository = `https://github.com/mlcommons/training_results_v${text(entry, "round")}`;
  return (
    <Section title={published ? "The official entry of this id" : "The official entry"}>
      <dl>
        <Told name="MLPerf id" value={[text(entry, "mlperf_id"), text(entry, "mlperf_id_confidence")].filter(Boolean).join(", ")} />
        <Told name="Round" value={`${text(entry, "round")}, ${text(entry, "division")} division, ${text(entry, "benchmark")}`} />
        <Told name="Submitter" value={`${text(entry, "submitter")}, ${text(entry, "system")}`} />
        <Told name="Score" value={entry["minutes"] === null ? "" : `${figure(entry["minutes"] ?? null)} min`} />
        <Told name="Runs" value={`${text(entry, "n_success")} of ${text(entry, "n_runs")} count; mean without the fastest and slowest`} />
        <dt>Folder</dt>
        <dd class="address">
          <Web to={`${repository}/tree/HEAD/${path}`}>{path}</Web>
        </dd>
        <Told name="Cite as" value={text(entry, "attribution")} />
      </dl>
      <details>
        <summary>{logs.length} log files</summary>
        <div class="wide-content" tabIndex={0} role="region" aria-label="Log files">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Log</th>
                <th scope="col" class="right">Minutes</th>
                <th scope="col">Status</th>
                <th scope="col">Counts</th>
              </tr>
            </thead>
            <tbody>
              {logs.map((log) => (
                <tr key={text(log, "file")}>
                  <td>
                    <Web to={`${repository}/blob/HEAD/${path}/${text(log, "file")}`}>{text(log, "file")}</Web>
                  </td>
                  <td class="right">{figure(log["minutes"] ?? null)}</td>
                  <td>{text(log, "status")}</td>
                  <td>{log["counted"] === "true" ? "yes" : `no: ${text(log, "reason")}`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </Section>
  );
}
