// A chart fitted to the width that it has: panels below one another, and as wide as the labels leave room.
export type Part = { [name: string]: any };

const PANEL = 330; // pixels that a panel needs with its labels
const MIN_PANEL = 130;
const WIDEST = 1.5; // times the width that the pipeline draws a panel with
const NARROW = 600;
const LABEL_SHARE = 0.42; // of the width, for the labels of rows
const TITLE_CHARACTERS = 26; // of a line, of the title of an axis
const MARGIN = 110; // of a narrow legend, which begins below the panel
const STACKED = { direction: "vertical", anchor: "start", margin: 4 };
const RAISED_STEP = 32; // pixels of a row with its label above the points
const RAISED = { labelAlign: "left", labelPadding: -4, labelOffset: -10, tickSize: 0, titleAlign: "left", titleX: 0 };
const [CHARACTER, SYMBOL] = [6.2, 40]; // pixels of a legend

/** Arranges the panels of a specification for a width; the page shows its title itself. */
export function arrange(specification: Part, width: number): Part {
  const part = structuredClone(specification);
  delete part.title;
  arrangePart(part, width);
  const legend = part.config?.legend ?? {};
  const longest = Math.max(8, ...listWords(part).map((word) => word.length)) * CHARACTER + SYMBOL;
  const columns = Math.max(1, Math.min(legend.columns ?? 4, Math.floor(width / longest)));
  const below = { orient: "bottom", columns, labelLimit: width < NARROW ? width - MARGIN : width - SYMBOL, ...(width < NARROW ? { labelFontSize: 10 } : {}), layout: { bottom: STACKED } };
  const axis = { ...part.config?.axis, labelLimit: width < NARROW ? Math.floor(width * LABEL_SHARE) : 420 };
  part.config = { ...part.config, legend: { ...legend, ...below }, axis };
  return part;
}

function arrangePart(part: Part, width: number): void {
  if (part.columns) part.columns = Math.max(1, Math.min(part.columns, Math.floor(width / PANEL)));
  for (const inner of listInner(part)) arrangePart(inner, width);
  if (width >= NARROW) return;
  const parts = [part, ...(part.layer ?? [])];
  for (const each of parts) shorten(each.encoding ?? {}, width);
  if (part.height?.step && parts.some(isRowOfPoints)) raiseLabels(part, parts, width);
  if (typeof part.title === "string") part.title = { text: wrap(part.title, Math.floor(width / 9)), anchor: "start" };
}

/** The words of all scales, which the legends show. */
function listWords(part: unknown): string[] {
  if (Array.isArray(part)) return part.flatMap(listWords);
  if (typeof part !== "object" || part === null) return [];
  const { domain, values, ...others } = part as Part;
  const own = Array.isArray(domain) ? domain.filter((word) => typeof word === "string") : [];
  return [...own, ...listWords(Object.values(others))];
}

/** Wraps the titles of axes and cuts their labels, which else leave no room for the panel. */
function shorten(encoding: Part, width: number): void {
  for (const name of ["x", "y"]) if (typeof encoding[name]?.title === "string") encoding[name].title = wrap(encoding[name].title, TITLE_CHARACTERS);
  if (encoding.y?.axis?.labelLimit) encoding.y.axis.labelLimit = Math.floor(width * LABEL_SHARE);
}

/** Whether points are on lines of a grid, one for each label; bars would be covered by labels above them. */
const isRowOfPoints = ({ mark, encoding }: Part): boolean => mark?.type === "point" && encoding?.y?.axis?.labelLimit && encoding.y.axis.grid;

/** Puts the labels of rows above their points, where they have the whole width. */
function raiseLabels(part: Part, parts: Part[], width: number): void {
  for (const { encoding } of parts) if (encoding?.y?.axis?.labelLimit) Object.assign(encoding.y.axis, RAISED, { labelLimit: width - SYMBOL });
  part.height = { step: RAISED_STEP };
}

const listInner = (part: Part): Part[] => part.concat ?? [];

function wrap(text: string, characters: number): string[] {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length > characters && lines.at(-1)) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

const MIN_STEP = 14; // pixels of a column of cells
const COLUMNS = 12; // of cells, about

/** The signals that widen or narrow all panels by what a first layout left over or lacked, with their values. */
export function fitWidths(part: Part, compiled: Part, spare: number): [name: string, value: number][] {
  const share = spare / countColumns(part);
  return [{ name: "width", value: compiled.width }, ...(compiled.signals ?? [])].flatMap(({ name, value }: Part): [string, number][] => {
    if (typeof value !== "number") return [];
    if (/width$/i.test(name)) return [[name, Math.round(Math.max(MIN_PANEL, Math.min(value * WIDEST, value + share)))]];
    return /x_step$/.test(name) && spare < 0 ? [[name, Math.max(MIN_STEP, value + share / COLUMNS)]] : [];
  });
}

/** How many panels are next to each other. */
function countColumns(part: Part): number {
  return (part.columns ?? 1) * Math.max(1, ...listInner(part).map(countColumns));
}
