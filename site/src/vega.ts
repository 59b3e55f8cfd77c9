// The charts, a script of its own: Vega-Lite with an interpreter, since the page's policy forbids evaluated code.
import { parse, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile, type TopLevelSpec } from "vega-lite";

export interface Drawing {
  remove: () => void;
}
type Draw = (
  container: HTMLElement,
  specification: Record<string, unknown>,
  config: Record<string, unknown>,
  onPoint?: (datum: Record<string, unknown>) => void,
) => Promise<Drawing>;

const draw: Draw = async (container, specification, config, onPoint) => {
  const tooltip = document.createElement("div");
  const compiled = compile(specification as unknown as TopLevelSpec, { config }).spec;
  const view = new View(parse(compiled, {}, { ast: true }), {
    expr: expressionInterpreter,
    renderer: "canvas",
    container,
    hover: true,
    tooltip: makeTooltip(tooltip),
  });
  view.addEventListener("click", (_, item) => {
    if (item?.datum) onPoint?.(item.datum as Record<string, unknown>);
  });
  const remove = () => {
    view.finalize();
    tooltip.remove();
  };
  container.parentElement?.append(tooltip);
  try {
    await view.runAsync();
  } catch (error) {
    remove();
    throw error;
  }
  return { remove };
};

/** Shows the values of a mark in an element, as text only. */
function makeTooltip(box: HTMLElement) {
  box.className = "tip";
  box.hidden = true;
  return (_: unknown, event: MouseEvent, __: unknown, value: unknown) => {
    box.hidden = value === null || value === undefined || value === "";
    if (box.hidden) return;
    const fields = typeof value === "object" ? Object.entries(value as object) : [["", value]];
    box.replaceChildren(
      ...fields
        .filter(([, content]) => !["null", "undefined", ""].includes(String(content)))
        .map(([name, content]) => {
          const line = document.createElement("div");
          line.textContent = name ? `${name}: ${content}` : String(content);
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
