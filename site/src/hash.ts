// The whole state of the view stands in the address: #/view/detail?name=value.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  view: string;
  detail: string;
  query: URLSearchParams;
}

export function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [view = "", ...rest] = path.split("/");
  return { view: view || "results", detail: decode(rest.join("/")), query: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function address(view: string, detail = "", query?: URLSearchParams): string {
  const path = detail ? `${view}/${encodeURIComponent(detail)}` : view;
  const told = query?.toString() ?? "";
  return `#/${path}${told ? `?${told}` : ""}`;
}

export function go(to: string, replace = false): void {
  if (to === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Sets one name of the query of this view; null takes it away. */
export function change(name: string, value: string | null, replace = false): void {
  const { view, detail, query } = parse(location.hash);
  if (value === null) query.delete(name);
  else query.set(name, value);
  go(address(view, detail, query), replace);
}

export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    addEventListener("popstate", changed);
    return () => {
      removeEventListener("hashchange", changed);
      removeEventListener("popstate", changed);
    };
  }, []);
  return parse(hash);
}
