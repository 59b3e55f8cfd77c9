// Small elements that several views share.
import type { ComponentChildren } from "preact";
import { formatCount } from "./format";
import { getText, type Row } from "./frame";

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** A line of a definition list; nothing where there is no value. */
export function Field({ name, value, code = false }: { name: string; value: string; code?: boolean }) {
  if (!value) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{code ? <code>{value}</code> : value}</dd>
    </>
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

/** The lines of a definition list that describe a document. */
export function DocumentFields({ document, url, file }: { document: Row; url: string; file: string }) {
  return (
    <>
      <dt>Document</dt>
      <dd>
        <cite>{getText(document, "title")}</cite>
      </dd>
      <Field name="Publisher" value={getText(document, "publisher")} />
      <Field name="Published" value={getText(document, "published_on")} />
      {url && (
        <>
          <dt>Address</dt>
          <dd class="address">
            <WebLink to={url} />
          </dd>
        </>
      )}
      <Field name="Licence" value={getText(document, "licence")} />
      <Field name="Our file" value={file} />
    </>
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
      {shown ? "Shown, though not usable" : "Left out as not usable"}: {formatCount(count, "row")} (an error, suspect, repeated, emulated or submitted).{" "}
      {onChange && (
        <button type="button" class="chip" onClick={onChange}>
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
