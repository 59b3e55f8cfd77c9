// The charts, a script of its own: Vega-Lite with an interpreter, since the page's policy forbids evaluated code.
import { parse, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";
import { adjust, arrange, type Part } from "./fit";

export interface Drawing {
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
  exportSvg: (specification: Part) => Promise<string>;
  exportPng: (specification: Part) => Promise<string>;
}

const SLACK = 4; // pixels of width that need no second drawing
const PNG_SCALE = 2;

function makeView(specification: Part, config: Part, options: Part): View {
  const compiled = compile(specification as unknown as TopLevelSpec, { config }).spec;
  return new View(parse(compiled, {}, { ast: true }), { expr: expressionInterpreter, ...options });
}

const draw: Charts["draw"] = async (container, specification, config, width, actions) => {
  const tooltip = document.createElement("div");
  container.parentElement?.append(tooltip);
  let view: View | null = null;
  const remove = () => {
    view?.finalize();
    tooltip.remove();
  };
  const render = async (part: Part) => {
    view?.finalize();
    container.replaceChildren();
    view = makeView(part, config, { renderer: "canvas", container, hover: true, tooltip: makeTooltip(tooltip, actions) });
    view.addEventListener("click", (_, item) => {
      if (item?.datum) actions.onPoint?.(item.datum as Datum);
    });
    await view.runAsync();
    return container.querySelector("canvas")!.offsetWidth;
  };
  try {
    const arranged = arrange(specification, width);
    const drawn = await render(arranged);
    if (Math.abs(width - drawn) > SLACK) await render(adjust(arranged, drawn, width));
  } catch (error) {
    remove();
    throw error;
  }
  return { remove };
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

const makeExport = (specification: Part) => makeView(specification, { background: "white" }, { renderer: "none" });

declare global {
  interface Window {
    __charts?: Charts;
  }
}
window.__charts = {
  draw,
  exportSvg: (specification) => makeExport(specification).toSVG(),
  exportPng: (specification) => makeExport(specification).toImageURL("png", PNG_SCALE),
};
