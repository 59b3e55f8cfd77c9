// Small elements that several views share.
import type { ComponentChildren } from "preact";

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
