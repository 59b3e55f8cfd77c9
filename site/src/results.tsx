import { useMemo } from "preact/hooks";
import { type Dataset, FACETS, FACET_TITLES, type FacetName, same } from "./dataset";
import { FacetList } from "./facets";
import { count } from "./format";
import { change, go } from "./hash";
import { useMedia } from "./hooks";
import { type Asked, select } from "./select";
import { Table } from "./table";

function asked(data: Dataset, query: URLSearchParams): Asked {
  const picked: Partial<Record<FacetName, string[]>> = {};
  for (const name of FACETS) if (query.has(name)) picked[name] = query.getAll(name).map((word) => data.spelled(name, word));
  return { words: query.get("q") ?? "", set: query.get("analysis"), picked, sort: query.get("sort") ?? "" };
}

export function Results({ data, query }: { data: Dataset; query: URLSearchParams }) {
  const state = asked(data, query);
  const told = JSON.stringify(state);
  const selection = useMemo(() => select(data, state), [data, told]);
  const wide = useMedia("(min-width: 821px)");
  const facets = <FacetList data={data} counts={selection.counts} picked={state.picked} />;
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
      <div class="found">
        <div class="bar">
          <input
            type="search"
            aria-label="Search the results"
            placeholder="Search: bert pod16, 2.0-2047, qwant …"
            value={state.words}
            onInput={(event) => change("q", event.currentTarget.value || null, true)}
          />
          <p role="status" class="count">
            <strong>{count(selection.rows.length, "result")}</strong> of {data.rows.toLocaleString("en")}
          </p>
        </div>
        <Chips data={data} state={state} />
        <Table data={data} rows={selection.rows} sort={state.sort} wide={wide} />
      </div>
    </>
  );
}

function Chips({ data, state }: { data: Dataset; state: Asked }) {
  const picked = FACETS.flatMap((name) => (state.picked[name] ?? []).map((word) => ({ name, word })));
  if (picked.length === 0 && state.set === null && !state.words) return null;
  return (
    <ul class="chips" aria-label="Filters in use">
      {state.set !== null && (
        <Chip label={`Analysis: ${Object.hasOwn(data.data.questions, state.set) ? data.data.questions[state.set] : state.set}`} off={() => change("analysis", null)} />
      )}
      {picked.map(({ name, word }) => (
        <Chip
          key={`${name} ${word}`}
          label={`${FACET_TITLES[name]}: ${word}`}
          off={() => go(toggled(location.hash, name, word))}
        />
      ))}
      <li>
        <button type="button" class="quiet" onClick={() => go("#/results")}>
          Clear all
        </button>
      </li>
    </ul>
  );
}

function Chip({ label, off }: { label: string; off: () => void }) {
  return (
    <li>
      <button type="button" class="chip" onClick={off} aria-label={`Remove the filter ${label}`}>
        {label} <span aria-hidden="true">×</span>
      </button>
    </li>
  );
}

/** The address with a value of a facet added, or taken away where it was picked. */
export function toggled(hash: string, name: FacetName, word: string): string {
  const [path = "", told = ""] = hash.split(/\?(.*)/s);
  const query = new URLSearchParams(told);
  const words = query.getAll(name);
  query.delete(name);
  const left = words.some((one) => same(one, word)) ? words.filter((one) => !same(one, word)) : [...words, word];
  for (const one of left) query.append(name, one);
  const text = query.toString();
  return `${path || "#/results"}${text ? `?${text}` : ""}`;
}
