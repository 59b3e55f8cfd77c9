import { useEffect, useRef } from "preact/hooks";
import { Boundary } from "./boundary";
import { Charts } from "./charts";
import { Claims } from "./claims";
import type { Dataset } from "./dataset";
import { Emulator } from "./emulator";
import { address, type Place, usePlace } from "./hash";
import { Provenance } from "./provenance";
import { Results } from "./results";
import { Sql } from "./sql";
import { ThemeButton } from "./theme";

const VIEWS: Record<string, string> = {
  results: "Results",
  charts: "Charts",
  claims: "Claims",
  emulator: "Emulator",
  sql: "SQL",
};

export function App({ data }: { data: Dataset }) {
  const place = usePlace();
  const view = Object.hasOwn(VIEWS, place.view) ? place.view : "results";
  const main = useRef<HTMLElement>(null);
  const { build } = data.data;
  useEffect(() => {
    document.title = `${VIEWS[view]} · ipu-results`;
  }, [view]);
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <h1>
          <a href="#/results">ipu-results</a>
        </h1>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(([name, title]) => (
            <a key={name} href={address(name)} aria-current={name === view ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <ThemeButton />
      </header>
      <main ref={main} tabIndex={-1} class={`view view-${view}`}>
        <Boundary at={location.hash}>
          <View view={view} place={place} data={data} />
        </Boundary>
      </main>
      <footer class="bottom">
        {build.version ? `Release ${build.version}, ` : ""}build <code>{build.build_id.slice(0, 12)}</code>, from{" "}
        {build.documents} documents. No figure is changed, rounded or filled in, but those that the emulator calculated (≈) are cut; what looks wrong is
        flagged.
      </footer>
      <Provenance data={data} show={place.query.get("show")} />
    </>
  );
}

function View({ view, place, data }: { view: string; place: Place; data: Dataset }) {
  if (view === "charts") return <Charts data={data} name={place.detail} />;
  if (view === "claims") return <Claims query={place.query} name={place.detail} />;
  if (view === "emulator") return <Emulator query={place.query} data={data} />;
  if (view === "sql") return <Sql query={place.query} />;
  return <Results data={data} query={place.query} />;
}
