import { useEffect, useState } from "preact/hooks";
import { type Data, load } from "./load";

export type Loaded<Kind> = { state: "waiting" } | { state: "failed"; why: string } | { state: "there"; data: Kind };

export function useData<Name extends keyof Data>(name: Name): Loaded<Data[Name]> {
  const [found, setFound] = useState<Loaded<Data[Name]>>({ state: "waiting" });
  useEffect(() => {
    let wanted = true;
    load(name).then(
      (data) => wanted && setFound({ state: "there", data }),
      (error: Error) => wanted && setFound({ state: "failed", why: error.message }),
    );
    return () => {
      wanted = false;
    };
  }, [name]);
  return found;
}

export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const media = matchMedia(query);
    const changed = () => setMatches(media.matches);
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, [query]);
  return matches;
}
