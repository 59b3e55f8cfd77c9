import { useEffect, useState } from "preact/hooks";
import { useMedia } from "./hooks";

const KEY = "ipu-results-theme";

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function store(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // a page opened from disk, or a browser that keeps nothing
  }
}

/** Follows the system until a reader picks one. */
export function ThemeButton() {
  const system = useMedia("(prefers-color-scheme: dark)") ? "dark" : "light";
  const [picked, setPicked] = useState(stored);
  const theme = picked ?? system;
  const other = theme === "dark" ? "light" : "dark";
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
    dispatchEvent(new Event("themechange"));
  }, [theme]);
  const change = () => {
    store(other);
    setPicked(other);
  };
  return (
    <button type="button" class="quiet theme" onClick={change} aria-label={`Use the ${other} theme`}>
      <span aria-hidden="true">{theme === "dark" ? "☀" : "☾"}</span>
    </button>
  );
}

export function useDark(): boolean {
  const now = () => document.documentElement.dataset["theme"] === "dark";
  const [dark, setDark] = useState(now);
  useEffect(() => {
    const changed = () => setDark(now());
    changed();
    addEventListener("themechange", changed);
    return () => removeEventListener("themechange", changed);
  }, []);
  return dark;
}
