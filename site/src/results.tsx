import { useMemo } from "preact/hooks";
import { MEASURES, getMeasure, selectColumns, selectNarrow } from "./columns";
import { useMedia } from "./data";
import { type Dataset, FACETS, FACET_TITLES } from "./dataset";
import { FacetList } from "./facets";
import { formatCount } from "./format";
import { formatHash, navigate, setParameter, setParameters, toggleValue } from "./route";
import { join, LeftOut, saveFile } from "./parts";
import { type Filters, type Group, selectRows } from "./select";
import { Table } from "./table";

const MAX_CHOICES = 6; // groups offered to choose from

const NOT_FILTERS = new Set(["show", "per", "all"]); // parameters that keep the opening order: the fastest first

function parseFilters(data: Dataset, query: URLSearchParams): Filters {
  const picked: Filters["picked"] = {};
  for (const name of FACETS) if (query.has(name)) picked[name] = query.getAll(name).map((word) => data.spell(name, word));
  const limit = Number.parseFloat(query.get("ms") ?? "");
  return {
    search: query.get("q") ?? "",
    analysis: query.get("analysis"),
    picked,
    sort: query.get("sort") ?? ([...query.keys()].every((name) => NOT_FILTERS.has(name)) ? "-throughput" : ""),
    maxLatency: Number.isNaN(limit) ? null : limit,
    all: query.has("all"),
  };
}

export function Results({ data, query }: { data: Dataset; query: URLSearchParams }) {
  const filters = parseFilters(data, query);
  const selection = useMemo(() => selectRows(data, filters), [data, JSON.stringify(filters)]);
  const wide = useMedia("(min-width: 821px)");
  const per = query.get("per") ?? "";
  const columns = useMemo(() => (wide ? selectColumns(per) : selectNarrow(per)), [wide, per]);
  document.title = `${describeFilters(filters) || "All results"} · ipu-results`;
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
            placeholder="46,174 · 0.58 ms · bow2000"
            value={filters.search}
            onInput={(event) => setParameter("q", event.currentTarget.value || null, true)}
          />
          <p role="status" class="count">
            <strong>{formatCount(selection.rows.length, "result")}</strong> of {data.rows.toLocaleString("en")}
          </p>
          <label class="small">
            Latency ≤{" "}
            <input
              type="number"
              min="0"
              step="any"
              class="limit"
              value={query.get("ms") ?? ""}
              onChange={(event) => setParameter("ms", event.currentTarget.value || null)}
            />{" "}
            ms
          </label>
          <label class="small">
            <span class="wide-only">Throughput </span>
            <select aria-label="Throughput" value={per} onChange={(event) => changeMeasure(event.currentTarget.value, filters.sort)}>
              {Object.entries(MEASURES).map(([key, { option }]) => (
                <option key={key} value={key}>
                  {option}
                </option>
              ))}
            </select>
          </label>
          <button aria-label="Download these results as CSV" onClick={() => saveFile("ipu-results.csv", "text/csv", formatCsv(data, selection.rows))}>
            CSV ↓
          </button>
        </div>
        <Chips data={data} filters={filters} />
        {selection.rows.length > 0 ? (
          <Table data={data} rows={selection.rows} groups={selection.groups} columns={columns} sort={filters.sort} wide={wide} />
        ) : (
          <Nothing data={data} filters={filters} />
        )}
        <Choices groups={selection.groups} sort={filters.sort} />
        <LeftOut count={selection.unusable} shown={selection.showsUnusable} {...(filters.all || !selection.showsUnusable ? { onChange: () => setParameter("all", filters.all ? null : "1") } : {})} />
        {filters.search && (
          <p class="note">
            Results only. <a href={formatHash("claims", "", { q: filters.search })}>Search the claims as well</a>
          </p>
        )}
      </div>
    </>
  );
}

/** The filters in words, for the title of the window. */
function describeFilters({ search, picked, maxLatency, analysis }: Filters): string {
  const limit = maxLatency === null ? "" : `within ${maxLatency} ms`;
  return join([search, analysis, ...Object.values(picked).flat(), limit]);
}

/** Shows throughput per something else, and keeps the order by throughput. */
function changeMeasure(per: string, sort: string): void {
  const isRate = Object.values(MEASURES).some(({ name }) => name === sort.replace(/^-/, ""));
  const order = isRate ? { sort: (sort.startsWith("-") ? "-" : "") + getMeasure(per).name } : {};
  setParameters({ per: per || null, ...order });
}

