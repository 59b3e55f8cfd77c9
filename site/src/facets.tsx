import { useState } from "preact/hooks";
import { type Dataset, FACET_TITLES, type Facet, type FacetName } from "./dataset";
import { go } from "./hash";
import { Origin } from "./marks";
import { toggled } from "./results";

const SHOWN = 6;

interface Props {
  data: Dataset;
  counts: Map<FacetName, Int32Array>;
  picked: Partial<Record<FacetName, string[]>>;
}

export function FacetList({ data, counts, picked }: Props) {
  return (
    <>
      {data.facets.map((facet) => (
        <OneFacet
          key={facet.name}
          data={data}
          facet={facet}
          counts={counts.get(facet.name)!}
          picked={picked[facet.name] ?? []}
        />
      ))}
    </>
  );
}

function OneFacet({ data, facet, counts, picked }: { data: Dataset; facet: Facet; counts: Int32Array; picked: string[] }) {
  const [all, setAll] = useState(false);
  const values = facet.words
    .map((word, code) => ({ word, found: counts[code] ?? 0 }))
    .filter(({ word, found }) => found > 0 || picked.includes(word))
    .sort((one, other) => other.found - one.found);
  const shown = values.filter(({ word }, index) => all || index < SHOWN || picked.includes(word));
  return (
    <fieldset class="facet">
      <legend>{FACET_TITLES[facet.name]}</legend>
      {shown.map(({ word, found }) => (
        <label key={word} class="value">
          <input
            type="checkbox"
            checked={picked.includes(word)}
            onChange={() => go(toggled(location.hash, facet.name, word))}
          />
          <span class="word" title={word}>
            {facet.name === "origin" ? <Origin origin={word} /> : word}
            {facet.name === "flag" && <small> {data.data.rules[word]?.replaceAll("-", " ")}</small>}
          </span>
          <span class="number">{found.toLocaleString("en")}</span>
        </label>
      ))}
      {values.length > SHOWN && (
        <button type="button" class="quiet more" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? "Fewer" : `${values.length - shown.length} more`}
        </button>
      )}
    </fieldset>
  );
}
