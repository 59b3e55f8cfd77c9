// A table of which only the rows in sight are in the page; all rows are of one height.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Dataset } from "./dataset";
import { change } from "./hash";
import { Doubt, FlagMark, Origin } from "./marks";

const BEYOND = 8;
const DIGITS = 5; // of a figure that the emulator calculated

interface Shown {
  name: string;
  title: string;
  width: number;
  cell?: (data: Dataset, row: number) => ComponentChildren;
}

/** A column of figures, one below another in a row; it widens with what it holds, since a figure is never cut. */
interface Figures {
  name: string;
  width: number;
  figures: { name: string; title: string; unit?: string }[];
}
type Column = Shown | Figures;

function lone(name: string, title: string, width: number): Figures {
  return { name, width, figures: [{ name, title }] };
}

const WIDE: Column[] = [
  { name: "origin", title: "Origin", width: 116, cell: (data, row) => <Origin origin={data.text(row, "origin")} /> },
  { name: "model", title: "Model", width: 184, cell: model },
  { name: "platform", title: "Platform", width: 146 },
  { name: "sdk_version", title: "SDK", width: 90 },
  { name: "framework", title: "Framework", width: 112 },
  { name: "precision", title: "Precision", width: 80, cell: (data, row) => data.precision(row) },
  lone("batch_size", "Batch", 76),
  lone("throughput", "Items/s", 106),
  lone("latency_ms", "Latency (ms)", 92),
  lone("time_to_train_s", "Time to train (s)", 94),
  lone("efficiency", "Items/s/W", 94),
  { name: "flags", title: "Flags", width: 150, cell: flags },
  { name: "task", title: "Task", width: 80 },
  { name: "publisher", title: "Publisher", width: 100 },
  { name: "published_on", title: "Date", width: 92 },
];

