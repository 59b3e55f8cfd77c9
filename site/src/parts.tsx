// Small elements that several views share.
import { type ComponentChildren, Fragment } from "preact";
import { formatCount } from "./format";
import type { Value } from "./frame";
import { openPanel } from "./route";

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** Whether there is something to show: 0 is, a blank is not. */
const isStated = (value: ComponentChildren) => value !== null && value !== undefined && value !== "" && value !== false;

/** A definition list: a value by name, without those that are missing. */
export function Fields({ of, children }: { of: Record<string, ComponentChildren>; children?: ComponentChildren }) {
  const stated = Object.entries(of).filter(([, value]) => isStated(value));
  return (
    <dl>
      {stated.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
      {children}
    </dl>
  );
}

export const inCode = (text: Value | undefined) => text && <code>{text}</code>;

/** Words with a sign between them, without those that are missing. */
export const join = (words: (Value | undefined | false)[], sign = ", ") => words.filter(isStated).join(sign);

interface SourceProps {
  of: string; // result_id, or that and a column behind a point
  look?: string;
  label?: string;
  children: ComponentChildren;
}

/** A figure that opens the panel of its source. */
export function SourceButton({ of, look = "figure", label, children }: SourceProps) {
  return (
    <button class={look} aria-haspopup="dialog" aria-label={label} onClick={() => openPanel(of)}>
      {children}
    </button>
  );
}

export type Link = [text: string, address: string];

export function Links({ to }: { to: Link[] }) {
  return (
    <ul>
      {to.map(([text, address]) => (
        <li key={address}>
          <a href={address}>{text}</a>
        </li>
      ))}
    </ul>
  );
}

/** An address from the data: a link only where it is a plain web address. */
export function WebLink({ to, children }: { to: string; children?: ComponentChildren }) {
  if (!/^https?:\/\//.test(to)) return <>{children ?? to}</>;
  return (
    <a href={to} rel="noreferrer noopener" target="_blank">
      {children ?? to}
    </a>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: [value: string, title: string][];
  onChange: (value: string) => void;
}

/** A labelled choice of one value; one that is set and not among the options is offered as well. */
export function Choice({ label, value, options, onChange }: ChoiceProps) {
  const known = options.some(([each]) => each === value);
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {!known && <option value={value}>{value}</option>}
        {options.map(([each, title]) => (
          <option key={each} value={each}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}

interface LeftOutProps {
  count: number; // of the rows that may not be ranked
  shown?: boolean; // among others, instead of left out
  onChange?: () => void; // shows or hides them
}

/** Says in one line how many rows are left out, since they may not be ranked. */
export function LeftOut({ count, shown = false, onChange }: LeftOutProps) {
  if (count === 0) return null;
  return (
    <p class="note">
      {shown ? "Shown, though not usable" : "Left out as not usable"}: {formatCount(count, "row")} (an error, suspect, repeated, no longer printed, emulated or submitted).{" "}
      {onChange && (
        <button class="chip" onClick={onChange}>
          {shown ? "Leave them out" : "Show them"}
        </button>
      )}
    </p>
  );
}

interface TableProps {
  label: string;
  headings: string[];
  right?: string[]; // headings that are right-aligned
  children: ComponentChildren;
}

/** A table that scrolls within the page. */
export function PlainTable({ label, headings, right = [], children }: TableProps) {
  return (
    <div class="wide-content" tabIndex={0} role="region" aria-label={label}>
      <table class="plain">
        <thead>
          <tr>
            {headings.map((heading, index) => (
              <th key={index} scope="col" class={right.includes(heading) ? "right" : ""}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function saveFile(name: string, type: string, content: string | Uint8Array): void {
  const url = URL.createObjectURL(new Blob([content as BlobPart], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
