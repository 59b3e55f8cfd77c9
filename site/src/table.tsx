// The table of results. Only the rows in view are in the page; all rows have one height.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Dataset } from "./dataset";
import { DoubtSign, FlagMark, Origin } from "./marks";
import { setParameter } from "./route";

const OVERSCAN = 8; // rows rendered beyond the view
const DIGITS = 5; // of a figure that the emulator calculated
const CELL_PADDING = 46; // pixels: the padding of a figure's cell and the sign of a doubt

interface TextColumn {
  name: string;
  title: string;
  width: number;
  render?: (data: Dataset, row: number) => ComponentChildren;
}

/** A column of figures, one below another in a row. It widens with its content, since a figure is never cut. */
interface FigureColumn {
  name: string;
  width: number;
  figures: { name: string; title: string; unit?: string }[];
}
type Column = TextColumn | FigureColumn;

function makeFigureColumn(name: string, title: string, width: number): FigureColumn {
  return { name, width, figures: [{ name, title }] };
}

const WIDE: Column[] = [
  { name: "origin", title: "Origin", width: 116, render: (data, row) => <Origin origin={data.getText(row, "origin")} /> },
  { name: "model", title: "Model", width: 184, render: renderModel },
  { name: "platform", title: "Platform", width: 146 },
  { name: "sdk_version", title: "SDK", width: 90 },
  { name: "framework", title: "Framework", width: 112 },
  { name: "precision", title: "Precision", width: 80, render: (data, row) => data.getPrecision(row) },
  makeFigureColumn("batch_size", "Batch", 76),
  makeFigureColumn("throughput", "Items/s", 106),
  makeFigureColumn("latency_ms", "Latency (ms)", 92),
  makeFigureColumn("time_to_train_s", "Time to train (s)", 94),
  makeFigureColumn("efficiency", "Items/s/W", 94),
  { name: "flags", title: "Flags", width: 150, render: renderFlags },
  { name: "task", title: "Task", width: 80 },
  { name: "publisher", title: "Publisher", width: 100 },
  { name: "published_on", title: "Date", width: 92 },
];

const NARROW: Column[] = [
  { name: "model", title: "Result", width: 158, render: renderCard },
  {
    name: "figures",
    width: 232,
    figures: [
      { name: "throughput", title: "items/s", unit: "/s" },
      { name: "latency_ms", title: "ms", unit: "ms" },
      { name: "time_to_train_s", title: "train s", unit: "s" },
    ],
  },
];

/** Widths for all rows that were in view since these were selected, so that no column changes to and fro. */
function useWidths(data: Dataset, columns: Column[], rows: Int32Array, visible: number[]): string[] {
  const makeState = () => ({ rows, columns, characters: columns.map(() => 0) });
  const state = useRef(makeState());
  if (state.current.rows !== rows || state.current.columns !== columns) state.current = makeState();
  const { characters } = state.current;
  return columns.map((column, index) => {
    if (!("figures" in column)) return `${column.width}px`;
    for (const row of visible)
      for (const { name, unit = "" } of column.figures)
        characters[index] = Math.max(characters[index]!, data.formatFigure(row, name, DIGITS).length + unit.length);
    return `max(${column.width}px, ${characters[index]}ch + ${CELL_PADDING}px)`;
  });
}

function renderModel(data: Dataset, row: number) {
  const variant = data.getText(row, "variant");
  return (
    <>
      {data.getText(row, "model")} {variant && <small>{variant}</small>}
    </>
  );
}

function renderCard(data: Dataset, row: number) {
  const origin = data.getText(row, "origin");
  const batch = data.getText(row, "batch_size");
  const details = ["platform", "framework", "sdk_version"].map((name) => data.getText(row, name));
  return (
    <span class="card">
      <span>
        <Origin origin={origin} brief={origin !== "emulated"} /> <strong>{renderModel(data, row)}</strong>
      </span>
      <small>{[batch && `batch ${batch}`, ...details].filter(Boolean).join(" · ")}</small>
    </span>
  );
}

function renderFlags(data: Dataset, row: number) {
  const flags = new Map(data.flags.get(row)?.map((flag) => [flag.rule, flag])); // one of each rule
  const suspect = data.getText(row, "suspect");
  return (
    <>
      {suspect && (
        <span class="flag flag-warn" title={suspect}>
          suspect
        </span>
      )}
      {[...flags.values()].map((flag) => (
        <FlagMark key={flag.rule} flag={flag} title={data.data.rules[flag.rule] ?? ""} />
      ))}
    </>
  );
}

interface Props {
  data: Dataset;
  rows: Int32Array;
  sort: string;
  wide: boolean;
}

