// The official MLPerf entry behind a row, with its log files.
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatFigure } from "./format";
import { filterRows, getText, type Row } from "./frame";
import { Fields, join, PlainTable, Section, WebLink } from "./parts";

const HEADINGS = ["Log", "Minutes", "Status", "Counts"];

export function Official({ data, row, id }: { data: Dataset; row: number; id: string }) {
  if (data.getText(row, "benchmark") !== "mlperf-training") return null;
  const mlperfId = data.getText(row, "mlperf_id");
  const published = data.getText(row, "origin") === "published";
  return (
    <WithData name="mlperf" loading="Loading the official log">
      {({ entries, logs }) => {
        const matches = published ? filterRows(entries, "mlperf_id", mlperfId) : filterRows(entries, "result_id", id);
        if (matches.length === 0) return <p>There is no official entry with the id {mlperfId || "of this row"}.</p>;
        return matches.map((entry) => {
          const path = getText(entry, "path");
          const files = filterRows(logs, "path", path).filter((log) => log.round === entry.round);
          return <Entry key={path} entry={entry} logs={files} title={published ? "The official entry of this id" : "The official entry"} />;
        });
      }}
    </WithData>
  );
}

function Entry({ entry, logs, title }: { entry: Row; logs: Row[]; title: string }) {
  const text = (name: string) => getText(entry, name);
  const repository = `https://github.com/mlcommons/training_results_v${text("round")}`;
  return (
    <Section title={title}>
      <Fields
        of={{
          "MLPerf id": join([entry.mlperf_id, entry.mlperf_id_confidence]),
          Round: `${text("round")}, ${text("division")} division, ${text("benchmark")}`,
          Submitter: `${text("submitter")}, ${text("platform_printed") || text("platform")}`,
          Score: entry.minutes && `${formatFigure(entry.minutes)} min`,
          Runs: `${text("n_success")} of ${text("n_runs")} count; mean without the fastest and slowest`,
          Folder: <WebLink to={`${repository}/tree/HEAD/${text("path")}`}>{entry.path}</WebLink>,
          "Cite as": entry.attribution,
        }}
      />
      <details>
        <summary>{logs.length} log files</summary>
        <PlainTable label="Log files" headings={HEADINGS} right={["Minutes"]}>
          {logs.map((log) => (
            <tr key={getText(log, "file")}>
              <td>
                <WebLink to={`${repository}/blob/HEAD/${text("path")}/${getText(log, "file")}`}>{log.file}</WebLink>
              </td>
              <td class="right">{formatFigure(log.minutes ?? null)}</td>
              <td>{log.status}</td>
              <td>{log.counted === "true" ? "yes" : `no: ${getText(log, "reason")}`}</td>
            </tr>
          ))}
        </PlainTable>
      </details>
    </Section>
  );
}
