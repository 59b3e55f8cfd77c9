// A table of which only the rows in sight are in the page; all rows are of one height.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Dataset } from "./dataset";
import { figure } from "./format";
import { change } from "./hash";
import { Doubt, FlagMark, Origin } from "./marks";

const BEYOND = 8;

interface Shown {
  name: string;
  title: string;
  width: number;
  figure?: boolean;
  cell?: (data: Dataset, row: number) => ComponentChildren;
}

const WIDE: Shown[] = [
  { name: "origin", title: "Origin", width: 116, cell: (data, row) => <Origin origin={data.text(row, "origin")} /> },
  { name: "model", title: "Model", width: 184, cell: model },
  { name: "platform", title: "Platform", width: 146 },
  { name: "sdk_version", title: "SDK", width: 90 },
  { name: "framework", title: "Framework", width: 112 },
  { name: "precision", title: "Precision", width: 80, cell: (data, row) => data.precision(row) },
  { name: "batch_size", title: "Batch", width: 70, figure: true },
  { name: "throughput", title: "Items/s", width: 100, figure: true },
  { name: "latency_ms", title: "Latency (ms)", width: 90, figure: true },
  { name: "time_to_train_s", title: "Time to train (s)", width: 92, figure: true },
  { name: "efficiency", title: "Items/s/W", width: 92, figure: true },
  { name: "flags", title: "Flags", width: 150, cell: flags },
  { name: "task", title: "Task", width: 80 },
  { name: "publisher", title: "Publisher", width: 100 },
  { name: "published_on", title: "Date", width: 92 },
];

const NARROW: Shown[] = [
  { name: "model", title: "Result", width: 158, cell: card },
  { name: "throughput", title: "items/s", width: 82, figure: true },
  { name: "latency_ms", title: "ms", width: 76, figure: true },
  { name: "time_to_train_s", title: "Train s", width: 74, figure: true },
];

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
  const width = columns.reduce((sum, one) => sum + one.width, 0);
  const seen = Array.from(rows.subarray(first, last));
  return (
    <div class="scroll" ref={box} onScroll={look} tabIndex={0} role="region" aria-label="Table of results">
      <table aria-rowcount={rows.length + 1} style={{ minWidth: `${width}px` }} class={wide ? "wide" : "narrow"}>
        <caption class="unseen">Results; each figure is a button that shows where it was printed</caption>
        <colgroup>
          {columns.map((one) => (
            <col key={one.name} style={{ width: `${one.width}px` }} />
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

function Head({ column, sort }: { column: Shown; sort: string }) {
  const up = sort === column.name;
  const down = sort === `-${column.name}`;
  const next = column.figure ? (down ? column.name : up ? null : `-${column.name}`) : up ? `-${column.name}` : down ? null : column.name;
  return (
    <th scope="col" class={column.figure ? "right" : ""} aria-sort={up ? "ascending" : down ? "descending" : "none"}>
      <button type="button" onClick={() => change("sort", next)}>
        {column.title} <span aria-hidden="true">{up ? "▲" : down ? "▼" : ""}</span>
      </button>
    </th>
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

function Row({ data, row, at, columns }: { data: Dataset; row: number; at: number; columns: Shown[] }) {
  const origin = data.text(row, "origin");
  return (
    <tr aria-rowindex={at + 2} class={`row-${origin}${at % 2 ? " odd" : ""}`}>
      {columns.map((one) => (
        <td key={one.name} class={one.figure ? "right" : ""}>
          {one.figure ? <Figure data={data} row={row} name={one.name} /> : one.cell ? one.cell(data, row) : data.text(row, one.name)}
        </td>
      ))}
    </tr>
  );
}

function Figure({ data, row, name }: { data: Dataset; row: number; name: string }) {
  const value = data.value(row, name);
  if (value === null) return null;
  const origin = data.text(row, "origin");
  const told = figure(value, origin === "published", 5);
  const flagged = (data.flags.get(row) ?? []).filter((flag) => flag.column === name && flag.severity !== "info");
  const suspect = data.text(row, "suspect") && name !== "batch_size";
  const doubts = suspect ? [...flagged, { rule: "suspect", severity: "warn" as const, column: name }] : flagged;
  const doubted = doubts.map((flag) => `, ${flag.severity} ${flag.rule}`).join("");
  const label = `${told}, ${name.replaceAll("_", " ")} of ${data.text(row, "model")} on ${data.text(row, "platform")}, ${origin}${doubted}: where it came from`;
  return (
    <button
      type="button"
      class="figure"
      aria-haspopup="dialog"
      aria-label={label}
      onClick={() => change("show", `${data.text(row, "result_id")}.${name}`)}
    >
      {origin === "emulated" && name !== "batch_size" && <span title="emulated, not measured">≈ </span>}
      <Doubt flags={doubts} />
      {told}
    </button>
  );
}
