// The table of results. Only the rows in view are in the page; all rows have one height.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type Column, HELP } from "./columns";
import type { Dataset } from "./dataset";
import { formatCount, formatUnit } from "./format";
import { DoubtSign } from "./marks";
import { SourceButton } from "./parts";
import { setParameter } from "./route";
import type { Group } from "./select";

const OVERSCAN = 8; // rows rendered beyond the view
const CELL_PADDING = { wide: 32, narrow: 28 }; // pixels: the padding of a figure's cell and the sign of a doubt
const UNIT_SCALE = 0.85; // of the small font of units
const EMULATED_SIGN = 2; // characters of ≈ and a blank
const ONE_LINE = 14; // characters of a figure with its unit, beyond which a narrow table puts the unit below

/** The width of a text in digits; a comma or a point is about half as wide as a digit. */
const countDigits = (text: string): number => text.length - (text.match(/[.,]/g)?.length ?? 0) / 2;

/** Widths for all rows that were in view since these were selected, so that no column changes to and fro.
 *
 * Columns of figures have the width of their widest figure. Columns of text shrink by what the box then lacks.
 */
function useWidths(data: Dataset, columns: Column[], rows: Int32Array, visible: number[], wide: boolean): string[] {
  const makeState = () => ({ rows, columns, characters: columns.map(() => 0) });
  const state = useRef(makeState());
  if (state.current.rows !== rows || state.current.columns !== columns) state.current = makeState();
  const { characters } = state.current;
  const figures = columns.map((column, index) => {
    if (!("figures" in column)) return "";
    for (const row of visible)
      for (const { name, withUnit } of column.figures) {
        const unit = withUnit && data.getValue(row, name) !== null ? describeUnit(data, row, name).length * UNIT_SCALE : 0;
        const figure = countDigits(data.formatOnScreen(row, name)) + (data.isEmulated(row, name) ? EMULATED_SIGN : 0);
        characters[index] = Math.max(characters[index]!, figure, wide ? unit : Math.min(figure + 1 + unit, ONE_LINE));
      }
    return `max(${column.width}px, ${characters[index]}ch + ${CELL_PADDING[wide ? "wide" : "narrow"]}px)`;
  });
  const [wanted, spare] = columns.reduce(
    ([all, less], column) => ("figures" in column ? [all, less] : [all + column.width, less + column.width - column.least]),
    [0, 0],
  );
  const lacking = [...figures.filter(Boolean), `${wanted}px - 100cqw`].join(" + ");
  return columns.map((column, index) => {
    if ("figures" in column) return figures[index]!;
    return `clamp(${column.least}px, ${column.width}px - (${lacking}) * ${(column.width - column.least) / spare}, ${column.width}px)`;
  });
}

interface Props {
  data: Dataset;
  rows: Int32Array;
  groups: Group[];
  columns: Column[];
  sort: string;
  wide: boolean;
}

/** Rows with a line for the heading of each group: -1 for the first, -2 for the second. */
function interleave(rows: Int32Array, groups: Group[]): Int32Array {
  if (groups.length === 0) return rows;
  const lines = new Int32Array(rows.length + groups.length);
  groups.forEach(({ start, size }, index) => {
    lines[start + index] = -1 - index;
    lines.set(rows.subarray(start, start + size), start + index + 1);
  });
  return lines;
}

export function Table({ data, rows: selected, groups, columns, sort, wide }: Props) {
  const rows = useMemo(() => interleave(selected, groups), [selected, groups]);
  const height = wide ? 56 : 92;
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
  const widths = useWidths(data, columns, rows, visible.filter((row) => row >= 0), wide);
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
            {columns.map((column, index) => (
              <HeaderCell key={column.name} column={column} sort={sort} first={index === 0} />
            ))}
          </tr>
        </thead>
        <tbody>
          <Space height={first * height} columns={columns.length} />
          {visible.map((row, index) =>
            row < 0 ? (
              <Heading key={row} group={groups[-1 - row]!} position={first + index} columns={columns.length} />
            ) : (
            <Row key={row} data={data} row={row} position={first + index} columns={columns} />
            ),
          )}
          <Space height={(rows.length - last) * height} columns={columns.length} />
        </tbody>
      </table>
    </div>
  );
}

function HeaderCell({ column, sort, first }: { column: Column; sort: string; first: boolean }) {
  const numeric = "figures" in column;
  const keys = numeric ? column.figures : [column];
  const ascending = keys.some(({ name }) => sort === name);
  const descending = keys.some(({ name }) => sort === `-${name}`);
  return (
    <th scope="col" class={numeric ? "right" : first ? "first" : ""} aria-sort={ascending ? "ascending" : descending ? "descending" : "none"}>
      {keys.map(({ name, title }) => (
        <SortButton key={name} name={name} title={title} help={HELP[name] ?? ""} sort={sort} largestFirst={numeric} />
      ))}
    </th>
  );
}

/** Sorts by a column, then in the other direction, then not at all. */
function SortButton({ name, title, help, sort, largestFirst }: { name: string; title: string; help: string; sort: string; largestFirst: boolean }) {
  const steps = largestFirst ? [`-${name}`, name] : [name, `-${name}`];
  const next = sort === steps[0] ? steps[1]! : sort === steps[1] ? null : steps[0]!;
  return (
    <button title={help} onClick={() => setParameter("sort", next)}>
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

function Heading({ group, position, columns }: { group: Group; position: number; columns: number }) {
  return (
    <tr aria-rowindex={position + 2} class="group">
      <th scope="rowgroup" colSpan={columns}>
        <span>
          {group.label || "Without this figure"} <small>{formatCount(group.size, "result")}</small>
        </span>
      </th>
    </tr>
  );
}

function Row({ data, row, position, columns }: { data: Dataset; row: number; position: number; columns: Column[] }) {
  return (
    <tr aria-rowindex={position + 2} class={`row-${data.getText(row, "origin")}${position % 2 ? " odd" : ""}`}>
      {columns.map((column, index) =>
        "figures" in column ? (
          <td key={column.name} class="right">
            {column.figures.map(({ name, withUnit }) => (
              <Figure key={name} data={data} row={row} name={name} withUnit={withUnit ?? false} />
            ))}
          </td>
        ) : (
          <td key={column.name} class={index === 0 ? "first" : ""}>{column.render ? column.render(data, row) : data.getText(row, column.name)}</td>
        ),
      )}
    </tr>
  );
}

function Figure({ data, row, name, withUnit }: { data: Dataset; row: number; name: string; withUnit: boolean }) {
  if (data.getValue(row, name) === null) return null;
  const text = data.formatOnScreen(row, name);
  const unit = withUnit ? describeUnit(data, row, name) : "";
  const doubts = data.findDoubts(row, name);
  const what = `${name.replaceAll("_", " ")} of ${data.getText(row, "model")} on ${data.getText(row, "platform")}`;
  const label = [[text, unit].filter(Boolean).join(" "), what, data.getText(row, "origin"), ...doubts.map((flag) => `${flag.severity} ${flag.rule}`)].join(", ");
  return (
    <SourceButton of={`${data.getText(row, "result_id")}.${name}`} label={`${label}: show its source`}>
      {data.isEmulated(row, name) && <span title="emulated, not measured">≈ </span>}
      <DoubtSign flags={doubts} />
      <span class="digits">{text}</span>
      {unit && <> <small>{unit}</small></>}
    </SourceButton>
  );
}

function describeUnit(data: Dataset, row: number, name: string): string {
  return formatUnit(name, data.getText(row, "item")).replace(/ per .*/, "");
}
