// Horizontal bars as plain SVG: light enough for the first view, with a text for each value.
import type { Bars } from "./load";

const WIDTH = 340;
const VALUE = 62; // room for the value behind a bar
const CHARACTER = 7.2; // of a label
const LONG_LABEL = 12; // characters, from which a label is above its bar
const BAR = 14;
const GAP = 5; // between a value and what is next to it
const TOP = 18; // room for the label of the line

export function BarChart({ title, bars, unit, rule }: Bars & { title: string }) {
  const longest = Math.max(...bars.map(({ label }) => label.length));
  const above = longest > LONG_LABEL;
  const from = above ? 0 : longest * CHARACTER + 8;
  const step = above ? 34 : 21;
  const scale = (WIDTH - VALUE - from) / Math.max(...bars.map(({ value }) => value), rule?.value ?? 0);
  const top = rule ? TOP : 2;
  const height = top + bars.length * step;
  const at = from + (rule?.value ?? 0) * scale;
  const suffix = unit.length < 3 ? unit : "";
  return (
    <svg class="bars" viewBox={`0 0 ${WIDTH} ${height + 2}`} role="img" aria-label={describe(title, bars, unit)}>
      {rule && <line x1={at} x2={at} y1={TOP} y2={height} />}
      {bars.map(({ label, value }, index) => (
        <g key={index} transform={`translate(0 ${top + index * step})`}>
          <text x={above ? 0 : from - 8} y={above ? 12 : 13} text-anchor={above ? "start" : "end"}>
            {label}
          </text>
          <rect x={from} y={above ? 17 : 2} width={Math.max(1, value * scale)} height={BAR} rx={2} />
          <Value text={formatValue(value) + suffix} end={from + value * scale} from={from} rule={rule ? at : null} y={above ? 28 : 13} />
        </g>
      ))}
      {rule && (
        <text class="rule" x={Math.min(at, WIDTH - 40)} y={TOP - 6} text-anchor="middle">
          {rule.label + (suffix && ` ${formatValue(rule.value)}${suffix}`)}
        </text>
      )}
    </svg>
  );
}

/** The value behind its bar; where the line of the rule would cross it, within the bar, or else behind the line. */
function Value({ text, end, from, rule, y }: { text: string; end: number; from: number; rule: number | null; y: number }) {
  const width = text.length * CHARACTER;
  const isClear = (left: number) => rule === null || rule < left - GAP + 1 || rule > left + width + GAP;
  if (isClear(end + GAP)) return <text class="value" x={end + GAP} y={y}>{text}</text>;
  if (end - GAP - width >= from && isClear(end - GAP - width)) return <text class="inside" x={end - GAP} y={y} text-anchor="end">{text}</text>;
  return <text class="value" x={Math.max(end, rule!) + GAP} y={y}>{text}</text>;
}

/** Two decimals, or three digits of a fraction of one. */
function formatValue(value: number): string {
  return value.toLocaleString("en", value < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 });
}

function describe(title: string, bars: Bars["bars"], unit: string): string {
  return `${title} ${bars.map(({ label, value }) => `${label}: ${formatValue(value)}${unit}`).join("; ")}`;
}
