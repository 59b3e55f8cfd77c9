import { views as VIEWS } from "../../schema/menu.toml";
import { useEffect, useRef } from "preact/hooks";
import { Boundary } from "./boundary";
import { Charts } from "./charts";
import { Claims } from "./claims";
import { Compare } from "./compare";
import { WithDataset } from "./data";
import { Emulator } from "./emulator";
import type { StartData } from "./load";
import { Provenance } from "./provenance";
import { Results } from "./results";
import { formatHash, type Route, useRoute } from "./route";
import { OwnRun } from "./run";
import { Sql } from "./sql";
import { Start } from "./start";

const UNKNOWN = "unknown";
const OWN_TITLE = ["results", "compare", "charts", "claims"]; // views that name what they show

export function App({ start }: { start: StartData }) {
  const route = useRoute();
  const view = Object.hasOwn(VIEWS, route.view) ? route.view : UNKNOWN;
  const main = useRef<HTMLElement>(null);
  const { build } = start;
  const show = route.query.get("show");
  const skip = () => {
    const rows = document.querySelector<HTMLElement>(".scroll");
    const target = view === "results" ? rows : main.current;
    target?.focus();
  };
  useEffect(() => {
    if (view === "start") document.title = "ipu-results: measured speed of AI processors, each figure with its source";
    else if (!OWN_TITLE.includes(view)) document.title = `${VIEWS[view] ?? "No such page"} · ipu-results`;
  }, [view]);
  return (
    <>
      <button class="skip" onClick={skip}>
        {view === "results" ? "Skip to the rows" : "Skip to the content"}
      </button>
      <header class="top">
        <h1>
          <a href="#/">ipu-results</a>
        </h1>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(([name, title]) => (
            <a key={name} href={formatHash(name)} aria-current={name === view ? "page" : undefined}>
              {title}
            </a>
          ))}
          <a href="microbenchmarks.html">Microbenchmarks</a>
        </nav>
      </header>
      <main ref={main} tabIndex={-1} class={`view view-${view}`}>
        <Boundary hash={location.hash}>
          <View view={view} route={route} start={start} />
        </Boundary>
      </main>
      <footer class="bottom">
        {build.version ? `Release ${build.version}` : "Unreleased"}, as of <time dateTime={build.as_of}>{build.as_of}</time>, build{" "}
        <code>{build.build_id.slice(0, 12)}</code>, from {build.documents} documents. Printed figures are exact; measured and computed
        ones are rounded in tables, and ≈ is emulated. <a href="changed.html">What changed</a> · <a href="downloads.html">Downloads</a>
      </footer>
      {show && <WithDataset>{(data) => <Provenance data={data} show={show} start={start} />}</WithDataset>}
    </>
  );
}

function View({ view, route, start }: { view: string; route: Route; start: StartData }) {
  const { query, detail } = route;
  if (view === UNKNOWN) return <NotFound view={route.view} />;
  if (view === "start") return <Start data={start} />;
  if (view === "claims") return <Claims query={query} detail={detail} />;
  if (view === "emulator") return <Emulator query={query} />;
  if (view === "sql") return <Sql query={query} />;
  return (
    <WithDataset>
      {(data) => {
        if (view === "charts") return <Charts data={data} detail={detail} query={query} />;
        if (view === "run") return <OwnRun data={data} query={query} />;
        if (view === "compare") return <Compare data={data} query={query} />;
        return <Results data={data} query={query} />;
      }}
    </WithDataset>
  );
}

function NotFound({ view }: { view: string }) {
  return (
    <div class="start">
      <h2>Page not found</h2>
      <p role="alert">
        The address names a view <code>{view}</code>, which does not exist. It may come from another release.
      </p>
      <p>
        <a href="#/">Home</a>, <a href="#/results">all results</a>, <a href="#/compare">compare two machines</a> or{" "}
        <a href="#/claims">claims</a>.
      </p>
    </div>
  );
}
