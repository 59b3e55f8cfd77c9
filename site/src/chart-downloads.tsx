// A chart as PNG, SVG and CSV, and the code that shows it on another page.
import { formatCell, saveFile } from "./download";
import { type ChartData, loadScript, type NumberTable } from "./load";
import { formatHash } from "./route";

type Shown = Pick<ChartData, "name" | "finding" | "numbers" | "specification">;

export function ChartDownloads({ chart, picture = true, hash = formatHash("charts", chart.name) }: { chart: Shown; picture?: boolean; hash?: string }) {
  const save = async (kind: "png" | "svg") => {
    await loadScript("vega.js");
    const content = kind === "svg" ? await window.__charts!.exportSvg(chart.specification) : decode(await window.__charts!.exportPng(chart.specification));
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
      <details>
        <summary>Embed</summary>
        <label>
          HTML for another page
          <textarea readOnly rows={3} spellcheck={false} value={formatEmbed(chart, hash, picture)} onFocus={(event) => event.currentTarget.select()} />
        </label>
        {location.protocol === "file:" && <small>This page was opened from disk: put the address of the site in.</small>}
      </details>
    </div>
  );
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
