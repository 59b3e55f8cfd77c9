// Horizontal bars as plain SVG: light enough for the first view, and with a text for each value.
import type { Bars } from "./load";

const WIDTH = 420;
const ROW = 22;
const FROM = 190; // where bars begin
const TO = 350; // where the longest ends; its value follows
const TOP = 16; // room for the label of the line

export function BarChart({ title, bars, unit, rule }: Bars & { title: string }) {
  const scale = (TO - FROM) / Math.max(...bars.map(({ value }) => value), rule?.value ?? 0);
  const height = TOP + bars.length * ROW;
  const at = rule && FROM + rule.value * scale;
  return (
    <svg class="bars" viewBox={`0 0 ${WIDTH} ${height + 4}`} role="img" aria-label={describe(title, bars, unit)}>
      {bars.map(({ label, value }, index) => (
        <g key={index} transform={`translate(0 ${TOP + index * ROW})`}>
          <text x={FROM - 8} y={14} text-anchor="end">
            {label}
          </text>
          <rect x={FROM} y={3} width={Math.max(1, value * scale)} height={ROW - 7} rx={2} />
          <text class="value" x={FROM + value * scale + 5} y={14}>
            {formatValue(value)}
            {unit.length < 3 ? unit : ""}
          </text>
        </g>
      ))}
      {rule && (
        <>
          <line x1={at!} x2={at!} y1={TOP} y2={height} />
          <text class="rule" x={at!} y={TOP - 4} text-anchor="middle">
            {rule.label} {formatValue(rule.value)}
            {unit.length < 3 ? unit : ""}
          </text>
        </>
      )}
    </svg>
  );
}

const formatValue = (value: number) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

function describe(title: string, bars: Bars["bars"], unit: string): string {
  return `${title} ${bars.map(({ label, value }) => `${label}: ${formatValue(value)}${unit}`).join("; ")}`;
}
