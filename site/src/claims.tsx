import { useEffect, useState } from "preact/hooks";
import { WithData } from "./data";
import { formatCount, formatFigure } from "./format";
import { getRows, getText, groupBy, type Row } from "./frame";
import type { Data, Use } from "./load";
import { Explained, GAP_MEANINGS, Verdict, VERDICTS } from "./marks";
import { Fields, join } from "./parts";
import { formatHash, setParameter } from "./route";

const MAX_RESULTS = 12; // links to results of one claim
const PART = 12; // claims that are shown at once

interface Recomputation {
  value: number;
  baseline: string;
  arithmetic: string;
}

export function Claims({ query, detail }: { query: URLSearchParams; detail: string }) {
  return (
    <WithData name="claims" loading="Loading the claims">
      {(data) => <ClaimList data={data} query={query} name={detail} />}
    </WithData>
  );
}

function ClaimList({ data, query, name }: { data: Data["claims"]; query: URLSearchParams; name: string }) {
  const claims = getRows(data.claims);
  const isLinked = (claim: Row) => claim.claim_id === name;
  useEffect(() => {
    const linked = name ? document.getElementById(`claim-${name}`) : null;
    linked?.scrollIntoView({ block: "start" });
    linked?.focus({ preventScroll: true });
    document.title = `${claims.find(isLinked)?.claim || name || "Claims"} · ipu-results`;
  }, [name]);
  const recomputations = groupBy(getRows(data.recomputations), "claim_id");
  const verdict = query.get("verdict") ?? "";
  const source = query.get("document") ?? "";
  const kind = query.get("kind") ?? "";
  const words = fold(query.get("q") ?? "").split(/\s+/).filter(Boolean);
  const picked = { verdict, document_id: source, kind };
  const matches = claims.filter((claim) => {
    const content = fold(Object.values(claim).join(" "));
    const isPicked = Object.entries(picked).every(([name, value]) => !value || claim[name] === value);
    return isPicked && words.every((word) => content.includes(word));
  });
  const order = query.get("order") ?? "";
  if (order === "gap") claims.sort((left, right) => rankGap(right) - rankGap(left));
  if (order === "") claims.sort((left, right) => rankHeadline(right) - rankHeadline(left));
  // in the order in which the claims are shown
  const documents = [...groupBy(claims, "document_id")].map(([id, rows]): Option => [id, `${id} (${rows.length})`]);
  const kinds = [...groupBy(claims, "kind")].map(([each, rows]): Option => {
    const confirmed = rows.filter((claim) => claim.verdict === "confirmed").length;
    return [each, `${each} (${rows.length}, ${confirmed} confirmed)`];
  });
  const shown = claims.filter((claim) => matches.includes(claim) || isLinked(claim)); // the linked one in its place
  const [parts, setParts] = useState(1);
  const position = shown.findIndex(isLinked);
  const visible = shown.slice(0, Math.max(parts * PART, position + 1));
  const verdicts = [...groupBy(claims, "verdict")].sort(([, left], [, right]) => right.length - left.length);
  return (
    <div class="claim-list">
      <h2>Claims, recomputed</h2>
      <p class="intro">
        What vendors claimed in figures, each computed again from this dataset by the SQL shown with it. A rule derives the verdict
        from the values.
      </p>
      <div class="bar">
        <input
          type="search"
          aria-label="Search the claims"
          placeholder="Search the claims"
          value={query.get("q") ?? ""}
          onInput={(event) => setParameter("q", event.currentTarget.value || null, true)}
        />
        <Select label="Document" value={source} options={[["", "All documents"], ...documents]} />
        <Select label="Kind" value={kind} options={[["", "All kinds"], ...kinds]} />
        <Select label="Order" value={order} options={ORDERS} />
        <p role="status" class="count">
          <strong>{formatCount(matches.length, "claim")}</strong> of {claims.length}
        </p>
      </div>
      <div class="verdicts" role="group" aria-label="Verdict">
        {verdicts.map(([each, rows]) => (
          <button key={each} aria-pressed={each === verdict} onClick={() => setParameter("verdict", each === verdict ? null : each)}>
            <Verdict verdict={each} /> {rows.length}
          </button>
        ))}
      </div>
      <p class="intro">
        A verdict compares a claim with the figures. Where sources compare with each other instead, there are{" "}
        <a href="#contradictions" onClick={jumpToContradictions}>
          {formatCount(data.contradictions.rows, "pair")} of statements that differ or seem to
        </a>
        . <a href="claims.html">All claims on one page without scripts</a>
      </p>
      {name && !claims.some(isLinked) && (
        <p role="alert" class="warning">
          There is no claim <code>{name}</code> in this build. It may come from another release.
        </p>
      )}
      <ol class="claims">
        {visible.map((claim) => {
          const id = getText(claim, "claim_id");
          const uses = data.uses.filter((use) => use.claim_id === id);
          return <Claim key={id} claim={claim} values={recomputations.get(id) ?? []} uses={uses} open={id === name} />;
        })}
      </ol>
      {visible.length < shown.length && (
        <p>
          <button onClick={() => setParts(Math.ceil(visible.length / PART) + 1)}>
            Show {Math.min(PART, shown.length - visible.length)} more of {shown.length - visible.length}
          </button>{" "}
          <button class="quiet" onClick={() => setParts(Math.ceil(shown.length / PART))}>
            Show all
          </button>
        </p>
      )}
      {matches.length === 0 && <p class="none">No claim matches.</p>}
      <h2 id="contradictions" tabIndex={-1}>
        Statements next to each other
      </h2>
      <p class="intro">Claims that differ from each other, or only seem to. The claims named may each be confirmed by themselves.</p>
      <details open={false} id="pairs">
        <summary>Show {formatCount(data.contradictions.rows, "pair")}</summary>
        <ul class="claims">
          {getRows(data.contradictions).map((contradiction, index) => (
            <Contradiction key={index} row={contradiction} />
          ))}
        </ul>
      </details>
    </div>
  );
}

