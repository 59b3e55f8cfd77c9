import { useEffect, useRef } from "preact/hooks";
import { Chart } from "./chart";
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatCount } from "./format";
import type { ChartData } from "./load";
import { Origin } from "./marks";
import { formatHash } from "./route";

export function Charts({ data, name }: { data: Dataset; name: string }) {
  const { questions } = data.data;
  const names = Object.keys(questions);
  const shown = names.includes(name) ? name : names[0]!;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (name) heading.current?.focus();
  }, [name]);
  return (
    <>
      <nav class="questions" aria-label="Questions">
        <h2>Questions</h2>
        <ul>
          {names.map((each) => (
            <li key={each}>
              <a href={formatHash("charts", each)} aria-current={each === shown ? "page" : undefined}>
                {questions[each]}
              </a>
            </li>
          ))}
        </ul>
        <p class="legend">
          {["published", "official", "measured", "emulated"].map((origin) => (
            <Origin key={origin} origin={origin} />
          ))}
        </p>
      </nav>
      <article class="answer">
        <h2 ref={heading} tabIndex={-1}>
          {questions[shown]}
        </h2>
        <WithData name="charts" loading="Loading">
          {(charts) => <Answer key={shown} chart={charts.find((chart) => chart.name === shown)!} rows={data.getAnalysisRows(shown).length} />}
        </WithData>
      </article>
    </>
  );
}

function Answer({ chart, rows }: { chart: ChartData; rows: number }) {
  return (
    <>
      <p class="links">
        <a href={formatHash("results", "", { analysis: chart.name })}>Its {formatCount(rows, "row")} in the table</a>
        {chart.views.map((view) => (
          <a key={view} href={formatHash("sql", "", { q: `SELECT * FROM ${view === "per_dollar" ? "per_dollar()" : view}` })}>
            <code>{view}</code> in SQL
          </a>
        ))}
      </p>
      {chart.summary.split("\n\n").map((paragraph, index) => (
        <p key={index} class="summary">
          {paragraph.split("`").map((part, position) => (position % 2 ? <code key={position}>{part}</code> : part))}
        </p>
      ))}
      <Chart specification={chart.specification} label={`Chart: ${chart.question} The text above holds its figures.`} />
    </>
  );
}
