// Charts at work, and the pages that need no script. Needs `dist` with data and pages: `make site`.
import assert from "node:assert/strict";
import { readdir, readFile, stat } from "node:fs/promises";
import { join, normalize } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { DIST } from "./server.mjs";
import { onPage } from "./session.mjs";

const NARROW = { viewport: { width: 362, height: 800 } };
const FIGURES = ["replications", "energy", "peak", "microbenchmarks", "peak/gc200", "microbenchmark/convolution"]; // pages of figures

const STEP = 6; // pixels: no point is smaller

async function waitForChart(page) {
  await page.locator(".chart canvas").waitFor();
  await page.waitForTimeout(400); // a second drawing fits the width
}

/** Returns a place of the chart at which a point shows its tooltip. A mouse that moved over all of it would take half a minute. */
async function findPoint(page) {
  const place = await page.locator(".chart canvas").evaluate((canvas, step) => {
    const box = canvas.getBoundingClientRect();
    const tip = document.querySelector(".tip");
    for (let clientY = box.top; clientY < box.bottom; clientY += step)
      for (let clientX = box.left; clientX < box.right; clientX += step) {
        canvas.dispatchEvent(new PointerEvent("pointermove", { clientX, clientY, bubbles: true }));
        if (!tip.hidden) return { x: clientX, y: clientY };
      }
    return null;
  }, STEP);
  assert.ok(place, "no point shows a tooltip");
  return place;
}

test("a point tells units and document, and a click on it shows where it was printed", () =>
  onPage("#/charts/c2_to_m2000", async (page) => {
    await waitForChart(page);
    const place = await findPoint(page);
    await page.mouse.move(place.x, place.y);
    const tip = await page.locator(".tip").textContent();
    assert.match(tip, /\(images\/s\)|\(ms\)/);
    assert.match(tip, /Document: (qwant|graphcore)/);
    await page.mouse.click(place.x, place.y);
    await page.getByRole("dialog").getByText("as printed").first().waitFor();
  }));

test("every chart fits a phone, and follows the width of the window", () =>
  onPage("#/charts", async (page) => {
    await waitForChart(page);
    for (const name of await page.evaluate(() => window.__data.charts.map((chart) => chart.name))) {
      await page.evaluate((to) => (location.hash = `#/charts/${to}`), name);
      await page.waitForFunction((to) => document.querySelector(".questions select").value === to, name);
      await waitForChart(page);
      const [inner, outer, document] = await page.evaluate(() => {
        const box = document.querySelector(".chart");
        return [box.scrollWidth, box.clientWidth, globalThis.document.documentElement.scrollWidth];
      });
      assert.ok(inner <= outer * 1.05, `${name}: ${inner} in ${outer}`);
      assert.ok(document <= NARROW.viewport.width, `${name}: ${document}`);
    }
    const narrow = await page.locator(".chart canvas").evaluate((canvas) => canvas.offsetWidth);
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.waitForFunction((before) => document.querySelector(".chart canvas")?.offsetWidth > before * 1.5, narrow);
  }, NARROW));

test("a ranking shows who is tied, with an interval and a source for each entry", () =>
  onPage("#/charts/mlperf_ranking?round=1.1&benchmark=bert", async (page) => {
    const rows = page.locator(".answer tbody tr");
    await rows.first().waitFor();
    const finding = await page.locator(".answer h2").textContent();
    const tied = (await rows.locator("td:nth-child(7)").allTextContents()).filter((text) => text.startsWith("no,")).length;
    assert.ok(tied > 0);
    assert.ok(finding.includes(`cannot separate ${tied} of the ${(await rows.count()) - 1} `), finding);
    assert.match(await rows.first().locator("td:nth-child(6)").textContent(), /^[\d.]+ to [\d.]+$/);
    await rows.first().getByRole("button").click();
    await page.getByRole("dialog").getByText("The official entry").first().waitFor();
    await page.keyboard.press("Escape");
    await page.getByLabel("Benchmark").selectOption("resnet");
    await page.waitForFunction(() => location.hash.includes("benchmark=resnet"));
    assert.match(await page.locator(".answer h2").textContent(), /resnet/);
  }));

test("headline claims come first, and a claim has the title of its own", () =>
  onPage("#/claims", async (page) => {
    await page.locator(".claims > li").first().waitFor();
    const factors = (await page.locator(".claims .claimed").allTextContents()).slice(0, 5).map((text) => Number.parseFloat(text.replace(/[^\d.]/g, "")));
    assert.deepEqual(factors, [...factors].sort((left, right) => right - left));
    assert.ok(factors[0] >= 40);
    await page.evaluate(() => (location.hash = "#/claims/sdk14-resnext101-inference-throughput"));
    await page.waitForFunction(() => document.title.startsWith("IPU-M2000 gives 40 times"));
  }));

test("without scripts, findings, claims, a chart and the downloads can be read", async () => {
  const off = { javaScriptEnabled: false };
  const texts = [["", /What was found.*Pages that need no scripts/s], ["claims.html", /Verdict.*40x/s], ["downloads.html", /tables in one archive.*Start with results/s],
    ["claim/sdk14-resnext101-inference-throughput.html", /4483 \/ 127\.96 = 35\.03/], ["chart/generations.html", /What the rows cannot show/]];
  for (const [path, text] of texts)
    await onPage(path, async (page) => {
      assert.match(await page.locator("main").last().innerText(), text, path);
      assert.equal(await page.evaluate(() => [...document.images].filter((image) => image.complete && !image.naturalWidth).length), 0);
    }, off);
  for (const name of FIGURES)
    await onPage(`${name}.html`, async (page) => {
      const sources = page.locator("td a[href*='show='], td a[href^='microbenchmark/'], td a[href^='#']");
      assert.ok((await sources.count()) > 3, name);
    }, off);
  await onPage("downloads.html", (page) => page.locator('a[href$="results.parquet"]').first().waitFor(), off);
  await onPage("", (page) => page.locator("main").last().waitFor(), { ...off, address: pathToFileURL(join(DIST, "claims.html")).href });
});

test("every link between the static pages leads to a file", async () => {
  const files = (await readdir(DIST, { recursive: true })).filter((name) => name.endsWith(".html") && !name.startsWith("data"));
  const addresses = new Map();
  for (const name of files) {
    const text = await readFile(join(DIST, name), "utf8");
    for (const [, address] of text.matchAll(/(?:href|src)="([^"#]+)[^"]*"/g))
      if (!/^https?:/.test(address)) addresses.set(normalize(join(name, "..", address)), name);
  }
  assert.ok(addresses.size > 200);
  for (const [address, name] of addresses) assert.ok(await stat(join(DIST, address)).catch(() => null), `${name}: ${address}`);
});

test("SQL says how much it loads before it loads, and is ready within seconds", () =>
  onPage("#/sql", async (page) => {
    const loaded = () => page.evaluate(() => performance.getEntriesByType("resource").filter(({ name }) => /vendor|engine/.test(name)).length);
    await page.getByText(/loads the engine: \d+ MB \(\d+ MB packed\)/).waitFor();
    assert.equal(await loaded(), 0);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.locator(".query-box .count").waitFor({ timeout: 60_000 });
    assert.ok((await loaded()) > 0);
  }));
