// Weight and times of the built site in headless Chromium, on the real data and on 100,000 synthetic rows.
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { launch, open } from "./tests/browser.mjs";
import { DIST, serve } from "./tests/server.mjs";

const MANY = 100_000;
const TIMES = 7;
const FIRST_VIEW = ["index.html", "app.css", "app.js", "data/results.js"];

const median = (values) => [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];

async function files(folder, within = "") {
  const found = await readdir(join(folder, within), { withFileTypes: true });
  const each = found.map((one) => (one.isDirectory() ? files(folder, join(within, one.name)) : [join(within, one.name)]));
  return (await Promise.all(each)).flat();
}

async function weight(names) {
  const contents = await Promise.all(names.map((name) => readFile(join(DIST, name))));
  const packed = contents.map((content) => gzipSync(content).length);
  const sum = (values) => (values.reduce((all, one) => all + one, 0) / 1e6).toFixed(2);
  return `${sum(contents.map((content) => content.length))} MB, ${sum(packed)} MB packed`;
}

/** The same columns with as many rows: each real row again and again, its figures a little off. */
async function synthetic() {
  const text = await readFile(join(DIST, "data/results.js"), "utf8");
  const window = {};
  new Function("window", text)(window);
  const data = window.__data.results;
  const real = data.results.rows;
  const source = Array.from({ length: MANY }, (_, row) => row % real);
  data.results.rows = MANY;
  for (const column of data.results.columns) {
    if (column.name === "result_id") {
      column.words = source.map((_, row) => row.toString(16).padStart(16, "0"));
      column.codes = source.map((_, row) => row);
    } else if (column.kind === "text") column.codes = source.map((row) => column.codes[row]);
    else column.values = source.map((row, at) => (column.values[row] === null ? null : column.values[row] * (1 + (at % 997) / 997)));
  }
  const copies = Array.from({ length: Math.floor(MANY / real) }, (_, copy) => copy * real);
  for (const [name, values] of Object.entries(data.flags))
    data.flags[name] = copies.flatMap((from) => (name === "rows" ? values.map((row) => row + from) : values));
  return `window.__data=${JSON.stringify({ results: data })}`;
}

/** Milliseconds from the start of the navigation until rows are painted. */
async function firstView(browser, address, throttle) {
  const { context, page } = await open(browser, `${address}icon.svg`);
  const session = await context.newCDPSession(page);
  if (throttle) {
    await session.send("Network.enable");
    await session.send("Network.emulateNetworkConditions", { offline: false, latency: 40, downloadThroughput: 1_250_000, uploadThroughput: 625_000 });
    await session.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  }
  await page.goto(address);
  await page.locator(".scroll tbody tr:not(.space)").first().waitFor();
  const found = await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()), 0))),
  );
  await context.close();
  return found;
}

/** Milliseconds from a click until the frame after it was painted. */
async function timed(page, act) {
  return page.evaluate(
    ([selector, kind, text]) =>
      new Promise((resolve) => {
        const target = document.querySelectorAll(selector)[kind];
        const started = performance.now();
        const painted = () => requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - started), 0));
        if (text === null) target.click();
        else {
          target.value = text;
          target.dispatchEvent(new InputEvent("input", { bubbles: true }));
        }
        queueMicrotask(() => setTimeout(painted, 0));
      }),
    act,
  );
}

async function actions(browser, address) {
  const { context, page } = await open(browser, address);
  await page.locator(".scroll tbody tr:not(.space)").first().waitFor();
  const repeat = async (act) => {
    const found = [];
    for (let time = 0; time < TIMES; time += 1) found.push(await timed(page, act(time)));
    return `${median(found).toFixed(0)} ms (at most ${Math.max(...found).toFixed(0)})`;
  };
  const told = {
    "facet click": await repeat(() => [".facets input", 5, null]),
    "sort click": await repeat(() => [".scroll th button", 7, null]),
    "key in the search": await repeat((time) => [".bar input", 0, "resnext pod16".slice(0, 3 + time)]),
  };
  await context.close();
  return told;
}

/** Milliseconds from the first Run until its result stands there, the engine's start included, and those of the second. */
async function query(browser, address) {
  const { context, page } = await open(browser, `${address}#/sql`);
  const run = page.getByRole("button", { name: "Run" });
  const found = [];
  for (const sql of ["SELECT count(*) FROM cells", "FROM inference ORDER BY throughput DESC"]) {
    await page.getByRole("textbox", { name: "SQL" }).fill(sql);
    const started = performance.now();
    await run.click();
    await page.locator(".ask table.plain th", { hasText: sql.startsWith("FROM") ? "result_id" : "count" }).waitFor();
    found.push(performance.now() - started);
  }
  await context.close();
  return found;
}

const browser = await launch();
const real = await serve();
const large = await serve(DIST, { "/data/results.js": await synthetic() });
const all = await files(DIST);
const engine = all.filter((name) => name.startsWith("vendor") || name === "engine.js");
console.log("whole site:", await weight(all), `in ${all.length} files`);
console.log("of it the SQL engine:", await weight(engine));
console.log("first view:", await weight(FIRST_VIEW), `(${(await stat(join(DIST, "data/results.js"))).size} bytes of it data)`);
const times = async (site, throttle) => {
  const found = [];
  for (let time = 0; time < TIMES; time += 1) found.push(await firstView(browser, site.address, throttle));
  return `${median(found).toFixed(0)} ms (at most ${Math.max(...found).toFixed(0)})`;
};
console.log("first view, local:", await times(real, false));
console.log("first view, 10 Mbit/s, 40 ms, CPU 4 times slower:", await times(real, true));
const queries = [];
for (let time = 0; time < 3; time += 1) queries.push(await query(browser, real.address));
const [start, next] = [0, 1].map((which) => median(queries.map((one) => one[which])).toFixed(0));
console.log(`SQL: ${start} ms to the first answer, ${next} ms to the next`);
console.log("real data:", await actions(browser, real.address));
console.log(`${MANY} rows:`, await actions(browser, large.address), "first view:", await times(large, false));
await browser.close();
await Promise.all([real.close(), large.close()]);
