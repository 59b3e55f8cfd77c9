// The address holds the whole state of the page: #/view/detail?name=value.
import { useEffect, useState } from "preact/hooks";
import { equalIgnoringCase } from "./format";

export interface Route {
  view: string;
  detail: string;
  query: URLSearchParams;
}

function parseHash(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view = "", ...rest] = path.split("/");
  return { view: view || "start", detail: decode(rest.join("/")), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function formatHash(view: string, detail = "", query: URLSearchParams | Record<string, string> = {}): string {
  const path = detail ? `${view}/${encodeURIComponent(detail)}` : view;
  const text = new URLSearchParams(query).toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

export function navigate(hash: string, replace = false, state: unknown = null): void {
  if (hash === location.hash) return;
  history[replace ? "replaceState" : "pushState"](state, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Sets a parameter of this view; null removes it. */
export function setParameter(name: string, value: string | null, replace = false): void {
  setParameters({ [name]: value }, replace);
}

/** Opens the panel of a figure, from which Back returns. */
export function openPanel(figure: string): void {
  const { view, detail, query } = parseHash(location.hash);
  query.set("show", figure);
  navigate(formatHash(view, detail, query), false, { panel: true });
}

/** Closes the panel: goes back to where it was opened, so that Back does not open it again. */
export function closePanel(): void {
  if ((history.state as { panel?: boolean } | null)?.panel) history.back();
  else setParameter("show", null, true);
}

/** Sets several parameters of this view; null removes one. */
export function setParameters(parameters: Record<string, string | null>, replace = false): void {
  const { view, detail, query } = parseHash(location.hash);
  for (const [name, value] of Object.entries(parameters))
    if (value === null) query.delete(name);
    else query.set(name, value);
  navigate(formatHash(view, detail, query), replace);
}

/** Adds a value to a parameter of this view, or removes it where it is set. */
export function toggleValue(name: string, value: string): void {
  const { view, detail, query } = parseHash(location.hash);
  const values = query.getAll(name);
  const others = values.filter((other) => !equalIgnoringCase(other, value));
  query.delete(name);
  for (const kept of others.length < values.length ? others : [...values, value]) query.append(name, kept);
  navigate(formatHash(view, detail, query));
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    addEventListener("hashchange", update);
    addEventListener("popstate", update);
    return () => {
      removeEventListener("hashchange", update);
      removeEventListener("popstate", update);
    };
  }, []);
  return parseHash(hash);
}
