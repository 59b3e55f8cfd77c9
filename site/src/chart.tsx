import { useEffect, useRef, useState } from "preact/hooks";
import { loadScript } from "./load";
import { useDark } from "./theme";
import type { Drawn } from "./vega";

const INK = "#dfe5ea";
const DARK = {
  background: "transparent",
  title: { color: INK, subtitleColor: "#b4bec7" },
  axis: { labelColor: INK, titleColor: INK, gridColor: "#343c44", domainColor: "#8a949d", tickColor: "#8a949d" },
  legend: { labelColor: INK, titleColor: INK, symbolBaseFillColor: INK, symbolBaseStrokeColor: INK },
  header: { labelColor: INK, titleColor: INK },
  text: { color: INK },
  view: { stroke: "#444d56" },
};
const LIGHT = { background: "transparent" };
// Colours that a specification holds for a light page, and what stands for them on a dark one.
const TURNED: Record<string, string> = {
  "#000000": "#f2f2f2",
  "#dddddd": "#444d56",
  "#e6e6e6": "#343c44",
  "#555555": "#b4bec7",
  "#0072B2": "#5b8def",
  "#8C6D1F": "#c9a64a",
};

function turned<Kind>(value: Kind): Kind {
  const text = JSON.stringify(value);
  return JSON.parse(text.replace(/"(#[0-9A-Fa-f]{6})"/g, (all, one: string) => (TURNED[one] ? `"${TURNED[one]}"` : all))) as Kind;
}

interface Props {
  specification: Record<string, unknown>;
  label: string;
  clicked?: (datum: Record<string, unknown>) => void;
}

export function Chart({ specification, label, clicked }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState("");
  const dark = useDark();
  useEffect(() => {
    let drawn: Drawn | null = null;
    let wanted = true;
    setProblem("");
    const start = async () => {
      await loadScript("vega.js");
      const into = box.current;
      if (!wanted || !into || !window.__draw) return;
      into.replaceChildren();
      const made = await window.__draw(into, dark ? turned(specification) : specification, dark ? DARK : LIGHT, clicked);
      if (wanted) drawn = made;
      else made.end();
    };
    start().catch((error: Error) => wanted && setProblem(error.message));
    return () => {
      wanted = false;
      drawn?.end();
    };
  }, [specification, dark]);
  return (
    <div class="chart" tabIndex={0} role="img" aria-label={label}>
      <div ref={box} class="canvas">
        <p class="waiting">Drawing …</p>
      </div>
      {problem && <p role="alert">The chart could not be drawn: {problem}</p>}
    </div>
  );
}
