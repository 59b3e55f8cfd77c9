import { useEffect, useRef } from "preact/hooks";
import { Boundary } from "./boundary";
import { Charts } from "./charts";
import { Claims } from "./claims";
import type { Dataset } from "./dataset";
import { Emulator } from "./emulator";
import { Provenance } from "./provenance";
import { Results } from "./results";
import { formatHash, type Route, useRoute } from "./route";
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
  const route = useRoute();
  const view = Object.hasOwn(VIEWS, route.view) ? route.view : "results";
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
            <a key={name} href={formatHash(name)} aria-current={name === view ? "page" : undefined}>
              {title}
            </a>
          ))}
        </nav>
        <ThemeButton />
      </header>
      <main ref={main} tabIndex={-1} class={`view view-${view}`}>
        <Boundary hash={location.hash}>
          <View view={view} route={route} data={data} />
        </Boundary>
      </main>
      <footer class="bottom">
        {build.version ? `Release ${build.version}` : "Unreleased"}, build <code>{build.build_id.slice(0, 12)}</code>, from{" "}
        {build.documents} documents. Figures are shown with every digit, except for those that the emulator calculated (≈). No
        figure is changed or filled in, and doubtful ones are flagged.
      </footer>
      <Provenance data={data} show={route.query.get("show")} />
    </>
  );
}

function View({ view, route, data }: { view: string; route: Route; data: Dataset }) {
  if (view === "charts") return <Charts data={data} name={route.detail} />;
  if (view === "claims") return <Claims query={route.query} name={route.detail} />;
  if (view === "emulator") return <Emulator query={route.query} data={data} />;
  if (view === "sql") return <Sql query={route.query} />;
  return <Results data={data} query={route.query} />;
}
