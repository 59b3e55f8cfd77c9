// How to cite results: the texts that `ipu-results cite` prints, joined from the parts that the pipeline wrote.
// tests/site/test_site_cite.py compares them with the Python command for every result.

/** Source, address if it is not the source's, description, figures, LaTeX cells, notes, attribution, whether a dataset. */
type Part = [number, string | null, string, [string, string, string][], string[], number[], number | null, number];

interface Source {
  key: string;
  title: string;
  publisher: string;
  url: string;
  published_on: string | null;
  retrieved_on: string | null;
}

export interface Citations {
  dataset: { key: string; author: string; title: string; version: string; published_on: string | null; year: string; url: string; text: string };
  legend: string;
  max: number; // results that are cited at once
  latex: Record<string, string>;
  latex_columns: string[];
  sources: Source[];
  texts: string[];
  results: Record<string, Part>;
}

export const FORMATS = { bibtex: "BibTeX", "csl-json": "CSL-JSON", latex: "LaTeX", markdown: "Markdown" };
export type Format = keyof typeof FORMATS;

/** The results of one document, in the order of their first result. */
interface Group {
  source: Source;
  results: { id: string; part: Part }[];
}

/** Formats how to cite results; throws an Error for an unknown result, for none and for too many. */
export function formatCitation(data: Citations, ids: string[], format: Format): string {
  const known = [...new Set(ids)];
  if (known.length === 0) throw new Error("no result to cite");
  if (known.length > data.max) throw new Error(`${known.length} results are too many to cite at once, at most ${data.max}`);
  const groups = new Map<number, Group>();
  for (const id of known) {
    const part = Object.hasOwn(data.results, id) ? data.results[id]! : undefined;
    if (!part) throw new Error(`unknown result ${id}`);
    const group = groups.get(part[0]) ?? { source: data.sources[part[0]]!, results: [] };
    group.results.push({ id, part });
    groups.set(part[0], group);
  }
  const write = { bibtex: formatBibtex, "csl-json": formatCsl, latex: formatLatex, markdown: formatMarkdown }[format];
  return write(data, [...groups.values()]);
}

function formatMarkdown(data: Citations, groups: Group[]): string {
  const lines = groups.flatMap(({ results }, index) =>
    results.map(({ part }) => `* ${escapeMarkdown(markName(part[2]))}: ${escapeMarkdown(listFigures(part).join("; "))}[^${index + 1}]`),
  );
  const notes = groups.map((group, index) => `[^${index + 1}]: ${escapeMarkdown(formatFootnote(data, group))}`);
  return [...lines, "", ...notes].join("\n");
}

function formatLatex(data: Citations, groups: Group[]): string {
  const escape = (text: string) => escapeLatex(data, text);
  const lines = groups.flatMap(({ results }, index) =>
    results.map(({ part }) => {
      const cells = [...part[4], part[3].map(([, text]) => text).join(", ")];
      return `${cells.map(escape).join(" & ")}\\footnotemark[${index + 1}] \\\\`;
    }),
  );
  const notes = groups.map((group, index) => `\\footnotetext[${index + 1}]{${escape(formatFootnote(data, group))}}`);
  return [`% ${data.latex_columns.join(" & ")}`, ...lines, "% after the table:", ...notes].join("\n");
}

function formatBibtex(data: Citations, groups: Group[]): string {
  const escape = (text: string) => escapeLatex(data, text);
  const { key, author, title, version, published_on, year, url, text } = data.dataset;
  const entry = {
    author: `{${escape(author)}}`,
    title: `{${escape(title)}}`,
    year,
    url,
    date: published_on ?? "",
    version: escape(version),
    note: escape(`Dataset, CC-BY-4.0, ${text}`),
  };
  const entries = groups.map((group) => {
    const { source } = group;
    return formatEntry(source.key, {
      author: `{${escape(source.publisher)}}`,
      title: `{${escape(markName(source.title))}}`,
      year: source.published_on?.slice(0, 4) ?? "",
      date: source.published_on ?? "",
      url: findUrl(group),
      urldate: source.retrieved_on ?? "",
      note: escape(formatNote(data, group)),
    });
  });
  return [formatEntry(key, entry), ...entries].join("\n\n");
}

