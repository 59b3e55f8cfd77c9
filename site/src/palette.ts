// The palette of all charts; the pipeline draws with the same file.
import * as palette from "../../schema/palette.toml";

const TO_DARK: Record<string, string> = palette.dark;

const { text, subtitle, axis, grid, frame } = palette.dark_theme;
const POINTER = { point: { cursor: "pointer" } };
const LIGHT_THEME = { background: "transparent", ...POINTER };
const DARK_THEME = {
  background: "transparent",
  ...POINTER,
  title: { color: text, subtitleColor: subtitle },
  axis: { labelColor: text, titleColor: text, gridColor: grid, domainColor: axis, tickColor: axis },
  legend: { labelColor: text, titleColor: text, symbolBaseFillColor: text, symbolBaseStrokeColor: text },
  header: { labelColor: text, titleColor: text },
  text: { color: text },
  view: { stroke: frame },
};

type Specification = Record<string, unknown>;

/** A specification and the Vega-Lite configuration to draw it with, on a light or a dark page. */
export function adaptToTheme(specification: Specification, dark: boolean): [Specification, Specification] {
  if (!dark) return [specification, LIGHT_THEME];
  const json = JSON.stringify(specification).replace(/#[0-9A-Fa-f]{6}(?=")/g, adaptColor);
  return [JSON.parse(json) as Specification, DARK_THEME];
}

/** A colour for a dark page. */
export const adaptColor = (color: string) => TO_DARK[color] ?? lighten(color);

const DARK_LIMIT = 110; // of 255: darker colours, such as shades of a machine's, are lightened

function lighten(color: string): string {
  const parts = [1, 3, 5].map((start) => Number.parseInt(color.slice(start, start + 2), 16));
  const light = 0.3 * parts[0]! + 0.59 * parts[1]! + 0.11 * parts[2]!;
  if (light >= DARK_LIMIT) return color;
  const share = 0.3 + 0.6 * (1 - light / DARK_LIMIT);
  return `#${parts.map((part) => Math.round(part + (255 - part) * share).toString(16).padStart(2, "0")).join("")}`;
}
