// The answers of the statements of `schema/`, which DuckDB runs in the page. The engine is loaded where a view compares.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Comparison, Stated } from "./engine";
import { formatError } from "./format";
import { loadScript } from "./load";

declare const ENGINE_MB: number; // both are set by build.mjs
declare const ENGINE_PACKED_MB: number;
export const ENGINE_SIZE = `${ENGINE_MB} MB (${ENGINE_PACKED_MB} MB packed)`;

export const FROM_DISK = location.protocol === "file:";

export function FromDisk() {
  return (
    <p class="warning" role="note">
      This page was opened from disk, and browsers do not let such a page start DuckDB. Serve the folder over http, for example with{" "}
      <code>python3 -m http.server</code>, and open it there. Results, charts, claims and provenance work from disk.
    </p>
  );
}

let comparison: Promise<Comparison> | null = null;

/** Starts DuckDB over the rows of the comparison, once. */
export function startComparison(): Promise<Comparison> {
  comparison ??= loadScript("engine.js").then(() => window.__engine!.openComparison());
  comparison.catch(() => (comparison = null)); // the next caller tries again
  return comparison;
}

interface Outcome<Answer> {
  key: string; // of the question that it is the outcome of
  answer?: Answer;
  problem?: string;
}

interface Asked<Answer> {
  answer: Answer | undefined;
  latest: Answer | undefined; // the answer, until then that of the question before
  note: ComponentChildren; // how far the answer is, or why there is none and what to do
}

/** Answers a question by the statements of `schema/`. */
export function useAnswer<Answer>(question: string, stated: Stated): Asked<Answer> {
  const [outcome, setOutcome] = useState<Outcome<Answer>>({ key: "" });
  const [isLoading, setLoading] = useState(true);
  const latest = useRef<Answer | undefined>(undefined);
  const key = JSON.stringify([question, stated]);
  useEffect(() => {
    if (FROM_DISK) return;
    let current = true;
    const show = (next: Omit<Outcome<Answer>, "key">) => {
      if (current) setOutcome({ key, ...next });
    };
    const run = async () => {
      const started = await startComparison();
      setLoading(false);
      const answer = (await started.answer(question, stated)) as Answer;
      if (current) latest.current = answer;
      show({ answer });
    };
    run().catch((error) => show({ problem: formatError(error) }));
    return () => {
      current = false;
    };
  }, [key]);
  const { answer, problem } = outcome.key === key ? outcome : {};
  return { answer, latest: latest.current, note: answer ? null : <Note problem={problem} isLoading={isLoading} /> };
}

function Note({ problem, isLoading }: { problem: string | undefined; isLoading: boolean }) {
  if (FROM_DISK) return <FromDisk />;
  if (problem)
    return (
      <p role="alert">
        The comparison failed: {problem}. Reload the page to try again, or compare with <code>ipu-results compare</code>.
      </p>
    );
  return <p role="status">{isLoading ? `Loading DuckDB, ${ENGINE_SIZE}, once …` : "Comparing …"}</p>;
}
