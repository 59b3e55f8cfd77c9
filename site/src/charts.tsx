import { useEffect, useRef } from "preact/hooks";
import { Chart } from "./chart";
import type { Dataset } from "./dataset";
import { count } from "./format";
import { address } from "./hash";
import { useData } from "./hooks";
import { Origin } from "./marks";

export function Charts({ data, name }: { data: Dataset; name: string }) {
  const loaded = useData("charts");
  const names = Object.keys(data.data.questions);
  const shown = names.includes(name) ? name : names[0]!;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (name) heading.current?.focus();
  }, [name]);
  const one = loaded.state === "there" ? loaded.data.find((chart) => chart.name === shown) : undefined;
  const rows = data.set(shown).length;
  return (
    <>
      <nav class="questions" aria-label="Questions">
        <h2>Questions</h2>
        <ul>
          {names.map((each) => (
            <li key={each}>
              <a href={address("charts", each)} aria-current={each === shown ? "page" : undefined}>
                {data.data.questions[each]}
              </a>
            </li>
          ))}
        </ul>
        <p class="legend">
          <Origin origin="published" /> <Origin origin="official" /> <Origin origin="measured" /> <Origin origin="emulated" />
        </p>
      </nav>
      <article class="answer">
        <h2 ref={heading} tabIndex={-1}>
          {data.data.questions[shown]}
        </h2>
        {loaded.state === "failed" && <p role="alert">{loaded.why}</p>}
        {loaded.state === "waiting" && <p role="status">Loading …</p>}
        {one && (
          <>
            <p class="links">
              <a href={address("results", "", new URLSearchParams({ analysis: shown }))}>Its {count(rows, "row")} in the table</a>
              {one.views.map((view) => (
                <a key={view} href={address("sql", "", new URLSearchParams({ q: `SELECT * FROM ${source(view)}` }))}>
                  <code>{view}</code> in SQL
                </a>
              ))}
            </p>
            <p class="told">{one.told.split("`").map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</p>
            <Chart key={shown} specification={one.specification} label={`Chart: ${one.question} The paragraph above tells its figures.`} />
          </>
        )}
      </article>
    </>
  );
}

function source(view: string): string {
  return view === "per_dollar" ? "per_dollar()" : view;
}
