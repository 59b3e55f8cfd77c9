// What others measured: microbenchmarks, replications, energy, the comparison of a run. Needs `make site`.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { DIST, serve } from "./server.mjs";
import { onPage, openPage } from "./session.mjs";

const RUN = "#/run?model=ResNet-50+v1.5&task=inference&platform=IPU-M2000&batch_size=4&throughput=7800";
const PHONE = { viewport: { width: 360, height: 760 }, isMobile: true, hasTouch: true };

test("who measured is a facet and a column, and submitted rows are shown by an explicit choice only", async () => {
  const text = await readFile(join(DIST, "data/results.js"), "utf8");
  const data = JSON.parse(text.slice(text.indexOf("]=") + 2).replace(/;\s*$/, ""));
  const column = data.results.columns.find(({ name }) => name === "relationship");
  assert.ok(!column.words.includes("submitted"), "then use a row of the data here");
  column.words = column.words.map((word) => (word === "own" ? "submitted" : word));
  const expand = ({ codes, runs }) => (runs ? codes.flatMap((code, at) => Array(runs[at]).fill(code)) : codes);
  const usable = data.results.columns.find(({ name }) => name === "usable");
  const submittedWord = column.words.indexOf("submitted");
  const relationships = expand(column);
  usable.codes = expand(usable).map((code, row) => (relationships[row] === submittedWord ? usable.words.indexOf("false") : code));
  delete usable.runs;
  const shown = usable.codes.filter((code) => usable.words[code] === "true").length;
  const replaced = { "/data/results.js": `(window.__data=window.__data||{})["results"]=${JSON.stringify(data)};` };
  const site = await serve(DIST, replaced);
  try {
    await onPage("#/results", async (page) => {
      const count = async () => Number((await page.locator(".count strong").textContent()).replace(/\D/g, ""));
      const facet = (name) => page.locator(".facets label.value", { hasText: name }).first();
      const read = async (name) => Number((await facet(name).locator(".number").textContent()).replace(/\D/g, ""));
      await facet("independent").waitFor();
      assert.equal(await count(), shown);
      assert.equal(await facet("submitted").count(), 0);
      await page.getByText(`Left out as not usable: ${(data.results.rows - shown).toLocaleString("en")} rows`).waitFor();
      assert.match(await page.locator(".scroll tbody tr:not(.space)").nth(1).textContent(), /vendor/);
      await facet("independent").locator("input").check();
      await page.waitForFunction(() => location.hash.includes("relationship=independent"));
      assert.equal(await count(), await read("independent"));
      await page.evaluate(() => (location.hash = "#/results"));
      await page.getByRole("button", { name: "Show them" }).click();
      await facet("submitted").locator("input").check();
      await page.waitForFunction(() => location.hash.includes("relationship=submitted"));
      assert.equal(await count(), relationships.filter((code) => code === submittedWord).length);
    }, { address: site.address });
  } finally {
    await site.close();
  }
});

