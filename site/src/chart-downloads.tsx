// A chart as PNG and SVG with its source, licence, version and address in it, as CSV, its citation, and the code to embed it.
import { useState } from "preact/hooks";
import { Cite } from "./cite";
import type { Dataset } from "./dataset";
import { formatCell, saveFile } from "./download";
import { type ChartData, loadScript, type NumberTable } from "./load";
import { formatHash } from "./route";

type Shown = Pick<ChartData, "name" | "finding" | "numbers" | "specification">;

interface Props {
  data: Dataset;
  chart: Shown;
  picture?: boolean; // whether the site has it as a file
  hash?: string;
}

export function ChartDownloads({ data, chart, picture = true, hash = formatHash("charts", chart.name) }: Props) {
  const [citing, setCiting] = useState(false);
  const ids = [...new Set(chart.numbers.flatMap(({ ids }) => ids).filter((id): id is string => id !== null && data.findRow(id) >= 0))];
  const save = async (kind: "png" | "svg") => {
    await loadScript("vega.js");
    const content = kind === "svg" ? await window.__charts!.exportSvg(chart.specification, describePicture(data, ids, hash)) : decode(await window.__charts!.exportPng(chart.specification, describePicture(data, ids, hash)));
    saveFile(`${chart.name}.${kind}`, kind === "svg" ? "image/svg+xml" : "image/png", content);
  };
  return (
    <div class="downloads">
      <button type="button" onClick={() => void save("png")}>
        PNG
      </button>
      <button type="button" onClick={() => void save("svg")}>
        SVG
      </button>
      <button type="button" onClick={() => saveFile(`${chart.name}.csv`, "text/csv", chart.numbers.map(formatTable).join("\r\n"))}>
        CSV
      </button>
      {ids.length > 0 && (
        <button type="button" aria-expanded={citing} onClick={() => setCiting(!citing)}>
          Cite
        </button>
      )}
      <details>
        <summary>Embed</summary>
        <label>
          HTML for another page
          <textarea readOnly rows={3} spellcheck={false} value={formatEmbed(chart, hash, picture)} onFocus={(event) => event.currentTarget.select()} />
        </label>
        {location.protocol === "file:" && <small>This page was opened from disk: put the address of the site in.</small>}
      </details>
      {citing && <Cite ids={ids} />}
    </div>
  );
}

/** The lines below a picture: sources, how MLPerf times came about, dataset with version and licence, address. */
function describePicture(data: Dataset, ids: string[], hash: string): string[] {
  const list = (name: string) => [...new Set(ids.map((id) => data.getText(data.findRow(id), name)).filter(Boolean))];
  const publishers = list("publisher");
  const { build, repository } = window.__data!.start!;
  const version = build.version ? `version ${build.version}` : `unreleased build ${build.build_id.slice(0, 12)}`;
  const address = location.protocol === "file:" ? repository : `${location.href.split("#")[0]}${hash}`;
  return [
    publishers.length > 0 ? `Source: ${publishers.join(", ")}` : "Source: computed by ipu-results",
    ...(list("origin").includes("official") ? ["MLPerf times: computed from the logs by ipu-results, not verified by MLCommons Association"] : []),
    `ipu-results, ${version} of ${build.as_of}, CC-BY-4.0`,
    address,
  ];
}

/** Decodes a data address: the page's policy lets no script fetch one. */
function decode(address: string): Uint8Array {
  return Uint8Array.from(atob(address.slice(address.indexOf(",") + 1)), (character) => character.charCodeAt(0));
}

function formatTable({ headings, rows, ids }: NumberTable): string {
  const lines = rows.map((row, index) => [...row, ids[index] ?? null]);
  return [[...headings, "result_id"], ...lines, []].map((values) => values.map(formatCell).join(",")).join("\r\n");
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", '"': "&quot;" };
const escape = (text: string) => text.replace(/[&<"]/g, (character) => ESCAPES[character]!);

function formatEmbed({ name, finding }: Shown, hash: string, picture: boolean): string {
  const resolve = (path: string) => escape(new URL(path, location.href.split("#")[0]).href);
  if (!picture) return `<iframe src="${resolve(`index.html${hash}`)}" title="${escape(finding)}" width="100%" height="700"></iframe>`;
  return `<a href="${resolve(`index.html${hash}`)}"><img src="${resolve(`chart/${name}.svg`)}" alt="${escape(finding)}" width="100%"></a>`;
}
