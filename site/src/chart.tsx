import { useEffect, useRef, useState } from "preact/hooks";
import { loadScript } from "./load";
import { adaptToTheme } from "./palette";
import { useDark } from "./theme";
import type { Drawing } from "./vega";

interface Props {
  specification: Record<string, unknown>;
  label: string;
  onPoint?: (datum: Record<string, unknown>) => void;
}

export function Chart({ specification, label, onPoint }: Props) {
  const canvas = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState("");
  const dark = useDark();
  useEffect(() => {
    let drawing: Drawing | null = null;
    let current = true; // whether this specification and theme are still the ones to draw
    setProblem("");
    const start = async () => {
      await loadScript("vega.js");
      if (!current || !canvas.current || !window.__draw) return;
      canvas.current.replaceChildren();
      const finished = await window.__draw(canvas.current, ...adaptToTheme(specification, dark), onPoint);
      if (current) drawing = finished;
      else finished.remove();
    };
    start().catch((error: Error) => current && setProblem(error.message));
    return () => {
      current = false;
      drawing?.remove();
    };
  }, [specification, dark]);
  return (
    <div class="chart" tabIndex={0} role="img" aria-label={label}>
      <div ref={canvas} class="canvas">
        <p class="waiting">Drawing …</p>
      </div>
      {problem && <p role="alert">The chart could not be drawn: {problem}</p>}
    </div>
  );
}
