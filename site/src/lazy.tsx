// Renders a view of `more.js`, which is loaded with the first one.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { loadScript } from "./load";
import type * as Views from "./more";

declare global {
  interface Window {
    __more?: typeof Views;
  }
}

type Name = keyof typeof Views;
type Props<Which extends Name> = { name: Which } & Parameters<(typeof Views)[Which]>[0];

export function More<Which extends Name>({ name, ...rest }: Props<Which>) {
  const [state, setState] = useState(window.__more ? "loaded" : "");
  useEffect(() => {
    if (state === "")
      loadScript("more.js").then(
        () => setState("loaded"),
        (error: Error) => setState(error.message),
      );
  }, [state]);
  if (state === "") return <p role="status">Loading …</p>;
  if (state !== "loaded" || !window.__more) return <p role="alert">{state}</p>;
  const View = window.__more[name] as unknown as ComponentType<typeof rest>;
  return <View {...rest} />;
}