type Option = [value: string, title: string];
const ORDERS: Option[] = [
  ["", "Headline claims first"],
  ["gap", "Widest gap first"],
  ["document", "In the order of the documents"],
];

/** A choice that is a parameter of the address, by the name of its label. */
function Select({ label, value, options }: { label: string; value: string; options: Option[] }) {
  return (
    <select aria-label={label} value={value} onChange={(event) => setParameter(label.toLowerCase(), event.currentTarget.value || null)}>
      {options.map(([each, title]) => (
        <option key={each} value={each}>
          {title}
        </option>
      ))}
    </select>
  );
}

/** A text as it is searched: 40× is found as 40x. */
const fold = (text: string) => text.toLowerCase().replaceAll("×", "x");

function jumpToContradictions(event: Event): void {
  event.preventDefault(); // the hash is the address of a view
  const heading = document.getElementById("contradictions");
  heading?.scrollIntoView();
  heading?.focus({ preventScroll: true });
}

// By the words of the column `outcome`.
const OUTCOMES: Record<string, [sign: string, look: "holds" | "fails"]> = {
  agrees: ["✓", "holds"],
  "last-digit": ["~", "holds"],
  "within-spread": ["≈", "holds"],
  "within-sdk-spread": ["±", "holds"],
  reaches: ["≥", "holds"],
  "nearly-reaches": ["∓", "fails"],
  exceeds: ["↑", "fails"],
  differs: ["✗", "fails"],
  "falls-short": ["↓", "fails"],
};

// By the words of the column `gap_kind`, the mildest first.
const GAPS = ["none", "last-digit", "within-run-to-run-spread", "beyond"];

function rankGap(claim: Row): number {
  const percent = claim.gap_percent;
  const size = typeof percent === "number" ? Math.abs(percent) : 0;
  return GAPS.indexOf(getText(claim, "gap_kind")) + size / (1 + size); // within a kind by size
}

/** A rank of how loudly a claim was made: recomputed claims of a factor first, the largest first. */
function rankHeadline(claim: Row): number {
  return claim.unit === "x" && claim.verdict !== "not-recomputable" ? Number(claim.value) : 0;
}

