// Measures weight and times of the built site in headless Chromium, on the real data and on 100,000 synthetic rows.
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { launch, open } from "./tests/browser.mjs";
import { DIST, serve } from "./tests/server.mjs";

const MANY = 100_000;
const REPEATS = 7;
const START = ["index.html", "app.css", "app.js", "data/start.js"];
const RESULTS = [...START, "data/results.js"];

const median = (values) => [...values].sort((left, right) => left - right)[Math.floor(values.length / 2)];
const describe = (times) => `${median(times).toFixed(0)} ms (at most ${Math.max(...times).toFixed(0)})`;

async function repeat(times, measure) {
  const values = [];
  for (let time = 0; time < times; time += 1) values.push(await measure(time));
  return values;
}

async function listFiles(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));
}

async function weigh(names) {
  const contents = await Promise.all(names.map((name) => readFile(join(DIST, name))));
  const sum = (sizes) => (sizes.reduce((total, size) => total + size, 0) / 1e6).toFixed(2);
  return `${sum(contents.map((content) => content.length))} MB, ${sum(contents.map((content) => gzipSync(content).length))} MB packed`;
}

/** Makes a script of MANY rows with the same columns: the real rows repeated, with slightly different figures. */
async function synthesise() {
  const text = await readFile(join(DIST, "data/results.js"), "utf8");
  const window = {};
  new Function("window", text)(window);
  const data = window.__data.results;
  const real = data.results.rows;
  for (const column of [...data.results.columns, ...data.flags.columns]) {
    const name = column.kind === "text" ? "codes" : "values";
    column[name] ??= column.words.map((_, row) => row);
    if (column.runs) column[name] = column[name].flatMap((value, at) => Array(column.runs[at]).fill(value));
    delete column.runs;
  }
  const source = Array.from({ length: MANY }, (_, row) => row % real);
  data.results.rows = MANY;
  for (const column of data.results.columns) {
    if (column.name === "result_id") {
      column.words = source.map((_, row) => `r${row.toString(16).padStart(16, "0")}`);
      column.codes = source.map((_, row) => row);
    } else if (column.kind === "text") column.codes = source.map((row) => column.codes[row]);
    else column.values = source.map((row, at) => (column.values[row] === null ? null : column.values[row] * (1 + (at % 997) / 997)));
  }
  const copies = Array.from({ length: Math.floor(MANY / real) }, (_, copy) => copy * real);
  data.flags.rows *= copies.length;
  for (const column of data.flags.columns)
    if (column.kind === "text") column.codes = copies.flatMap(() => column.codes);
    else column.values = copies.flatMap((from) => column.values.map((row) => row + from)); // `row`
  return `window.__data=${JSON.stringify({ results: data })}`;
}

const ROW = ".scroll tbody tr:not(.space)";

/** Milliseconds from the start of the navigation until the content of a view is painted. */
async function timeFirstView(browser, address, throttle, [hash, content]) {
  const { context, page } = await open(browser, `${address}icon.svg`);
  const session = await context.newCDPSession(page);
  if (throttle) {
    await session.send("Network.enable");
    await session.send("Network.emulateNetworkConditions", { offline: false, latency: 40, downloadThroughput: 1_250_000, uploadThroughput: 625_000 });
    await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  }
  await page.goto(`${address}${hash}`);
  await page.locator(content).first().waitFor();
  const time = await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()), 0))),
  );
  await context.close();
  return time;
}

/** Milliseconds from a click on, or an input to, the element of a selector until the next frame is painted. */
function timeAction(page, action) {
  return page.evaluate(
    ([selector, index, text]) =>
      new Promise((resolve) => {
        const target = document.querySelectorAll(selector)[index];
        const started = performance.now();
        const measure = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started), 0));
        if (text === null) target.click();
        else {
          target.value = text;
          target.dispatchEvent(new InputEvent("input", { bubbles: true }));
        }
        queueMicrotask(() => setTimeout(measure, 0));
      }),
    action,
  );
}

async function timeActions(browser, address) {
  const { context, page } = await open(browser, `${address}#/results`);
  await page.locator(ROW).first().waitFor();
  const measure = async (makeAction) => describe(await repeat(REPEATS, (time) => timeAction(page, makeAction(time))));
  const times = {
    "facet click": await measure(() => [".facets input", 5, null]),
    "sort click": await measure(() => [".scroll th button", 6, null]),
    "key in the search": await measure((time) => [".bar input", 0, "resnext pod16".slice(0, 3 + time)]),
  };
  await context.close();
  return times;
}

/** Milliseconds of the first query, with the start of the engine, and of the second. */
async function timeQueries(browser, address) {
  const { context, page } = await open(browser, `${address}#/sql`);
  const times = [];
  for (const [sql, column] of [["SELECT count(*) FROM cells", "count"], ["FROM inference ORDER BY throughput DESC", "result_id"]]) {
    await page.getByRole("textbox", { name: "SQL" }).fill(sql);
    const started = performance.now();
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator(".query-box table.plain th", { hasText: column }).waitFor();
    times.push(performance.now() - started);
  }
  await context.close();
  return times;
}

const browser = await launch();
const real = await serve();
const large = await serve(DIST, { "/data/results.js": await synthesise() });
const files = await listFiles(DIST);
console.log("whole site:", await weigh(files), `in ${files.length} files`);
console.log("SQL engine:", await weigh(files.filter((name) => name.startsWith("vendor") || name === "engine.js")));
console.log("comparison:", await weigh(["data/comparison.duckdb"]));
console.log("start page:", await weigh(START));
console.log("results:", await weigh(RESULTS), `(${(await stat(join(DIST, "data/results.js"))).size} bytes of it data)`);
const VIEWS = { "start page": ["", ".finding"], results: ["#/results", ROW] };
// Each loads the engine first.
const ANSWERS = {
  "first verdict": ["#/run?model=ResNet-50+v1.5&task=inference&platform=IPU-M2000&batch_size=4&throughput=7800", ".judged"],
  "first comparison of two machines": ["#/compare", ".compare .figure"],
};
const firstViews = async (site, throttle, view) =>
  describe(await repeat(REPEATS, () => timeFirstView(browser, site.address, throttle, { ...VIEWS, ...ANSWERS }[view])));
for (const view of Object.keys(VIEWS)) {
  console.log(`${view}, local:`, await firstViews(real, false, view));
  console.log(`${view}, 10 Mbit/s, 40 ms, CPU 4 times slower:`, await firstViews(real, true, view));
}
for (const view of Object.keys(ANSWERS)) console.log(`${view}, local:`, await firstViews(real, false, view));
const queries = await repeat(3, () => timeQueries(browser, real.address));
console.log("first query:", describe(queries.map(([first]) => first)), "second:", describe(queries.map(([, second]) => second)));
console.log("real data:", await timeActions(browser, real.address));
console.log(`${MANY} rows:`, await timeActions(browser, large.address), "results, first view:", await firstViews(large, false, "results"));
await browser.close();
await Promise.all([real.close(), large.close()]);
