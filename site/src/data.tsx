import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Dataset } from "./dataset";
import { type Data, load } from "./load";

type State<Kind> = { data: Kind } | { problem: string } | null;

interface Props<Name extends keyof Data> {
  name: Name;
  loading?: string; // without it nothing is shown until then: of what few rows have, a note would only move what is below
  children: (data: Data[Name]) => ComponentChildren;
}

/** Loads a script of data and renders its content; until then a note, and on failure the reason. */
export function WithData<Name extends keyof Data>({ name, loading, children }: Props<Name>) {
  const [state, setState] = useState<State<Data[Name]>>(null);
  useEffect(() => {
    let current = true;
    load(name).then(
      (data) => current && setState({ data }),
      (error: Error) => current && setState({ problem: error.message }),
    );
    return () => {
      current = false;
    };
  }, [name]);
  if (state === null) return loading ? <p role="status">{loading} …</p> : null;
  if ("problem" in state) return <p role="alert">{state.problem}</p>;
  return <>{children(state.data)}</>;
}

let dataset: Dataset | undefined; // made once

/** Loads the results and renders a view of them. */
export function WithDataset({ children }: { children: (data: Dataset) => ComponentChildren }) {
  return (
    <WithData name="results" loading="Loading the results">
      {(data) => children((dataset ??= new Dataset(data)))}
    </WithData>
  );
}

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const update = () => setMatches(media.matches);
    media.addEventListener("change", update);
    return () => media.removeEventListener("change", update);
  }, [query]);
  return matches;
}
