// Scores every view of the built site with Lighthouse and exits 1 where a score is below LEAST.
// Usage: node lighthouse.mjs [VIEW...], after `make site`. npx fetches Lighthouse once, in the version named here.
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import packaged from "@sparticuz/chromium";
import { serve } from "./tests/server.mjs";

const LIGHTHOUSE = "lighthouse@12.8.2"; // the newest for Node.js 20
const LEAST = 95;
const VIEWS = [
  "#/", "#/results", "#/compare", "#/run", "#/charts", "#/charts/latency_bounded", "#/claims", "#/emulator", "#/sql",
  "claims.html", "charts.html", "replications.html", "downloads.html",
];

// What is printed of each view next to its scores: a busy machine changes the times, and hardly the rest.
const FIGURES = {
  "largest paint ms": "largest-contentful-paint", "blocked ms": "total-blocking-time", "main thread ms": "mainthread-work-breakdown",
  "layout shift": "cumulative-layout-shift", "elements": "dom-size",
};

const run = promisify(execFile);
const site = await serve(undefined, {}, true);
const folder = await mkdtemp(join(tmpdir(), "lighthouse-"));
const env = { ...process.env, CHROME_PATH: process.env.CHROMIUM ?? (await packaged.executablePath()) };
const views = process.argv.slice(2);
let low = 0;
for (const [index, view] of (views.length > 0 ? views : VIEWS).entries()) {
  const out = join(folder, `${index}.json`);
  const flags = ["--quiet", "--preset=desktop", "--output=json", `--output-path=${out}`, "--chrome-flags=--headless=new --no-sandbox --disable-dev-shm-usage"];
  await run("npx", ["--yes", LIGHTHOUSE, `${site.address}${view}`, ...flags], { env, maxBuffer: 1e8 });
  const { categories, audits } = JSON.parse(await readFile(out, "utf8"));
  const scores = Object.entries(categories).map(([name, { score }]) => [name, Math.round(100 * score)]);
  const failed = scores.filter(([, score]) => score < LEAST);
  low += failed.length;
  console.log(view.padEnd(20), scores.map(([name, score]) => `${name} ${score}`).join(", "));
  console.log("  ", Object.entries(FIGURES).map(([name, id]) => `${name} ${Number((audits[id].numericValue ?? 0).toPrecision(3))}`).join(", "));
  for (const [name] of failed)
    for (const { id } of categories[name].auditRefs)
      if (audits[id].score !== null && audits[id].score < 0.9) console.log("  ", name, id, audits[id].displayValue ?? "");
}
await rm(folder, { recursive: true });
await site.close();
if (low > 0) {
  console.error(`error: ${low} scores are below ${LEAST}; the audits that fail are listed above`);
  process.exitCode = 1;
}