const NARROW: Column[] = [
  { name: "model", title: "Result", width: 158, cell: card },
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

const BESIDE = 46; // pixels of a figure's cell beside its digits: the padding, and the mark of a doubt

/** Widths for all rows that were in sight since these were selected, so that no column moves to and fro. */
function useWidths(data: Dataset, columns: Column[], rows: Int32Array, seen: number[]): string[] {
  const held = useRef({ rows, columns, most: columns.map(() => 0) });
  if (held.current.rows !== rows || held.current.columns !== columns) held.current = { rows, columns, most: columns.map(() => 0) };
  const { most } = held.current;
  return columns.map((one, index) => {
    if (!("figures" in one)) return `${one.width}px`;
    for (const row of seen)
      for (const { name, unit = "" } of one.figures) most[index] = Math.max(most[index]!, told(data, row, name).length + unit.length);
    return `max(${one.width}px, ${most[index]}ch + ${BESIDE}px)`;
  });
}

function told(data: Dataset, row: number, name: string): string {
  return data.figure(row, name, DIGITS);
}

function model(data: Dataset, row: number) {
  const variant = data.text(row, "variant");
  return (
    <>
      {data.text(row, "model")} {variant && <small>{variant}</small>}
    </>
  );
}

function card(data: Dataset, row: number) {
  const parts = ["platform", "framework", "sdk_version"].map((name) => data.text(row, name));
  const batch = data.text(row, "batch_size");
  const said = [batch && `batch ${batch}`, ...parts].filter(Boolean).join(" · ");
  return (
    <span class="card">
      <span>
        <Origin origin={data.text(row, "origin")} brief={data.text(row, "origin") !== "emulated"} />{" "}
        <strong>{model(data, row)}</strong>
      </span>
      <small>{said}</small>
    </span>
  );
}

function flags(data: Dataset, row: number) {
  const found = data.flags.get(row) ?? [];
  const first = [...new Map(found.map((flag) => [flag.rule, flag])).values()];
  return (
    <>
      {data.text(row, "suspect") && (
        <span class="flag flag-warn" title={data.text(row, "suspect")}>
          suspect
        </span>
      )}
      {first.map((flag) => (
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
  const [window_, setWindow] = useState({ top: 0, height: 800 });
  const look = () => {
    if (box.current) setWindow({ top: box.current.scrollTop, height: box.current.clientHeight });
  };
  useLayoutEffect(look, []);
  // A row that leaves the page takes no reader along: the focus goes to the table, not to the top of the page.
  const inside = box.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    if (inside && !box.current!.contains(document.activeElement)) box.current!.focus({ preventScroll: true });
  });
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [rows]);
  const first = Math.max(0, Math.min(Math.floor(window_.top / height) - BEYOND, rows.length - 1));
  const last = Math.min(rows.length, Math.ceil((window_.top + window_.height) / height) + BEYOND);
  const seen = Array.from(rows.subarray(first, last));
  const widths = useWidths(data, columns, rows, seen);
  return (
    <div class="scroll" ref={box} onScroll={look} tabIndex={0} role="region" aria-label="Table of results">
      <table aria-rowcount={rows.length + 1} style={{ minWidth: `calc(${widths.join(" + ")})` }} class={wide ? "wide" : "narrow"}>
        <caption class="unseen">Results; each figure is a button that shows where it was printed</caption>
        <colgroup>
          {columns.map((one, index) => (
            <col key={one.name} style={{ width: widths[index]! }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((one) => (
              <Head key={one.name} column={one} sort={sort} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Space height={first * height} columns={columns.length} />
          {seen.map((row, index) => (
            <Row key={row} data={data} row={row} at={first + index} columns={columns} />
          ))}
          <Space height={(rows.length - last) * height} columns={columns.length} />
        </tbody>
      </table>
      {rows.length === 0 && <p class="none">No result fits. Take a filter away, or search for less.</p>}
    </div>
  );
}

function Head({ column, sort }: { column: Column; sort: string }) {
  const figures = "figures" in column;
  const by = figures ? column.figures : [column];
  const up = by.some((one) => sort === one.name);
  const down = by.some((one) => sort === `-${one.name}`);
  return (
    <th scope="col" class={figures ? "right" : ""} aria-sort={up ? "ascending" : down ? "descending" : "none"}>
      {by.map((one) => (
        <Sort key={one.name} name={one.name} title={one.title} sort={sort} most={figures} />
      ))}
    </th>
  );
}

/** Sorts by a column, the other way round, not at all; `most` has the largest first. */
function Sort({ name, title, sort, most }: { name: string; title: string; sort: string; most: boolean }) {
  const ways = most ? [`-${name}`, name] : [name, `-${name}`];
  const next = sort === ways[0] ? ways[1]! : sort === ways[1] ? null : ways[0]!;
  return (
    <button type="button" onClick={() => change("sort", next)}>
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

function Row({ data, row, at, columns }: { data: Dataset; row: number; at: number; columns: Column[] }) {
  const origin = data.text(row, "origin");
  return (
    <tr aria-rowindex={at + 2} class={`row-${origin}${at % 2 ? " odd" : ""}`}>
      {columns.map((one) =>
        "figures" in one ? (
          <td key={one.name} class="right">
            {one.figures.map(({ name, unit }) => (
              <Figure key={name} data={data} row={row} name={name} unit={unit} />
            ))}
          </td>
        ) : (
          <td key={one.name}>{one.cell ? one.cell(data, row) : data.text(row, one.name)}</td>
        ),
      )}
    </tr>
  );
}

function Figure({ data, row, name, unit }: { data: Dataset; row: number; name: string; unit: string | undefined }) {
  if (data.value(row, name) === null) return null;
  const origin = data.text(row, "origin");
  const text = told(data, row, name);
  const flagged = (data.flags.get(row) ?? []).filter((flag) => flag.column === name && flag.severity !== "info");
  const suspect = data.text(row, "suspect") && name !== "batch_size";
  const doubts = suspect ? [...flagged, { rule: "suspect", severity: "warn" as const, column: name }] : flagged;
  const doubted = doubts.map((flag) => `, ${flag.severity} ${flag.rule}`).join("");
  const label = `${text}, ${name.replaceAll("_", " ")} of ${data.text(row, "model")} on ${data.text(row, "platform")}, ${origin}${doubted}: where it came from`;
  return (
    <button
      type="button"
      class="figure"
      aria-haspopup="dialog"
      aria-label={label}
      onClick={() => change("show", `${data.text(row, "result_id")}.${name}`)}
    >
      {data.emulated(row, name) && <span title="emulated, not measured">≈ </span>}
      <Doubt flags={doubts} />
      {text}
      {unit && <small> {unit}</small>}
    </button>
  );
}
