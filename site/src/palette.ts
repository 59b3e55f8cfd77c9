// The palette of all charts; the pipeline draws with the same file.
import palette from "../../schema/palette.toml";

export const SET_COLORS: Record<string, string> = palette.validation_sets;
export const RULE = palette.ink.rule;
const TO_DARK: Record<string, string> = palette.dark;

const { text, subtitle, axis, grid, frame } = palette.dark_theme;
const LIGHT_THEME = { background: "transparent" };
const DARK_THEME = {
  background: "transparent",
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
  const json = JSON.stringify(specification).replace(/#[0-9A-Fa-f]{6}(?=")/g, (color) => TO_DARK[color] ?? color);
  return [JSON.parse(json) as Specification, DARK_THEME];
}
