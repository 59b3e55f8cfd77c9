// Signs that differ in shape and word, not by colour alone.
import type { Flag } from "./dataset";
import type { RowFlag, Severity } from "./load";
import { Section } from "./parts";

const SHAPES: Record<string, string> = {
  published: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z",
  official: "M8 1l7 7-7 7-7-7z",
  measured: "M8 2l7 12H1z",
  emulated: "M2 2h12v12H2z",
};

export function Origin({ origin, brief = false }: { origin: string; brief?: boolean }) {
  return (
    <span class={`origin origin-${origin}`} title={origin === "emulated" ? "emulated, not measured" : origin}>
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path d={SHAPES[origin] ?? SHAPES["published"]} />
      </svg>
      <span class={brief ? "unseen" : ""}>{origin === "emulated" ? "EMULATED" : origin}</span>
    </span>
  );
}

const SIGNS: Record<Severity, string> = { error: "✖", warn: "!", info: "i" };

/** The sign of the most severe flag next to a figure; a flag of severity info has none. */
export function DoubtSign({ flags }: { flags: Flag[] }) {
  const worst = flags.find((flag) => flag.severity === "error") ?? flags.find((flag) => flag.severity === "warn");
  if (!worst) return null;
  return (
    <span class={`doubt flag-${worst.severity}`} title={`${worst.severity}: ${worst.rule}`}>
      {SIGNS[worst.severity]}
    </span>
  );
}

export function FlagMark({ flag, title }: { flag: Pick<Flag, "rule" | "severity">; title: string }) {
  return (
    <span class={`flag flag-${flag.severity}`} title={`${flag.severity}: ${flag.rule} ${title}`}>
      <span aria-hidden="true">{SIGNS[flag.severity]} </span>
      <span class="unseen">{flag.severity} </span>
      {flag.rule}
    </span>
  );
}

/** The flags of a row with their evidence. */
export function FlagList({ flags }: { flags: RowFlag[] }) {
  if (flags.length === 0) return null;
  return (
    <Section title="Flags on this row">
      <ul class="flags">
        {flags.map((flag, index) => (
          <li key={index}>
            <FlagMark flag={flag} title={flag.title} /> <strong>{flag.title.replaceAll("-", " ")}</strong>, {flag.severity}, on{" "}
            {flag.column_name.replaceAll("_", " ")}
            <br />
            {flag.message}
            {flag.suggested && (
              <>
                <br />
                Suggested, not applied: <strong>{flag.suggested}</strong>
              </>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

const VERDICTS: Record<string, string> = {
  confirmed: "✓",
  "confirmed-internally": "✓",
  circular: "↻",
  "last-digit-differs": "~",
  "reached-by-later-sdk": "≥",
  "within-run-to-run-spread": "≈",
  "depends-on-reading": "≷",
  "depends-on-baseline": "≷",
  "swapped-baseline": "⇄",
  "exceeded-by-later-sdk": "↑",
  "not-supported": "↓",
  contradicted: "✗",
  "not-recomputable": "?",
};

export function Verdict({ verdict }: { verdict: string }) {
  return (
    <span class={`verdict verdict-${verdict}`}>
      <span aria-hidden="true">{VERDICTS[verdict] ?? ""} </span>
      {verdict.replaceAll("-", " ")}
    </span>
  );
}
