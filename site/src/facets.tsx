import { useState } from "preact/hooks";
import { type Dataset, FACET_TITLES, type Facet, type FacetName } from "./dataset";
import { INTERESTS } from "./format";
import { Origin } from "./marks";
import { toggleValue } from "./route";

const COLLAPSED = 6; // values shown before `more`

interface Props {
  data: Dataset;
  counts: Map<FacetName, Int32Array>;
  picked: Partial<Record<FacetName, string[]>>;
}

export function FacetList({ data, counts, picked }: Props) {
  return (
    <>
      {data.facets.map((facet) => (
        <FacetValues key={facet.name} data={data} facet={facet} counts={counts.get(facet.name)!} picked={picked[facet.name] ?? []} />
      ))}
    </>
  );
}

function FacetValues({ data, facet, counts, picked }: { data: Dataset; facet: Facet; counts: Int32Array; picked: string[] }) {
  const [expanded, setExpanded] = useState(false);
  const values = facet.words
    .map((word, code) => ({ word, count: counts[code] ?? 0 }))
    .filter(({ word, count }) => count > 0 || picked.includes(word))
    .sort((left, right) => right.count - left.count);
  const shown = values.filter(({ word }, index) => expanded || index < COLLAPSED || picked.includes(word));
  return (
    <fieldset class="facet">
      <legend>{FACET_TITLES[facet.name]}</legend>
      {shown.map(({ word, count }) => (
        <label key={word} class="value">
          <input type="checkbox" checked={picked.includes(word)} onChange={() => toggleValue(facet.name, word)} />
          <span class="word" title={word}>
            {facet.name === "origin" ? <Origin origin={word} /> : word}
            {facet.name === "interest" && <small> {INTERESTS[word]}</small>}
            {facet.name === "flag" && <small> {data.data.rules[word]?.replaceAll("-", " ")}</small>}
          </span>
          <span class="number">{count.toLocaleString("en")}</span>
        </label>
      ))}
      {values.length > COLLAPSED && (
        <button class="quiet more" aria-expanded={expanded} onClick={() => setExpanded(!expanded)}>
          {expanded ? "Fewer" : `${values.length - shown.length} more`}
        </button>
      )}
    </fieldset>
  );
}
