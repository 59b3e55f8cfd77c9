import { useEffect } from "preact/hooks";
import { count, figure } from "./format";
import { allRows, type Row, text } from "./frame";
import { address, change } from "./hash";
import { useData } from "./hooks";
import type { Data, Use } from "./load";
import { Verdict } from "./marks";

interface Recomputed {
  value: number;
  baseline: string;
  arithmetic: string;
}

export function Claims({ query, name }: { query: URLSearchParams; name: string }) {
  const loaded = useData("claims");
  const there = loaded.state === "there";
  useEffect(() => {
    const found = name && there ? document.getElementById(`claim-${name}`) : null;
    found?.scrollIntoView({ block: "start" });
    found?.focus({ preventScroll: true });
  }, [name, there]);
  if (loaded.state === "failed") return <p role="alert">{loaded.why}</p>;
  if (loaded.state === "waiting") return <p role="status">Loading the ledger …</p>;
  return <Ledger data={loaded.data} query={query} name={name} />;
}

function grouped(rows: Row[], by: string): Map<string, Row[]> {
  const found = new Map<string, Row[]>();
  for (const row of rows) found.set(text(row, by), [...(found.get(text(row, by)) ?? []), row]);
  return found;
}

function Ledger({ data, query, name }: { data: Data["claims"]; query: URLSearchParams; name: string }) {
  const claims = allRows(data.claims);
  const values = grouped(allRows(data.recomputations), "claim_id");
  const uses = new Map<string, Use[]>();
  for (const use of data.uses) uses.set(use.claim_id, [...(uses.get(use.claim_id) ?? []), use]);
  const verdict = query.get("verdict") ?? "";
  const document_ = query.get("document") ?? "";
  const words = (query.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = claims.filter((claim) => {
    const said = Object.values(claim).join(" ").toLowerCase();
    return (
      (!verdict || claim["verdict"] === verdict) &&
      (!document_ || claim["document_id"] === document_) &&
      words.every((word) => said.includes(word))
    );
  });
  const linked = claims.filter((claim) => text(claim, "claim_id") === name);
  const shown = claims.filter((claim) => fitting.includes(claim) || linked.includes(claim)); // the linked one in its place
  const verdicts = [...grouped(claims, "verdict")].sort(([, one], [, other]) => other.length - one.length);
  return (
    <div class="ledger">
      <h2>Claims, recomputed</h2>
      <p class="intro">
        What vendors claimed in figures, each computed again from this dataset by SQL that is kept beside it. A rule gives the
        verdict from the values, never a hand.
      </p>
      <div class="bar">
        <input
          type="search"
          aria-label="Search the claims"
          placeholder="Search the claims"
          value={query.get("q") ?? ""}
          onInput={(event) => change("q", event.currentTarget.value || null, true)}
        />
        <select aria-label="Document" value={document_} onChange={(event) => change("document", event.currentTarget.value || null)}>
          <option value="">All documents</option>
          {[...grouped(claims, "document_id")].map(([id, of]) => (
            <option key={id} value={id}>
              {id} ({of.length})
            </option>
          ))}
        </select>
        <p role="status" class="count">
          <strong>{count(fitting.length, "claim")}</strong> of {claims.length}
        </p>
      </div>
      <div class="verdicts" role="group" aria-label="Verdict">
        {verdicts.map(([one, of]) => (
          <button key={one} type="button" aria-pressed={one === verdict} onClick={() => change("verdict", one === verdict ? null : one)}>
            <Verdict verdict={one} /> {of.length}
          </button>
        ))}
        <a href="#contradictions" onClick={(event) => jump(event)}>
          {count(data.contradictions.rows, "contradiction")} ↓
        </a>
      </div>
      {name && linked.length === 0 && (
        <p role="alert" class="warning">
          No such claim: this build holds none called <code>{name}</code>. It may come from another release.
        </p>
      )}
      <ol class="claims">
        {shown.map((claim) => (
          <Claim
            key={text(claim, "claim_id")}
            claim={claim}
            values={values.get(text(claim, "claim_id")) ?? []}
            uses={uses.get(text(claim, "claim_id")) ?? []}
            open={text(claim, "claim_id") === name}
          />
        ))}
      </ol>
      {fitting.length === 0 && <p class="none">No claim fits.</p>}
      <h2 id="contradictions" tabIndex={-1}>
        Contradictions
      </h2>
      <ul class="claims">
        {allRows(data.contradictions).map((one) => (
          <Contradiction key={text(one, "contradiction_id")} row={one} />
        ))}
      </ul>
    </div>
  );
}

// What a recomputed value says of its claim: the words of the column `outcome`.
const SAYS: Record<string, { mark: string; holds: boolean }> = {
  agrees: { mark: "✓", holds: true },
  exceeds: { mark: "≥", holds: true },
  differs: { mark: "✗", holds: false },
  "falls-short": { mark: "✗", holds: false },
};

function jump(event: Event): void {
  event.preventDefault();
  const heading = document.getElementById("contradictions");
  heading?.scrollIntoView();
  heading?.focus({ preventScroll: true });
}

function Claim({ claim, values, uses, open }: { claim: Row; values: Row[]; uses: Use[]; open: boolean }) {
  const id = text(claim, "claim_id");
  const conditions = ["model", "task", "sdk_version", "precision", "batch", "framework", "dataset"];
  const said = conditions.map((one) => text(claim, one)).filter(Boolean).join(", ");
  return (
    <li id={`claim-${id}`} tabIndex={-1} class={open ? "open" : ""}>
      <p class="head">
        <strong class="claimed">{text(claim, "figure")}</strong> <Verdict verdict={text(claim, "verdict")} />
        <a class="self" href={address("claims", id)} aria-label={`Link to ${id}`}>
          {id}
        </a>
      </p>
      <p>{text(claim, "claim")}.</p>
      {values.length > 0 && (
        <ul class="arithmetic">
          {values.map((value, index) => (
            <li key={index}>
              <span class={SAYS[text(value, "outcome")]?.holds ? "holds" : "fails"}>
                {SAYS[text(value, "outcome")]?.mark}
                <span class="unseen">{text(value, "outcome")}</span>
              </span>{" "}
              <code>{text(value, "arithmetic")}</code> <small>{text(value, "baseline")}</small>
            </li>
          ))}
        </ul>
      )}
      {text(claim, "not_recomputable") && <p>Why not: {text(claim, "not_recomputable")}.</p>}
      <details>
        <summary>Conditions, reading and source</summary>
        <dl>
          {said && <Line name="Conditions" value={said} />}
          <Line name="Read so" value={text(claim, "interpretation")} />
          <Line name="Rests on" value={text(claim, "basis")} />
          <Line name="Document" value={`${text(claim, "document_id")}: ${text(claim, "place")}`} />
          <Line name="Transcribed at" value={text(claim, "locator")} />
          {uses.length > 0 && (
            <>
              <dt>Results</dt>
              <dd>
                {uses.slice(0, 12).map((use) => (
                  <a key={use.result_id} class="result" href={`#/results?q=${use.result_id}`}>
                    {use.result_id}
                  </a>
                ))}
              </dd>
            </>
          )}
        </dl>
        {text(claim, "recomputation_sql") && <pre tabIndex={0}>{text(claim, "recomputation_sql")}</pre>}
      </details>
    </li>
  );
}

function Line({ name, value }: { name: string; value: string }) {
  if (!value) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}

function Contradiction({ row }: { row: Row }) {
  const worked = JSON.parse(text(row, "recomputed") || "[]") as Recomputed[];
  return (
    <li>
      <p class="head">
        <strong>{text(row, "kind")}</strong> <span class="self">{text(row, "contradiction_id")}</span>
      </p>
      <p>{text(row, "what")}.</p>
      <p>
        <em>{text(row, "resolution")}.</em>
      </p>
      {worked.length > 0 && (
        <ul class="arithmetic">
          {worked.map((one, index) => (
            <li key={index}>
              <code>{one.arithmetic}</code> <small>{one.baseline || figure(one.value)}</small>
            </li>
          ))}
        </ul>
      )}
      <p>
        {text(row, "claim_ids")
          .split(" ")
          .map((id) => (
            <a key={id} class="result" href={address("claims", id)}>
              {id}
            </a>
          ))}
      </p>
    </li>
  );
}
