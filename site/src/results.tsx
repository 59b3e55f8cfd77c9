import { useMemo } from "preact/hooks";
import { useMedia } from "./data";
import { type Dataset, FACETS, FACET_TITLES } from "./dataset";
import { FacetList } from "./facets";
import { formatCount } from "./format";
import { navigate, setParameter, toggleValue } from "./route";
import { type Filters, selectRows } from "./select";
import { Table } from "./table";

function parseFilters(data: Dataset, query: URLSearchParams): Filters {
  const picked: Filters["picked"] = {};
  for (const name of FACETS) if (query.has(name)) picked[name] = query.getAll(name).map((word) => data.spell(name, word));
  return { search: query.get("q") ?? "", analysis: query.get("analysis"), picked, sort: query.get("sort") ?? "" };
}

export function Results({ data, query }: { data: Dataset; query: URLSearchParams }) {
  const filters = parseFilters(data, query);
  const selection = useMemo(() => selectRows(data, filters), [data, JSON.stringify(filters)]);
  const wide = useMedia("(min-width: 821px)");
  const facets = <FacetList data={data} counts={selection.counts} picked={filters.picked} />;
  return (
    <>
      <h2 class="unseen">All results</h2>
      {wide ? (
        <aside class="facets" aria-label="Filters">
          {facets}
        </aside>
      ) : (
        <details class="facets-folded">
          <summary>Filters</summary>
          {facets}
        </details>
      )}
      <div class="matches">
        <div class="bar">
          <input
            type="search"
            aria-label="Search the results"
            placeholder="Search: bert pod16, 2.0-2047, qwant …"
            value={filters.search}
            onInput={(event) => setParameter("q", event.currentTarget.value || null, true)}
          />
          <p role="status" class="count">
            <strong>{formatCount(selection.rows.length, "result")}</strong> of {data.rows.toLocaleString("en")}
          </p>
        </div>
        <Chips data={data} filters={filters} />
        <Table data={data} rows={selection.rows} sort={filters.sort} wide={wide} />
      </div>
    </>
  );
}

function Chips({ data, filters }: { data: Dataset; filters: Filters }) {
  const { analysis, picked, search } = filters;
  const chips = FACETS.flatMap((name) =>
    (picked[name] ?? []).map((word) => ({ label: `${FACET_TITLES[name]}: ${word}`, remove: () => toggleValue(name, word) })),
  );
  if (analysis !== null) {
    const { questions } = data.data;
    const question = Object.hasOwn(questions, analysis) ? questions[analysis] : analysis;
    chips.unshift({ label: `Analysis: ${question}`, remove: () => setParameter("analysis", null) });
  }
  if (chips.length === 0 && !search) return null;
  return (
    <ul class="chips" aria-label="Filters in use">
      {chips.map(({ label, remove }) => (
        <li key={label}>
          <button type="button" class="chip" onClick={remove} aria-label={`Remove the filter ${label}`}>
            {label} <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
      <li>
        <button type="button" class="quiet" onClick={() => navigate("#/results")}>
          Clear all
        </button>
      </li>
    </ul>
  );
}