function formatEntry(key: string, fields: Record<string, string>): string {
  const lines = Object.entries(fields).filter(([, value]) => value).map(([name, value]) => `  ${name} = {${value}},`);
  return [`@misc{${key},`, ...lines, "}"].join("\n");
}

function formatCsl(data: Citations, groups: Group[]): string {
  const { key, author, title, version, published_on, url, text } = data.dataset;
  const dataset = {
    id: key,
    type: "dataset",
    title,
    author: [{ literal: author }],
    version,
    note: text,
    URL: url,
    issued: formatDate(published_on),
  };
  const items = groups.map((group) => ({
    id: group.source.key,
    type: group.results[0]!.part[7] ? "dataset" : "webpage",
    title: markName(group.source.title),
    author: [{ literal: group.source.publisher }],
    note: formatNote(data, group),
    URL: findUrl(group) || undefined,
    issued: formatDate(group.source.published_on),
    accessed: formatDate(group.source.retrieved_on),
  }));
  return JSON.stringify([dataset, ...items], null, 1);
}

function formatDate(day: string | null): { "date-parts": number[][] } | undefined {
  return day === null ? undefined : { "date-parts": [day.split("-").map(Number)] };
}

const listFigures = (part: Part) => part[3].map(([label, text]) => `${label} ${text}`);

/** The address that leads nearest to all results of a document. */
function findUrl({ source, results }: Group): string {
  const urls = new Set(results.map(({ part }) => part[1] ?? source.url));
  return urls.size === 1 ? [...urls][0]! : source.url;
}

function describeFigures({ id, part }: Group["results"][number]): string {
  const figures = part[3].map(([label, text, place]) => `${label} ${text} (${place})`).join("; ");
  return `${markName(`${part[2]}: ${figures}; result ${id}`)}.`;
}

/** What must be said with results: emulated, suspect, flagged, and MLPerf's attribution. */
function listDisclosures(data: Citations, { results }: Group): string[] {
  const notes = results.flatMap(({ part }) => part[5]);
  const attributions = results.flatMap(({ part }) => (part[6] === null ? [] : [part[6]]));
  const texts = [...new Set(notes), ...new Set(attributions)].map((index) => data.texts[index]!);
  return attributions.length ? [...texts, data.legend] : texts;
}

function formatFootnote(data: Citations, group: Group): string {
  const { publisher, title, published_on, retrieved_on } = group.source;
  const parts = [publisher, `“${title}”`, published_on, findUrl(group), retrieved_on && `retrieved ${retrieved_on}`];
  const where = group.results.map(describeFigures);
  const dataset = `In: ${data.dataset.title}, ${data.dataset.text}.`;
  return [`${markName(parts.filter(Boolean).join(", "))}.`, ...where, dataset, ...listDisclosures(data, group)].join(" ");
}

function formatNote(data: Citations, group: Group): string {
  const dataset = `Checked in: ${data.dataset.title}, ${data.dataset.text}.`;
  return [...group.results.map(describeFigures), ...listDisclosures(data, group), dataset].join(" ");
}

/** Puts the notice symbol behind each use of the name MLPerf. */
const markName = (text: string) => text.replace(/\bMLPerf\b(?! ?®)/g, "MLPerf®");
const joinLines = (text: string) => text.trim().split(/\s+/).join(" ");

function escapeLatex({ latex }: Citations, text: string): string {
  const escaped = [...joinLines(text)].map((character) => latex[character] ?? character).join("");
  return escaped.replace(/-\{\}(?!-)/g, "-"); // a hyphen alone needs no guard
}

function escapeMarkdown(text: string): string {
  const escaped = joinLines(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return escaped.replace(/[\\`*[\]|~]|(?<![\p{L}\p{N}_])_|_(?![\p{L}\p{N}_])/gu, (character) => `\\${character}`);
}
