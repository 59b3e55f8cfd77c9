import { useEffect, useState } from "preact/hooks";
import { useMedia } from "./data";

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
    // A page opened from disk, or a browser that stores nothing.
  }
}

/** Follows the system until the reader chooses a theme. */
export function ThemeButton() {
  const system = useMedia("(prefers-color-scheme: dark)") ? "dark" : "light";
  const [picked, setPicked] = useState(stored);
  const theme = picked ?? system;
  const other = theme === "dark" ? "light" : "dark";
  useEffect(() => {
    document.documentElement.dataset["theme"] = theme;
    dispatchEvent(new Event("themechange"));
  }, [theme]);
  const toggle = () => {
    store(other);
    setPicked(other);
  };
  return (
    <button type="button" class="quiet theme" onClick={toggle} aria-label={`Use the ${other} theme`}>
      <span aria-hidden="true">{theme === "dark" ? "☀" : "☾"}</span>
    </button>
  );
}

export function useDark(): boolean {
  const isDark = () => document.documentElement.dataset["theme"] === "dark";
  const [dark, setDark] = useState(isDark);
  useEffect(() => {
    const update = () => setDark(isDark());
    update();
    addEventListener("themechange", update);
    return () => removeEventListener("themechange", update);
  }, []);
  return dark;
}
