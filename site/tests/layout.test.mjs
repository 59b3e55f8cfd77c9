// Each view and page at four widths, and what axe says of it. Needs `dist` with data and pages: `make site`.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { onPage } from "./session.mjs";

const WIDTHS = [1920, 768, 360, 1280];
// what shows that a view is complete
const VIEWS = {
  "#/start": ".finding",
  "#/results": ".figure",
  "#/results?sort=-throughput&per=chip": "tr.group",
  "#/results?show=r267c086811c5a825.minutes": ".printed",
  "#/results?show=r267c086811c5a825.time_to_train_s": ".printed",
  "#/compare": ".compare .figure",
  "#/charts": ".chart canvas",
  "#/charts/mlperf_ranking": ".answer table",
  "#/claims": ".arithmetic",
  "#/emulator": ".predicted",
  "#/run?model=ResNet-50+v1.5&task=inference&platform=IPU-M2000&batch_size=4&throughput=7800": "table",
  "#/sql": ".examples",
};
const PAGES = [
  "claims.html", "charts.html", "downloads.html", "changed.html", "replications.html", "energy.html", "peak.html",
  "microbenchmarks.html", "peak/gc200.html", "microbenchmark/matrix-product.html", "microbenchmark/convolution.html",
  "claim/sdk14-resnext101-inference-throughput.html", "chart/mlperf_noise.html",
];
const AXE = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

async function resize(page, width) {
  await page.setViewportSize({ width, height: 900 });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

async function findViolations(page, colorScheme) {
  await page.emulateMedia({ colorScheme });
  await page.waitForTimeout(300); // colours change slowly
  const { violations } = await page.evaluate(() => window.axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`);
}

for (const path of [...Object.keys(VIEWS), ...PAGES])
  test(`${path} fits each width, and axe reports no violation, dark or light`, () =>
    onPage(path, async (page) => {
      await page.locator(VIEWS[path] ?? "main").first().waitFor();
      await page.evaluate(AXE);
      for (const width of WIDTHS) {
        await resize(page, width);
        const widest = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(widest <= width, `${widest} at ${width}`);
        if (![360, 1280].includes(width)) continue;
        for (const colorScheme of ["light", "dark"]) assert.deepEqual(await findViolations(page, colorScheme), [], colorScheme);
      }
    }));

// A phone lays a page out by itself, and sizes it by what it holds.
const PHONE = { viewport: { width: 360, height: 800 }, isMobile: true, hasTouch: true };

for (const [path, content] of Object.entries(VIEWS))
  test(`${path} fits a phone`, () =>
    onPage(path, async (page) => {
      await page.locator(content).first().waitFor();
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= PHONE.viewport.width);
    }, PHONE));