/** Says why the order has groups, and offers each group by itself. */
function Choices({ groups, sort }: { groups: Group[]; sort: string }) {
  const isFirst = ({ task, item }: Group, index: number) => groups.findIndex((own) => own.task === task && own.item === item) === index;
  const named = groups.filter((group, index) => group.label && isFirst(group, index)); // a sparse network is in the group of the dense
  if (named.length === 0) return null;
  if (/minutes|time_to/.test(sort))
    return <p class="note">Sorted within each network: training another network, or to another quality, takes another time.</p>;
  if (named.length === 1) return <p class="note">A sparse network is not a dense one: sparse networks have a ranking of their own.</p>;
  return (
    <p class="note">
      Sorted within each task and unit: an image is not a sequence, training is not inference and a sparse network is not a dense one, so one ranking of all would mean
      nothing. Show one:{" "}
      {named.slice(0, MAX_CHOICES).map(({ label, task, item, size }) => (
        <button key={label} class="chip" onClick={() => setParameters({ task, item: item || "(blank)" })}>
          {label} <small>{size}</small>
        </button>
      ))}
    </p>
  );
}

/** Says what is not in the record, and which part of the question stands in the way. */
function Nothing({ data, filters }: { data: Dataset; filters: Filters }) {
  const { search } = filters;
  const alone = { search: "", analysis: null, picked: {}, sort: "", maxLatency: null, all: true };
  const unknown = search.split(/\s+/).filter((word) => word && selectRows(data, { ...alone, search: word }).rows.length === 0);
  const ways: { title: string; parameter: string; count: number }[] = [];
  const offer = (title: string, parameter: string, without: Filters) => {
    const count = selectRows(data, without).rows.length;
    if (count > 0) ways.push({ title, parameter, count });
  };
  for (const name of FACETS) {
    const words = filters.picked[name] ?? [];
    if (words.length > 0) offer(`${FACET_TITLES[name]}: ${words.join(" or ")}`, name, { ...filters, picked: { ...filters.picked, [name]: [] } });
  }
  if (filters.analysis !== null) offer("the analysis", "analysis", { ...filters, analysis: null });
  if (search) offer(`the search for “${search}”`, "q", { ...filters, search: "" });
  if (filters.maxLatency !== null) offer(`latency at most ${filters.maxLatency} ms`, "ms", { ...filters, maxLatency: null });
  return (
    <div class="none">
      {unknown.length > 0 ? (
        <p>
          <strong>Not in this record: {unknown.map((word) => `“${word}”`).join(", ")}.</strong> No model, machine, chip, publisher, document or figure of the{" "}
          {data.rows.toLocaleString("en")} results has it.
        </p>
      ) : (
        <p>
          <strong>No result has all of this.</strong>
        </p>
      )}
      {ways.length > 0 && (
        <ul>
          {ways.map(({ title, parameter, count }) => (
            <li key={parameter}>
              <button class="link" onClick={() => setParameter(parameter, null)}>
                Without {title}
              </button>
              : {formatCount(count, "result")}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Chips({ data, filters }: { data: Dataset; filters: Filters }) {
  const { analysis, picked, search, maxLatency } = filters;
  const chips = FACETS.flatMap((name) =>
    (picked[name] ?? []).map((word) => ({ label: `${FACET_TITLES[name]}: ${word}`, remove: () => toggleValue(name, word) })),
  );
  if (analysis !== null) {
    const { questions } = data.data;
    const question = Object.hasOwn(questions, analysis) ? questions[analysis] : analysis;
    chips.unshift({ label: `Analysis: ${question}`, remove: () => setParameter("analysis", null) });
  }
  if (maxLatency !== null) chips.push({ label: `Latency: at most ${maxLatency} ms`, remove: () => setParameter("ms", null) });
  if (chips.length === 0 && !search) return null;
  return (
    <ul class="chips" aria-label="Filters in use">
      {chips.map(({ label, remove }) => (
        <li key={label}>
          <button class="chip" onClick={remove} aria-label={`Remove the filter ${label}`}>
            {label} <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
      <li>
        <button class="quiet" onClick={() => navigate("#/results")}>
          Clear all
        </button>
      </li>
    </ul>
  );
}

/** Formats rows with all columns and every digit; a blank is an empty cell. */
function formatCsv(data: Dataset, rows: Int32Array): string {
  const { names } = data;
  const lines = Array.from(rows, (row) => names.map((name) => formatCell(data.getText(row, name))).join(","));
  return [names.join(","), ...lines, ""].join("\r\n");
}

function formatCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
