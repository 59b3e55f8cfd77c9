// The charts, a script of its own: Vega-Lite with an interpreter, since the page's policy forbids evaluated code.
import { parse, Transform, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";
import { arrange, fitWidths, type Part } from "./fit";

export interface Drawing {
  frame: HTMLElement; // for the page to show, if it still wants this drawing
  remove: () => void;
}
type Datum = Record<string, unknown>;

/** What a reader does with a point: `onPoint` on a click, `describe` for more lines of its tooltip. */
export interface PointActions {
  onPoint?: (datum: Datum) => void;
  describe?: (datum: Datum) => Record<string, string>;
}

interface Charts {
  draw: (container: HTMLElement, specification: Part, config: Part, width: number, actions: PointActions) => Promise<Drawing>;
  exportSvg: (specification: Part, lines: string[]) => Promise<string>;
  exportPng: (specification: Part, lines: string[]) => Promise<string>;
}

const SLACK = 4; // pixels of width that need no second layout
const PNG_SCALE = 2;

const SLICE = 12; // milliseconds of work between two pauses

const pause = () => new Promise((resolve) => setTimeout(resolve));

/** Pauses between the steps of a drawing, so that the page answers: Vega waits for a step whose result is a promise. */
const { run } = Transform.prototype;
let due = 0;
Transform.prototype.run = function (pulse) {
  const result = run.call(this, pulse);
  if (result.then || performance.now() < due) return result;
  return pause().then(() => {
    due = performance.now() + SLICE;
    return result;
  });
};

/** Compiles and parses a specification, with a pause after each so that the page answers in between. */
async function prepare(specification: Part, config: Part) {
  const compiled = compile(specification as unknown as TopLevelSpec, { config }).spec;
  await pause();
  const runtime = parse(compiled, {}, { ast: true });
  await pause();
  return { compiled, runtime };
}

const draw: Charts["draw"] = async (container, specification, config, width, actions) => {
  const tooltip = document.createElement("div");
  container.parentElement?.append(tooltip);
  let view: View | null = null;
  const remove = () => {
    view?.finalize();
    tooltip.remove();
  };
  try {
    const arranged = arrange(specification, width);
    const { compiled, runtime } = await prepare(arranged, config);
    const frame = document.createElement("div"); // shown when it is complete, so that nothing below it moves twice
    view = new View(runtime, { expr: expressionInterpreter, renderer: "canvas", container: frame, hover: true, tooltip: makeTooltip(tooltip, actions) });
    view.addEventListener("click", (_, item) => {
      if (item?.datum) actions.onPoint?.(item.datum as Datum);
    });
    await view.runAsync();
    await pause();
    const spare = width - Number.parseFloat(frame.querySelector("canvas")!.style.width);
    if (Math.abs(spare) > SLACK) {
      for (const [name, value] of fitWidths(arranged, compiled, spare)) view.signal(name, value);
      await view.resize().runAsync();
    }
    return { frame, remove };
  } catch (error) {
    remove();
    throw error;
  }
};

/** Shows the values of a mark in an element, as text only. */
function makeTooltip(box: HTMLElement, { describe }: PointActions) {
  box.className = "tip";
  box.hidden = true;
  return (_: unknown, event: MouseEvent, item: { datum?: Datum } | null, value: unknown) => {
    box.hidden = value === null || value === undefined || value === "";
    if (box.hidden) return;
    const own = typeof value === "object" ? (value as object) : { "": value };
    const fields = Object.entries({ ...own, ...(item?.datum && describe ? describe(item.datum) : {}) });
    box.replaceChildren(
      ...fields
        .filter(([, content]) => !["null", "undefined", ""].includes(String(content)))
        .map(([name, content]) => {
          const line = document.createElement("div");
          line.textContent = name ? `${name}: ${content}` : String(content);
          return line;
        }),
    );
    box.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - 270))}px`;
    box.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8))}px`;
  };
}

const makeExport = async (specification: Part) => new View((await prepare(specification, { background: "white" })).runtime, { expr: expressionInterpreter, renderer: "none" });

declare global {
  interface Window {
    __charts?: Charts;
  }
}
const FONT = 11;
const LINE = 16;
const MARGIN = 8;

/** Breaks lines that are wider than a picture, at blanks. */
function wrap(lines: string[], width: number): string[] {
  const pen = document.createElement("canvas").getContext("2d")!;
  pen.font = `${FONT}px sans-serif`;
  return lines.flatMap((line) => {
    const parts: string[] = [];
    for (const word of line.split(" ")) {
      const longer = parts.length > 0 ? `${parts.at(-1)} ${word}` : word;
      if (parts.length > 0 && pen.measureText(longer).width <= width - 2 * MARGIN) parts[parts.length - 1] = longer;
      else parts.push(word);
    }
    return parts;
  });
}

/** The drawing as SVG with lines of text below it. */
async function exportSvg(specification: Part, lines: string[]): Promise<string> {
  const svg = new DOMParser().parseFromString(await (await makeExport(specification)).toSVG(), "image/svg+xml").documentElement;
  const [width, height] = ["width", "height"].map((name) => Number.parseFloat(svg.getAttribute(name)!));
  const own = wrap(lines, width!);
  const whole = height! + own.length * LINE + MARGIN;
  svg.setAttribute("height", String(whole));
  svg.setAttribute("viewBox", `0 0 ${width} ${whole}`);
  const add = (name: string, attributes: Record<string, string | number>, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
    element.textContent = text;
    svg.append(element);
  };
  add("rect", { x: 0, y: height!, width: width!, height: whole - height!, fill: "white" });
  own.forEach((line, index) => add("text", { x: MARGIN, y: height! + (index + 1) * LINE - 4, "font-size": FONT, "font-family": "sans-serif", fill: "#444" }, line));
  return new XMLSerializer().serializeToString(svg);
}

/** The drawing as PNG with lines of text below it. */
async function exportPng(specification: Part, lines: string[]): Promise<string> {
  const drawn = (await (await makeExport(specification)).toCanvas(PNG_SCALE)) as HTMLCanvasElement;
  const own = wrap(lines, drawn.width / PNG_SCALE);
  const picture = document.createElement("canvas");
  picture.width = drawn.width;
  picture.height = drawn.height + (own.length * LINE + MARGIN) * PNG_SCALE;
  const pen = picture.getContext("2d")!;
  pen.fillStyle = "white";
  pen.fillRect(0, 0, picture.width, picture.height);
  pen.drawImage(drawn, 0, 0);
  pen.fillStyle = "#444";
  pen.font = `${FONT * PNG_SCALE}px sans-serif`;
  own.forEach((line, index) => pen.fillText(line, MARGIN * PNG_SCALE, drawn.height + ((index + 1) * LINE - 4) * PNG_SCALE));
  return picture.toDataURL("image/png");
}

window.__charts = { draw, exportSvg, exportPng };
