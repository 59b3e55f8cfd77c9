// The Markdown of our own documentation as elements: headings, paragraphs, lists, tables, code, links, emphasis.
import type { ComponentChildren } from "preact";

interface Props {
  text: string;
  link: (target: string) => string;
}

export function Markdown({ text, link }: Props) {
  const blocks = text.replace(/<!--.*?-->\n?/gs, "").split(/\n{2,}(?![^`]*\n```\n)/);
  return <>{joinCode(blocks).map((block, index) => <Block key={index} text={block.trim()} link={link} />)}</>;
}

/** Joins the parts of a fenced block that blank lines split. */
function joinCode(blocks: string[]): string[] {
  const joined: string[] = [];
  for (const block of blocks) {
    const last = joined.at(-1);
    if (last !== undefined && (last.match(/^ *```/gm)?.length ?? 0) % 2) joined[joined.length - 1] = `${last}\n\n${block}`;
    else if (block.trim()) joined.push(block);
  }
  return joined;
}

function Block({ text, link }: Props) {
  const heading = /^(#{1,4}) (.*)$/s.exec(text);
  if (heading) {
    const [, marks = "", title = ""] = heading;
    const [first = "", ...rest] = title.split("\n");
    const Tag = `h${Math.min(marks.length + 1, 4)}` as "h2";
    return (
      <>
        <Tag id={first.toLowerCase().replace(/[^\w -]/g, "").replaceAll(" ", "-")}>{renderText(first, link)}</Tag>
        {rest.length > 0 && <Block text={rest.join("\n")} link={link} />}
      </>
    );
  }
  if (text.startsWith("```")) return <pre tabIndex={0}>{text.replace(/^```.*\n/, "").replace(/\n?```$/, "")}</pre>;
  if (text.startsWith("|")) return <Table text={text} link={link} />;
  const item = /^(?:[*-]|\d+\.) /;
  if (item.test(text)) {
    const items = text.split(/\n(?=(?:[*-]|\d+\.) )/).map((each) => <li>{renderText(each.replace(item, ""), link)}</li>);
    return /^\d/.test(text) ? <ol>{items}</ol> : <ul>{items}</ul>;
  }
  return <p>{renderText(text, link)}</p>;
}

function Table({ text, link }: Props) {
  const rows = text.split("\n").map((line) => line.replace(/^\||\|$/g, "").split(/(?<!\\)\|/));
  const [head = [], , ...body] = rows;
  return (
    <div class="wide-content" tabIndex={0} role="region" aria-label="Table">
      <table class="plain">
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} scope="col">
                {renderText(cell.trim(), link)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {body.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => (
                <td key={index}>{renderText(cell.trim().replaceAll("\\|", "|"), link)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const INLINE = /`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])|!?\[([^\]]*)\]\(([^)]+)\)/g;

function renderText(text: string, link: Props["link"]): ComponentChildren[] {
  const parts: ComponentChildren[] = [];
  let end = 0;
  for (const match of text.matchAll(INLINE)) {
    const [whole, code, strong, emphasis, label, target] = match;
    parts.push(text.slice(end, match.index));
    if (code !== undefined) parts.push(<code>{code}</code>);
    else if (strong !== undefined) parts.push(<strong>{renderText(strong, link)}</strong>);
    else if (emphasis !== undefined) parts.push(<em>{renderText(emphasis, link)}</em>);
    else parts.push(<a href={link(target ?? "")}>{renderText(label ?? "", link)}</a>);
    end = match.index + whole.length;
  }
  parts.push(text.slice(end));
  return parts;
}
