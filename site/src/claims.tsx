import { useEffect, useState } from "preact/hooks";
import { WithData } from "./data";
import { formatCount, formatFigure } from "./format";
import { getRows, getText, groupBy, type Row } from "./frame";
import type { Data, Use } from "./load";
import { Explained, GAP_MEANINGS, MEANINGS, Verdict } from "./marks";
import { Field } from "./parts";
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
  useEffect(() => {
    const linked = name ? document.getElementById(`claim-${name}`) : null;
    linked?.scrollIntoView({ block: "start" });
    linked?.focus({ preventScroll: true });
    const claim = name && getText(getRows(data.claims).find((claim) => claim["claim_id"] === name) ?? {}, "claim");
    document.title = `${claim || name || "Claims"} · ipu-results`;
  }, [name]);
  const claims = getRows(data.claims);
  const recomputations = groupBy(getRows(data.recomputations), "claim_id");
  const verdict = query.get("verdict") ?? "";
  const source = query.get("document") ?? "";
  const kind = query.get("kind") ?? "";
  const words = fold(query.get("q") ?? "").split(/\s+/).filter(Boolean);
  const matches = claims.filter((claim) => {
    const content = fold(Object.values(claim).join(" "));
    return (
      (!verdict || claim["verdict"] === verdict) &&
      (!source || claim["document_id"] === source) &&
      (!kind || claim["kind"] === kind) &&
      words.every((word) => content.includes(word))
    );
  });
  const order = query.get("order") ?? "";
  if (order === "gap") claims.sort((left, right) => rankGap(right) - rankGap(left));
  if (order === "") claims.sort((left, right) => rankHeadline(right) - rankHeadline(left));
  const isLinked = (claim: Row) => claim["claim_id"] === name;
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
        <select aria-label="Document" value={source} onChange={(event) => setParameter("document", event.currentTarget.value || null)}>
          <option value="">All documents</option>
          {[...groupBy(claims, "document_id")].map(([id, rows]) => (
            <option key={id} value={id}>
              {id} ({rows.length})
            </option>
          ))}
        </select>
        <select aria-label="Kind" value={kind} onChange={(event) => setParameter("kind", event.currentTarget.value || null)}>
          <option value="">All kinds</option>
          {[...groupBy(claims, "kind")].map(([each, rows]) => (
            <option key={each} value={each}>
              {each} ({rows.length}, {rows.filter((claim) => claim["verdict"] === "confirmed").length} confirmed)
            </option>
          ))}
        </select>
        <select aria-label="Order" value={query.get("order") ?? ""} onChange={(event) => setParameter("order", event.currentTarget.value || null)}>
          <option value="">Headline claims first</option>
          <option value="gap">Widest gap first</option>
          <option value="document">In the order of the documents</option>
        </select>
        <p role="status" class="count">
          <strong>{formatCount(matches.length, "claim")}</strong> of {claims.length}
        </p>
      </div>
      <div class="verdicts" role="group" aria-label="Verdict">
        {verdicts.map(([each, rows]) => (
          <button key={each} type="button" aria-pressed={each === verdict} onClick={() => setParameter("verdict", each === verdict ? null : each)}>
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
          <button type="button" onClick={() => setParts(Math.ceil(visible.length / PART) + 1)}>
            Show {Math.min(PART, shown.length - visible.length)} more of {shown.length - visible.length}
          </button>{" "}
          <button type="button" class="quiet" onClick={() => setParts(Math.ceil(shown.length / PART))}>
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
        {getRows(data.contradictions).map((contradiction) => (
          <Contradiction key={getText(contradiction, "contradiction_id")} row={contradiction} />
        ))}
      </ul>
      </details>
    </div>
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
const OUTCOMES: Record<string, { sign: string; holds: boolean }> = {
  agrees: { sign: "✓", holds: true },
  "last-digit": { sign: "~", holds: true },
  "within-spread": { sign: "≈", holds: true },
  "within-sdk-spread": { sign: "±", holds: true },
  reaches: { sign: "≥", holds: true },
  "nearly-reaches": { sign: "∓", holds: false },
  exceeds: { sign: "↑", holds: false },
  differs: { sign: "✗", holds: false },
  "falls-short": { sign: "↓", holds: false },
};

// By the words of the column `gap_kind`, the mildest first.
const GAPS = ["none", "last-digit", "within-run-to-run-spread", "beyond"];

function rankGap(claim: Row): number {
  const percent = claim["gap_percent"];
  const size = typeof percent === "number" ? Math.abs(percent) : 0;
  return GAPS.indexOf(getText(claim, "gap_kind")) + size / (1 + size); // within a kind by size
}

/** A rank of how loudly a claim was made: recomputed claims of a factor first, the largest first. */
function rankHeadline(claim: Row): number {
  return claim["unit"] === "x" && claim["verdict"] !== "not-recomputable" ? Number(claim["value"]) : 0;
}

function formatGap(claim: Row): string {
  const percent = claim["gap_percent"];
  const size = typeof percent === "number" ? `${percent > 0 ? "+" : ""}${Number(percent.toPrecision(2))} %, ` : "";
  return getText(claim, "gap_kind") && `${size}${getText(claim, "gap_kind").replaceAll("-", " ")}`;
}

function Claim({ claim, values, uses, open }: { claim: Row; values: Row[]; uses: Use[]; open: boolean }) {
  const id = getText(claim, "claim_id");
  const names = ["model_printed", "task", "sdk_version", "precision_printed", "batch", "framework", "dataset_printed"];
  const conditions = names.map((name) => getText(claim, name)).filter(Boolean).join(", ");
  return (
    <li id={`claim-${id}`} tabIndex={-1} class={open ? "open" : ""}>
      <p class="head">
        <strong class="claimed">{getText(claim, "figure")}</strong>{" "}
        <Explained text={MEANINGS[getText(claim, "verdict")] ?? ""}>
          <Verdict verdict={getText(claim, "verdict")} />
        </Explained>
        {formatGap(claim) && (
          <Explained class="gap" text={GAP_MEANINGS[getText(claim, "gap_kind")] ?? ""}>
            gap {formatGap(claim)}
          </Explained>
        )}
        <a class="self" href={formatHash("claims", id)} aria-label={`Link to ${id}`}>
          {id}
        </a>
      </p>
      <p>{getText(claim, "claim")}.</p>
      <p>Reason: {getText(claim, "reason")}.</p>
      {values.length > 0 && (
        <ul class="arithmetic">
          {values.map((value, index) => {
            const outcome = getText(value, "outcome");
            return (
              <li key={index}>
                <span class={OUTCOMES[outcome]?.holds ? "holds" : "fails"}>
                  {OUTCOMES[outcome]?.sign}
                  <span class="unseen">{outcome}</span>
                </span>{" "}
                <code>{getText(value, "arithmetic")}</code> <small>{getText(value, "baseline")}</small>
                {getText(value, "not_counted") && <small> · does not count: {getText(value, "not_counted")}</small>}
              </li>
            );
          })}
        </ul>
      )}
      <details>
        <summary>Conditions, interpretation and source</summary>
        <dl>
          <Field name="Conditions" value={conditions} />
          <Field name="Interpretation" value={getText(claim, "interpretation")} />
          <Field name="Basis" value={getText(claim, "basis")} />
          <Field name="Document" value={`${getText(claim, "document_id")}: ${getText(claim, "place")}`} />
          <Field name="Transcribed at" value={getText(claim, "locator")} />
          {uses.length > 0 && (
            <>
              <dt>Results</dt>
              <dd>
                {uses.slice(0, MAX_RESULTS).map(({ result_id }) => (
                  <a key={result_id} class="result" href={formatHash("results", "", { q: result_id })}>
                    {result_id}
                  </a>
                ))}
              </dd>
            </>
          )}
        </dl>
        {getText(claim, "recomputation_sql") && <pre tabIndex={0}>{getText(claim, "recomputation_sql")}</pre>}
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
        <strong>{KINDS[getText(row, "kind")] ?? getText(row, "kind")}</strong> <span class="self">{getText(row, "contradiction_id")}</span>
      </p>
      <p>{getText(row, "what")}.</p>
      <p>
        <em>{getText(row, "resolution")}.</em>
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
        {getText(row, "claim_ids")
          .split(" ")
          .filter((id) => id !== "")
          .map((id) => (
            <a key={id} class="result" href={formatHash("claims", id)}>
              {id}
            </a>
          ))}
      </p>
    </li>
  );
}