export function Table({ data, rows, sort, wide }: Props) {
  const columns = wide ? WIDE : NARROW;
  const height = wide ? 34 : 72;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const measure = () => {
    if (box.current) setView({ top: box.current.scrollTop, height: box.current.clientHeight });
  };
  useLayoutEffect(measure, []);
  // Where the row with the focus leaves the page, the focus moves to the table, not to the top of the page.
  const focused = box.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (focused && !box.current!.contains(document.activeElement)) box.current!.focus({ preventScroll: true });
  });
  useEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [rows]);
  const first = Math.max(0, Math.min(Math.floor(view.top / height) - OVERSCAN, rows.length - 1));
  const last = Math.min(rows.length, Math.ceil((view.top + view.height) / height) + OVERSCAN);
  const visible = Array.from(rows.subarray(first, last));
  const widths = useWidths(data, columns, rows, visible);
  return (
    <div class="scroll" ref={box} onScroll={measure} tabIndex={0} role="region" aria-label="Table of results">
      <table aria-rowcount={rows.length + 1} style={{ minWidth: `calc(${widths.join(" + ")})` }} class={wide ? "wide" : "narrow"}>
        <caption class="unseen">Results; each figure is a button that shows where it was printed</caption>
        <colgroup>
          {columns.map((column, index) => (
            <col key={column.name} style={{ width: widths[index]! }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <HeaderCell key={column.name} column={column} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Space height={first * height} columns={columns.length} />
          {visible.map((row, index) => (
            <Row key={row} data={data} row={row} position={first + index} columns={columns} />
          ))}
          <Space height={(rows.length - last) * height} columns={columns.length} />
        </tbody>
      </table>
      {rows.length === 0 && <p class="none">No result matches. Remove a filter, or search for less.</p>}
    </div>
  );
}

function HeaderCell({ column, sort }: { column: Column; sort: string }) {
  const numeric = "figures" in column;
  const keys = numeric ? column.figures : [column];
  const ascending = keys.some(({ name }) => sort === name);
  const descending = keys.some(({ name }) => sort === `-${name}`);
  return (
    <th scope="col" class={numeric ? "right" : ""} aria-sort={ascending ? "ascending" : descending ? "descending" : "none"}>
      {keys.map(({ name, title }) => (
        <SortButton key={name} name={name} title={title} sort={sort} largestFirst={numeric} />
      ))}
    </th>
  );
}

/** Sorts by a column, then in the other direction, then not at all. */
function SortButton({ name, title, sort, largestFirst }: { name: string; title: string; sort: string; largestFirst: boolean }) {
  const steps = largestFirst ? [`-${name}`, name] : [name, `-${name}`];
  const next = sort === steps[0] ? steps[1]! : sort === steps[1] ? null : steps[0]!;
  return (
    <button type="button" onClick={() => setParameter("sort", next)}>
      {title} <span aria-hidden="true">{sort === name ? "▲" : sort === `-${name}` ? "▼" : ""}</span>
    </button>
  );
}

function Space({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null;
  return (
    <tr aria-hidden="true" class="space">
      <td colSpan={columns} style={{ height: `${height}px` }} />
    </tr>
  );
}

function Row({ data, row, position, columns }: { data: Dataset; row: number; position: number; columns: Column[] }) {
  return (
    <tr aria-rowindex={position + 2} class={`row-${data.getText(row, "origin")}${position % 2 ? " odd" : ""}`}>
      {columns.map((column) =>
        "figures" in column ? (
          <td key={column.name} class="right">
            {column.figures.map(({ name, unit }) => (
              <Figure key={name} data={data} row={row} name={name} unit={unit} />
            ))}
          </td>
        ) : (
          <td key={column.name}>{column.render ? column.render(data, row) : data.getText(row, column.name)}</td>
        ),
      )}
    </tr>
  );
}

function Figure({ data, row, name, unit }: { data: Dataset; row: number; name: string; unit: string | undefined }) {
  if (data.getValue(row, name) === null) return null;
  const text = data.formatFigure(row, name, DIGITS);
  const flags = (data.flags.get(row) ?? []).filter((flag) => flag.column === name && flag.severity !== "info");
  const suspect = data.getText(row, "suspect") && name !== "batch_size";
  const doubts = suspect ? [...flags, { rule: "suspect", severity: "warn" as const, column: name }] : flags;
  const what = `${name.replaceAll("_", " ")} of ${data.getText(row, "model")} on ${data.getText(row, "platform")}`;
  const label = [text, what, data.getText(row, "origin"), ...doubts.map((flag) => `${flag.severity} ${flag.rule}`)].join(", ");
  return (
    <button
      type="button"
      class="figure"
      aria-haspopup="dialog"
      aria-label={`${label}: show its source`}
      onClick={() => setParameter("show", `${data.getText(row, "result_id")}.${name}`)}
    >
      {data.isEmulated(row, name) && <span title="emulated, not measured">≈ </span>}
      <DoubtSign flags={doubts} />
      {text}
      {unit && <small> {unit}</small>}
    </button>
  );
}
