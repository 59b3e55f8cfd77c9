import { useEffect, useRef } from "preact/hooks";
import { About } from "./about";
import { Boundary } from "./boundary";
import { Compare } from "./compare";
import { WithDataset } from "./data";
import type { StartData } from "./load";
import { More } from "./lazy";
import { Provenance } from "./provenance";
import { Results } from "./results";
import { formatHash, type Route, useRoute } from "./route";
import { Start } from "./start";
import { ThemeButton } from "./theme";

const VIEWS: Record<string, string> = {
  start: "Start",
  results: "Results",
  compare: "Compare",
  run: "Your run",
  charts: "Charts",
  claims: "Claims",
  microbenchmarks: "Microbenchmarks",
  emulator: "Emulator",
  sql: "SQL",
};
const UNKNOWN = "unknown";
const ABOUT = "about"; // a page of the documentation, linked from the others

export function App({ start }: { start: StartData }) {
  const route = useRoute();
  const view = Object.hasOwn(VIEWS, route.view) || route.view === ABOUT ? route.view : UNKNOWN;
  const main = useRef<HTMLElement>(null);
  const { build } = start;
  const skip = () => (view === "results" ? document.querySelector<HTMLElement>(".scroll") : main.current)?.focus();
  const show = route.query.get("show");
  useEffect(() => {
    if (view === "start") document.title = "ipu-results: measured speed of AI processors, each figure with its source";
    else if (!["results", "compare", "charts", "claims"].includes(view)) document.title = `${VIEWS[view] ?? (view === ABOUT ? `About: ${route.detail}` : "No such page")} · ipu-results`;
  }, [view, route.detail]);
  return (
    <>
      <button type="button" class="skip" onClick={skip}>
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
        </nav>
        <ThemeButton />
      </header>
      <main ref={main} tabIndex={-1} class={`view view-${view}`}>
        <Boundary hash={location.hash}>
          <View view={view} route={route} start={start} />
        </Boundary>
      </main>
      <footer class="bottom">
        {build.version ? `Release ${build.version}` : "Unreleased"}, as of <time dateTime={build.as_of}>{build.as_of}</time>, build <code>{build.build_id.slice(0, 12)}</code>, from{" "}
        {build.documents} documents. Printed figures are exact; measured and computed ones are rounded in tables, and ≈ is emulated.{" "}
        <a href="changed.html">What changed</a> · <a href="downloads.html">Downloads</a>
      </footer>
      {show && view !== "microbenchmarks" && <WithDataset>{(data) => <Provenance data={data} show={show} start={start} />}</WithDataset>}
    </>
  );
}

function View({ view, route, start }: { view: string; route: Route; start: StartData }) {
  if (view === UNKNOWN)
    return (
      <div class="about">
        <h2>Page not found</h2>
        <p role="alert">
          The address names a view <code>{route.view}</code>, which does not exist. It may come from another release.
        </p>
        <p>
          <a href="#/">Start</a>, <a href="#/results">all results</a>, <a href="#/compare">compare two machines</a> or <a href="#/claims">claims</a>.
        </p>
      </div>
    );
  if (view === "start") return <Start data={start} />;
  if (view === ABOUT) return <About name={route.detail} repository={start.repository} />;
  if (view === "claims") return <More name="Claims" query={route.query} detail={route.detail} />;
  if (view === "microbenchmarks") return <More name="Microbenchmarks" query={route.query} />;
  if (view === "sql") return <More name="Sql" query={route.query} />;
  return (
    <WithDataset>
      {(data) => {
        if (view === "charts") return <More name="Charts" data={data} detail={route.detail} query={route.query} />;
        if (view === "emulator") return <More name="Emulator" query={route.query} data={data} />;
        if (view === "run") return <More name="OwnRun" data={data} query={route.query} />;
        if (view === "compare") return <Compare data={data} query={route.query} />;
        return <Results data={data} query={route.query} />;
      }}
    </WithDataset>
  );
}
