// The charts' own script: Vega-Lite without evaluated code, as the page's policy asks.
import { parse, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";

export type Drawn = { end: () => void };
export type Draw = (
  into: HTMLElement,
  specification: Record<string, unknown>,
  config: Record<string, unknown>,
  clicked?: (datum: Record<string, unknown>) => void,
) => Promise<Drawn>;

const draw: Draw = async (into, specification, config, clicked) => {
  const box = document.createElement("div");
  const compiled = compile(specification as unknown as TopLevelSpec, { config }).spec;
  const view = new View(parse(compiled, {}, { ast: true }), {
    expr: expressionInterpreter,
    renderer: "canvas",
    container: into,
    hover: true,
    tooltip: tip(box),
  });
  view.addEventListener("click", (_, item) => {
    if (item?.datum) clicked?.(item.datum as Record<string, unknown>);
  });
  const end = () => {
    view.finalize();
    box.remove();
  };
  into.parentElement?.append(box);
  try {
    await view.runAsync();
  } catch (error) {
    end();
    throw error;
  }
  return { end };
};

/** A tooltip of text alone. */
function tip(box: HTMLElement) {
  box.className = "tip";
  box.hidden = true;
  return (_: unknown, event: MouseEvent, __: unknown, value: unknown) => {
    box.hidden = value === null || value === undefined || value === "";
    if (box.hidden) return;
    const told = typeof value === "object" ? Object.entries(value as object) : [["", value]];
    box.replaceChildren(
      ...told
        .filter(([, one]) => !["null", "undefined", ""].includes(String(one)))
        .map(([name, one]) => {
          const line = document.createElement("div");
          line.textContent = name ? `${name}: ${one}` : String(one);
          return line;
        }),
    );
    box.style.left = `${Math.min(event.clientX + 14, innerWidth - 260)}px`;
    box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
  };
}

declare global {
  interface Window {
    __draw?: Draw;
  }
}
window.__draw = draw;
