// Signs that differ in shape and word, not by colour alone.
import type { ComponentChildren } from "preact";
import type { Flag } from "./dataset";
import type { RowFlag, Severity } from "./load";
import { Section } from "./parts";
import { formatHash } from "./route";

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

/** A code whose meaning is shown where the pointer is over it, and on a touch or Enter. */
export function Explained({ text, class: name = "", children }: { text: string; class?: string; children: ComponentChildren }) {
  const show = (event: MouseEvent) => {
    const mark = event.currentTarget as HTMLElement;
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    tip.textContent = text;
    (mark.closest("dialog") ?? document.body).append(tip);
    const { left, bottom } = mark.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${Math.max(4, Math.min(bottom + 4, innerHeight - tip.offsetHeight - 8))}px`;
    const hide = () => {
      tip.remove();
      for (const kind of ["pointerdown", "keydown", "blur", "hashchange"]) removeEventListener(kind, hide);
      removeEventListener("scroll", hide, true);
    };
    for (const kind of ["pointerdown", "keydown", "blur", "hashchange"]) addEventListener(kind, hide);
    addEventListener("scroll", hide, true);
  };
  return (
    <button class={`explained ${name}`} title={text} onClick={show}>
      {children}
    </button>
  );
}

const SEVERITIES: Record<Severity, string> = { error: "Error", warn: "Warning", info: "Remark" };
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
    <Explained class={`flag flag-${flag.severity}`} text={`${SEVERITIES[flag.severity]} ${flag.rule}: ${title.replaceAll("-", " ")}`}>
      <span aria-hidden="true">{SIGNS[flag.severity]} </span>
      <span class="unseen">{flag.severity} </span>
      {flag.rule}
    </Explained>
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
            <details>
              <summary>How {flag.rule} finds it</summary>
              <pre>{flag.statement}</pre>
              <a href={formatHash("sql", "", { q: flag.statement })}>Run it in the SQL box</a> · <a href="rules.html">All rules</a>
            </details>
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** The sign of a verdict, and what it means. */
export const VERDICTS: Record<string, [sign: string, meaning: string]> = {
  confirmed: ["✓", "The figures give what was claimed, to the digits that it has."],
  "confirmed-internally": ["✓", "Only figures of the same document, or another claim, give what was claimed."],
  "last-digit-differs": ["~", "The figures give another last digit."],
  "reached-by-later-sdk": ["≥", "Not by the SDK that was named, but by a later one: at or above the figure."],
  "nearly-reached-by-later-sdk": ["∓", "A later SDK falls short, by no more than two SDKs have differed."],
  "exceeded-by-later-sdk": ["↑", "A later SDK exceeds it by more than two SDKs have differed."],
  circular: ["↻", "Arithmetic over what documents state gives it: no measurement."],
  "within-run-to-run-spread": ["≈", "The difference is within the spread of the runs."],
  "depends-on-division": ["≷", "One division of MLPerf gives it, the other does not, and it names none."],
  "depends-on-system": ["≷", "Some of the machines that may have been meant give it, others do not."],
  "depends-on-source": ["≷", "One file or party gives it, another does not."],
  "depends-on-reading": ["≷", "Its words can be read in several ways, and not all of them give it."],
  "depends-on-baseline": ["≷", "Some rows of the baseline that it names give it, others do not."],
  "swapped-baseline": ["⇄", "Compared with something else than was claimed, which is not at hand or not named."],
  "not-supported": ["↓", "No figure here gives as much as was claimed."],
  contradicted: ["✗", "The figures give something else."],
  "not-recomputable": ["?", "The figures that it needs are not in this dataset."],
};

/** What the kind of a gap means. */
export const GAP_MEANINGS: Record<string, string> = {
  none: "The recomputed figure is the claimed one.",
  "last-digit": "The recomputed figure differs in the last digit only.",
  "within-run-to-run-spread": "The runs behind the figure differ by as much.",
  beyond: "The recomputed figure differs by more than rounding and the spread of runs explain.",
};

export function Verdict({ verdict }: { verdict: string }) {
  const [sign = "", meaning] = VERDICTS[verdict] ?? [];
  return (
    <span class={`verdict verdict-${verdict}`} title={meaning}>
      <span aria-hidden="true">{sign} </span>
      {verdict.replaceAll("-", " ")}
    </span>
  );
}