function formatGap(claim: Row): string {
  const percent = claim.gap_percent;
  const size = typeof percent === "number" ? `${percent > 0 ? "+" : ""}${Number(percent.toPrecision(2))} %, ` : "";
  const kind = getText(claim, "gap_kind");
  return kind && `${size}${kind.replaceAll("-", " ")}`;
}

function Claim({ claim, values, uses, open }: { claim: Row; values: Row[]; uses: Use[]; open: boolean }) {
  const id = getText(claim, "claim_id");
  const verdict = getText(claim, "verdict");
  const gap = formatGap(claim);
  const names = ["model_printed", "task", "sdk_version", "precision_printed", "batch", "framework", "dataset_printed"];
  const results = uses.slice(0, MAX_RESULTS).map(({ result_id }) => (
    <a key={result_id} class="result" href={formatHash("results", "", { q: result_id })}>
      {result_id}
    </a>
  ));
  return (
    <li id={`claim-${id}`} tabIndex={-1} class={open ? "open" : ""}>
      <p class="head">
        <strong class="claimed">{claim.figure}</strong>{" "}
        <Explained text={VERDICTS[verdict]?.[1] ?? ""}>
          <Verdict verdict={verdict} />
        </Explained>
        {gap && (
          <Explained class="gap" text={GAP_MEANINGS[getText(claim, "gap_kind")] ?? ""}>
            gap {gap}
          </Explained>
        )}
        <a class="self" href={formatHash("claims", id)} aria-label={`Link to ${id}`}>
          {id}
        </a>
      </p>
      <p>{claim.claim}.</p>
      <p>Reason: {claim.reason}.</p>
      {values.length > 0 && (
        <ul class="arithmetic">
          {values.map((value, index) => {
            const outcome = getText(value, "outcome");
            const [sign, look] = OUTCOMES[outcome] ?? ["", "fails"];
            return (
              <li key={index}>
                <span class={look}>
                  {sign}
                  <span class="unseen">{outcome}</span>
                </span>{" "}
                <code>{value.arithmetic}</code> <small>{value.baseline}</small>
                {value.not_counted && <small> · does not count: {value.not_counted}</small>}
              </li>
            );
          })}
        </ul>
      )}
      <details>
        <summary>Conditions, interpretation and source</summary>
        <Fields
          of={{
            Conditions: join(names.map((name) => claim[name])),
            Interpretation: claim.interpretation,
            Basis: claim.basis,
            Document: `${getText(claim, "document_id")}: ${getText(claim, "place")}`,
            "Transcribed at": claim.locator,
            Results: uses.length > 0 && results,
          }}
        />
        {claim.recomputation_sql && <pre tabIndex={0}>{claim.recomputation_sql}</pre>}
      </details>
    </li>
  );
}

const KINDS: Record<string, string> = {
  contradiction: "These cannot both be true",
  tension: "These differ, and it depends on what was meant",
  compatible: "These seem to differ and do not",
};

function Contradiction({ row }: { row: Row }) {
  const recomputations = JSON.parse(getText(row, "recomputed") || "[]") as Recomputation[];
  return (
    <li>
      <p class="head">
        <strong>{KINDS[getText(row, "kind")] ?? getText(row, "kind")}</strong> <span class="self">{row.contradiction_id}</span>
      </p>
      <p>{row.what}.</p>
      <p>
        <em>{row.resolution}.</em>
      </p>
      {recomputations.length > 0 && (
        <ul class="arithmetic">
          {recomputations.map(({ arithmetic, baseline, value }, index) => (
            <li key={index}>
              <code>{arithmetic}</code> <small>{baseline || formatFigure(value)}</small>
            </li>
          ))}
        </ul>
      )}
      <p>
        {(getText(row, "claim_ids").match(/\S+/g) ?? []).map((id) => (
          <a key={id} class="result" href={formatHash("claims", id)}>
            {id}
          </a>
        ))}
      </p>
    </li>
  );
}
