// The charts, a script of its own: Vega-Lite with an interpreter, since the page's policy forbids evaluated code.
import { parse, View } from "vega";
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
}

const SLACK = 4; // pixels of width that need no second layout

const pause = () => new Promise((resolve) => setTimeout(resolve));

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

declare global {
  interface Window {
    __charts?: Charts;
  }
}

window.__charts = { draw };
