import { useEffect, useRef, useState } from "preact/hooks";
import { useMedia } from "./data";
import { loadScript } from "./load";
import { adaptToTheme } from "./palette";
import type { Drawing, PointActions } from "./vega";

const STEP = 20; // pixels by which the width must change for another drawing
const PADDING = 28; // of the box around the drawing

interface Props extends PointActions {
  specification: Record<string, unknown>;
  label: string;
}

/** The width of an element without its padding, in steps; 0 until it is known. */
export function useWidth(element: { current: HTMLElement | null }, padding: number): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const measure = () => element.current && setWidth(Math.floor((element.current.clientWidth - padding) / STEP) * STEP);
    const observer = new ResizeObserver(measure);
    observer.observe(element.current!);
    measure();
    return () => observer.disconnect();
  }, []);
  return width;
}

export function Chart({ specification, label, ...actions }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLDivElement>(null);
  const [problem, setProblem] = useState("");
  const dark = useMedia("(prefers-color-scheme: dark)");
  const width = useWidth(box, PADDING);
  useEffect(() => {
    if (!width) return;
    let drawing: Drawing | null = null;
    let current = true; // whether this specification, theme and width are still the ones to draw
    setProblem("");
    const start = async () => {
      await loadScript("vega.js");
      if (!current || !canvas.current || !window.__charts) return;
      const finished = await window.__charts.draw(canvas.current, ...adaptToTheme(specification, dark), width, actions);
      if (!current || !canvas.current) return finished.remove();
      canvas.current.replaceChildren(finished.frame);
      drawing = finished;
    };
    start().catch((error: Error) => current && setProblem(error.message));
    return () => {
      current = false;
      drawing?.remove();
    };
  }, [specification, dark, width]);
  return (
    <div ref={box} class="chart" tabIndex={0} role="img" aria-label={label}>
      <div ref={canvas} class="canvas">
        <p class="waiting">Drawing …</p>
      </div>
      {problem && <p role="alert">The chart could not be drawn: {problem}</p>}
    </div>
  );
}