test("a run is compared by keyboard alone, with ratio, source and refusals", () =>
  onPage("#/run", async (page) => {
    await page.locator("select[name=model]").focus();
    await page.keyboard.type("ResNet-50 v1.5");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.type("IPU-M2000");
    await page.keyboard.press("Tab");
    for (const text of ["4", "7,800"]) {
      await page.keyboard.type(text);
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Enter");
    await page.getByText("1.09×").waitFor(); // 7,800 over 7,152, as printed
    await page.getByRole("button", { name: /^7,152/ }).click();
    await page.getByRole("dialog").getByText("as printed").first().waitFor();
    await page.keyboard.press("Escape");
    await page.getByText(/training may not be compared with inference/).waitFor();
    await page.getByRole("textbox", { name: /^Throughput/ }).fill("fast");
    await page.getByRole("button", { name: "Compare", exact: true }).click();
    await page.getByText("throughput fast is not a number above 0").waitFor();
    await page.evaluate(() => (location.hash = "#/run?model=Llama-2&task=training&throughput=1"));
    await page.getByText("No row may be compared.").waitFor();
    await page.evaluate(() => (location.hash = "#/run?model=ResNet-50+v1.5&task=inference&platform=S30&batch_size=48&throughput=52000"));
    await page.getByText("sparsity: dense / 0.9375").waitFor();
  }));

test("a comparison says how far it is, and what to do where it fails", async () => {
  const broken = await serve(DIST, { "/data/comparison.duckdb": "none" });
  try {
    await onPage(RUN, async (page) => {
      await page.getByRole("alert").getByText(/^The comparison failed: .*Reload the page to try again/).waitFor();
      assert.equal(page.workers().length, 0);
    }, { address: broken.address });
  } finally {
    await broken.close();
  }
  await onPage("", async (page) => {
    await page.route("**/duckdb-eh.wasm", (route) => setTimeout(() => route.continue(), 500));
    await page.evaluate((to) => (location.hash = to), RUN);
    await page.getByRole("status").filter({ hasText: /^Loading DuckDB, \d+ MB \(\d+ MB packed\), once/ }).waitFor();
    await page.locator(".judged").waitFor();
    assert.equal(await page.getByRole("status").count(), 0);
  });
});

test("the panel has what a page printed before, and what changed silently", async () =>
  onPage("#/results?show=rf0c13f86dcd461b9.latency_median_ms", async (page) => {
    const section = page.getByRole("dialog").locator("section", { hasText: "What the page printed over time" });
    await section.getByText("14.2 ms").waitFor();
    const [before, after] = await section.getByRole("listitem").allInnerTexts();
    assert.match(before, /14.2 ms\s+from 2024-02-14, SDK 2.17.0/);
    assert.match(after, /32.335 ms\s+from 2024-02-21, SDK 2.17.0, the versions of the software stayed the same/);
  }));

test("a throughput that is printed per chip is shown as printed, and as what the page printed before", async () =>
  onPage("#/results?show=r2b353a17bf962a24.throughput_per_chip", async (page) => {
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Throughput (out tok/s/GPU)", { exact: true }).first().waitFor();
    assert.equal(await dialog.getByText("Computed:").count(), 0);
    const section = dialog.locator("section", { hasText: "What the page printed over time" });
    await section.getByText(/^1,576 .*s\/s per chip/).waitFor();
  }));

test("the form offers no model that has reference values alone", async () =>
  onPage("#/run", async (page) => {
    const options = page.locator("select[name=model] option");
    await options.filter({ hasText: "ResNet-50 v1.5" }).first().waitFor({ state: "attached" });
    assert.deepEqual((await options.allTextContents()).filter((name) => name.startsWith("test_")), []);
  }));

test("a figure of a static page leads to its page and table in one click", async () => {
  for (const path of ["replications.html", "energy.html", "peak/gc200.html"])
    await onPage(path, async (page) => {
      const figure = page.locator("td a[href*='show=']").first();
      const text = (await figure.textContent()).split(" ")[0];
      assert.match(await page.locator("td:has(a[href*='show='])").first().locator("xpath=..").innerText(), /page|row|line|table|column|results\//);
      await figure.click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(/Place in the source|Place in our transcription/).first().waitFor();
      assert.ok((await dialog.innerText()).length > 200, text);
    });
  await onPage("peak.html", async (page) => {
    await page.locator("td a[href^='microbenchmark/']").first().click();
    const row = page.locator("tr:target");
    assert.match(await row.innerText(), /page|table|figure|row|line/i);
    await row.locator("xpath=ancestor::div/preceding-sibling::p").last().getByRole("link").waitFor(); // its document
  });
});

test("a chart of a static page keeps its size on a phone, within a box that scrolls, and is dark in a dark page", async () => {
  const { page, context } = await openPage("chart/replications.html", { ...PHONE, colorScheme: "dark" });
  const { image, natural, box, document: whole, filter } = await page.evaluate(() => {
    const [figure, picture] = [document.querySelector("figure"), document.querySelector("figure img")];
    const sizes = { image: picture.clientWidth, natural: picture.naturalWidth, box: figure.scrollWidth > figure.clientWidth };
    return { ...sizes, document: document.documentElement.scrollWidth, filter: getComputedStyle(picture).filter };
  });
  assert.equal(image, natural);
  assert.ok(box && whole <= PHONE.viewport.width, `${whole}`);
  assert.match(filter, /invert/);
  await context.close();
});

test("a label of a row that a phone cuts is that of one row only", () =>
  onPage("", async (page) => {
    await page.addInitScript(() => {
      window.drawn = new Set();
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        window.drawn.add(text);
        return fillText.call(this, text, ...place);
      };
    });
    await page.goto(new URL("#/charts/replications", page.url()).href);
    await page.reload();
    await page.locator(".chart canvas").waitFor();
    await page.waitForFunction(() => [...window.drawn].some((text) => text.startsWith("heat equation")));
    const [labels, drawn] = await page.evaluate(() => {
      const { specification } = window.__data.charts.find(({ name }) => name === "replications");
      const drawn = specification.concat.flatMap((panel) => [panel, ...panel.layer]);
      const records = drawn.flatMap(({ data }) => data?.values ?? []);
      return [[...new Set(records.map(({ label }) => label))], [...window.drawn]];
    });
    const cut = drawn.filter((text) => text.endsWith("…"));
    assert.ok(cut.some((text) => text.startsWith("heat equation")));
    for (const text of cut) assert.equal(labels.filter((label) => label?.startsWith(text.slice(0, -1))).length, 1, text);
  }, PHONE));
