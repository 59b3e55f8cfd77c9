import { useEffect, useRef } from "preact/hooks";
import { Chart } from "./chart";
import { useMedia, WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatCount } from "./format";
import type { ChartData } from "./load";
import { Origin } from "./marks";
import { describeSource, Numbers, showSource } from "./points";
import { Ranking, RANKING, RANKING_QUESTION } from "./ranking";
import { Choice } from "./parts";
import { formatHash, navigate } from "./route";

const FIRST = "generations"; // fits one screen with its legend; others have up to 21 panels

export function Charts({ data, detail, query }: { data: Dataset; detail: string; query: URLSearchParams }) {
  return (
    <WithData name="charts" loading="Loading the charts">
      {(charts) => <Answers data={data} charts={charts} name={detail} query={query} />}
    </WithData>
  );
}

function Answers({ data, charts, name, query }: { data: Dataset; charts: ChartData[]; name: string; query: URLSearchParams }) {
  const questions: Record<string, string> = Object.fromEntries(charts.map((chart) => [chart.name, chart.question]));
  questions[RANKING] = RANKING_QUESTION;
  const shown = Object.hasOwn(questions, name) ? name : FIRST;
  const chart = charts.find((candidate) => candidate.name === shown);
  const wide = useMedia("(min-width: 821px)");
  const heading = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (name) heading.current?.focus();
    document.title = `${questions[shown]} · ipu-results`;
  }, [shown]);
  return (
    <>
      <nav class="questions" aria-label="Questions">
        {!wide && <Choice label="Question" value={shown} options={Object.entries(questions)} onChange={(each) => navigate(formatHash("charts", each))} />}
        {wide && <h2>Questions</h2>}
        {wide && <ul>
          {Object.entries(questions).map(([each, question]) => (
            <li key={each}>
              <a href={formatHash("charts", each)} aria-current={each === shown ? "page" : undefined}>
                {question}
              </a>
            </li>
          ))}
        </ul>}
        <p class="legend">
          {["published", "official", "measured", "emulated"].map((origin) => (
            <Origin key={origin} origin={origin} />
          ))}
        </p>
      </nav>
      <article class="answer">
        <p class="over">{questions[shown]}</p>
        <div ref={heading} tabIndex={-1}>
          {chart ? <Answer key={shown} data={data} chart={chart} /> : <Ranking data={data} query={query} />}
        </div>
      </article>
    </>
  );
}

/** Static pages with what a chart draws and leaves out. */
const PAGES: Record<string, string> = { replications: "replications.html", roofline: "peak.html" };

function Answer({ data, chart }: { data: Dataset; chart: ChartData }) {
  const rows = data.getAnalysisRows(chart.name).length;
  const [sentence, ...key] = chart.shows;
  return (
    <>
      <h2>{chart.finding}</h2>
      <p>{sentence}.</p>
      <Chart
        specification={chart.specification}
        label={`Chart: ${chart.finding} The numbers are in the table below.`}
        onPoint={(datum) => showSource(data, datum.result_id)}
        describe={(datum) => describeSource(data, datum.result_id)}
      />
      <p class="key">
        {key.map((line) => (
          <small key={line}>{line}. </small>
        ))}
      </p>
      <h3>What the rows cannot show</h3>
      <ul class="caveats">
        {chart.caveats.map((caveat) => (
          <li key={caveat}>{formatCode(caveat)}</li>
        ))}
      </ul>
      {chart.figures.length > 0 && (
        <details>
          <summary>More figures, in words</summary>
          {chart.figures.map((paragraph) => (
            <p key={paragraph} class="summary">
              {formatCode(paragraph)}
            </p>
          ))}
        </details>
      )}
      <Numbers data={data} tables={chart.numbers} />
      <p class="links">
        <a href={`chart/${chart.name}.svg`}>Picture (SVG)</a>
        <a href={`chart/${chart.name}.csv`}>Numbers (CSV)</a>
        {rows > 0 && <a href={formatHash("results", "", { analysis: chart.name })}>Its {formatCount(rows, "row")} in the table</a>}
        {PAGES[chart.name] && <a href={PAGES[chart.name]!}>Every figure with its page and table</a>}
        {chart.views.map((view) => (
          <a key={view} href={formatHash("sql", "", { q: `SELECT * FROM ${view}` })}>
            <code>{view}</code> in SQL
          </a>
        ))}
      </p>
    </>
  );
}

const formatCode = (text: string) => text.split("`").map((part, position) => (position % 2 ? <code key={position}>{part}</code> : part));
