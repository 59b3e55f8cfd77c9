// The points of a chart: their source, and their numbers as tables.
import { useState } from "preact/hooks";
import type { Dataset } from "./dataset";
import { formatCount, formatFigure, MANY_DIGITS } from "./format";
import type { NumberTable } from "./load";
import { PlainTable, SourceButton } from "./parts";
import { openPanel } from "./route";

/** Shows where the figure of a point was printed. */
export function showSource(data: Dataset, id: unknown): void {
  if (data.findRow(String(id ?? "")) >= 0) openPanel(String(id));
}

/** The lines that the tooltip of a point has besides its figures. */
export function describeSource(data: Dataset, id: unknown): Record<string, string> {
  const row = data.findRow(String(id ?? ""));
  return row < 0 ? {} : { Document: data.getText(row, "document_id") || data.getText(row, "run_id"), "": "Click for its source" };
}

/** The numbers of a chart as tables, with a link from each row to its source. */
export function Numbers({ data, tables }: { data: Dataset; tables: NumberTable[] }) {
  const count = tables.reduce((total, table) => total + table.rows.length, 0);
  const [open, setOpen] = useState(false); // thousands of cells, made when a reader opens them
  return (
    <details class="numbers" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show the numbers: {formatCount(count, "row")}</summary>
      {open && tables.map((table) => (
        <PlainTable key={table.headings.join()} label="Numbers of the chart" headings={[...table.headings, "Source"]}>
          {table.rows.map((values, index) => (
            <tr key={index}>
              {values.map((value, column) => (
                <td key={column}>{formatFigure(value, isComputed(value) ? 5 : undefined)}</td>
              ))}
              <td>
                {table.ids[index] && data.findRow(table.ids[index]!) >= 0 && (
                  <SourceButton of={table.ids[index]!} look="link">
                    source
                  </SourceButton>
                )}
              </td>
            </tr>
          ))}
        </PlainTable>
      ))}
    </details>
  );
}

const isComputed = (value: unknown) => typeof value === "number" && String(value).replace(/\D/g, "").length > MANY_DIGITS;
