// The built site in headless Chromium. Needs `dist` with data: `make site`.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { launch, open } from "./browser.mjs";
import { DIST, serve } from "./server.mjs";

const MIN_RESULTS = 816;
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

let browser;
let site;

before(async () => {
  [browser, site] = await Promise.all([launch(), serve()]);
});
after(async () => {
  await browser?.close();
  await site?.close();
});

/** Runs steps on a page, and asserts that it reported no problem and made no request to another host. */
async function onPage(hash, run, { address = site.address, ...options } = {}) {
  const opened = await open(browser, `${address}${hash}`, options);
  await run(opened.page, opened);
  assert.deepEqual(opened.problems, []);
  assert.deepEqual(opened.external, []);
  await opened.context.close();
}

/** Runs steps on a site of which some files are replaced. */
async function onBrokenSite(replaced, hash, run) {
  const broken = await serve(DIST, replaced);
  try {
    await onPage(hash, run, { address: broken.address });
  } finally {
    await broken.close();
  }
}

const nextFrames = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const readCount = async (page) => {
  await nextFrames(page);
  return Number.parseInt((await page.locator(".count strong").first().textContent()).replaceAll(",", ""), 10);
};
const tableRows = (page) => page.locator(".scroll tbody tr:not(.space)");
const facetValue = (page, name) => page.locator(".facets label.value", { hasText: name }).first();
const openHash = (page, hash) => page.evaluate((to) => (location.hash = to), hash);
const waitForHash = (page, part) => page.waitForFunction((text) => location.hash.includes(text), part);
const click = (page, name) => page.getByRole("button", { name, exact: true }).click();
const queryBox = (page) => page.getByRole("textbox", { name: "SQL" });
const queryCells = (page) => page.locator(".query-box table.plain td");

/** Runs a query and waits until it has a result or is refused. */
async function runQuery(page, sql) {
  await queryBox(page).fill(sql);
  await click(page, "Run");
  await waitForResult(page);
}

function waitForResult(page) {
  const finished = () => document.querySelector(".query-box .count, .problem") && !document.querySelector(".main:disabled");
  return page.waitForFunction(finished, null, { timeout: 60_000 });
}

async function download(page, name) {
  const [file] = await Promise.all([page.waitForEvent("download"), click(page, name)]);
  return readFile(await file.path());
}

test("all results are loaded, and only the rows in view are in the page", () =>
  onPage("", async (page) => {
    await tableRows(page).first().waitFor();
    const total = await readCount(page);
    assert.ok(total >= MIN_RESULTS);
    assert.ok((await tableRows(page).count()) < 80);
    assert.equal(await page.locator(".scroll table").getAttribute("aria-rowcount"), String(total + 1));
    await page.locator("button.figure").first().focus();
    await page.locator(".scroll").evaluate((box) => (box.scrollTop = 10_000));
    await nextFrames(page);
    assert.equal(await page.evaluate(() => document.activeElement.className), "scroll"); // not the top of the page
  }));

test("a facet filters, the counts of all facets follow, and search requires every word", () =>
  onPage("", async (page) => {
    const emulated = facetValue(page, "EMULATED");
    const count = Number(await emulated.locator(".number").textContent());
    await emulated.locator("input").check();
    await waitForHash(page, "origin=emulated");
    assert.equal(await readCount(page), count);
    assert.equal(await facetValue(page, "inference").locator(".number").textContent(), String(count));
    assert.match(await facetValue(page, "published").locator(".number").textContent(), /^\d{3}$/);
    assert.match(await tableRows(page).first().textContent(), /EMULATED.*≈/);
    await emulated.locator("input").uncheck();
    await page.getByLabel("Search the results").fill("qwant c2");
    await waitForHash(page, "q=qwant");
    assert.equal(await readCount(page), 6);
  }));

test("a figure column sorts in both directions, blanks last", () =>
  onPage("#/results?origin=published&task=inference", async (page) => {
    const sortAndReadFirst = async () => {
      await click(page, "Items/s");
      await nextFrames(page);
      return Number((await tableRows(page).first().locator("td").nth(7).textContent()).replaceAll(",", ""));
    };
    const largest = await sortAndReadFirst();
    const smallest = await sortAndReadFirst();
    assert.ok(largest > smallest && smallest > 0);
    assert.equal(await page.locator('th[aria-sort="ascending"]').count(), 1);
  }));

for (const [name, options] of Object.entries({ wide: {}, phone: PHONE }))
  test(`no figure is cut in the table, ${name}`, () =>
    onPage("", async (page) => {
      await page.locator("button.figure").first().waitFor();
      for (const sort of ["", "-throughput", "-latency_ms", "time_to_train_s", "-time_to_train_s", "-batch_size", "-origin", "origin"]) {
        await openHash(page, `#/results?sort=${sort}`);
        await nextFrames(page);
        const cut = await page.evaluate(() =>
          [...document.querySelectorAll("button.figure")]
            .filter((figure) => {
              const cell = figure.closest("td");
              const [inner, outer] = [figure.getBoundingClientRect(), cell.getBoundingClientRect()];
              return [figure, cell].some((box) => box.scrollWidth > box.clientWidth) || inner.left < outer.left || inner.right > outer.right;
            })
            .map((figure) => figure.textContent),
        );
        assert.deepEqual(cut, [], sort);
      }
    }, options));

test("a figure that was not calculated has every digit, in the table and in its panel", () =>
  onPage("#/results?origin=official&sort=-time_to_train_s", async (page) => {
    const readMax = (name, origin) =>
      page.evaluate(([column, wanted]) => {
        const find = (key) => window.__data.results.results.columns.find((candidate) => candidate.name === key);
        const code = find("origin").words.indexOf(wanted);
        return Math.max(...find(column).values.filter((_, row) => find("origin").codes[row] === code));
      }, [name, origin]);
    const expected = (await readMax("time_to_train_s", "official")).toLocaleString("en", { maximumSignificantDigits: 15 });
    assert.ok(expected.length > 10, expected);
    const figure = page.getByRole("button", { name: /, time to train s of/ }).first();
    assert.equal(await figure.textContent(), expected);
    await figure.click();
    const panel = page.getByRole("dialog");
    const printed = (await panel.locator(".printed").textContent()).split(" ")[0];
    assert.equal(await panel.locator("h2").textContent(), `${expected} s`);
    assert.ok((await panel.textContent()).includes(`${printed} × 60 = ${expected}`));
    await page.keyboard.press("Escape");
    await openHash(page, "#/results?origin=measured&sort=-latency_ms");
    await facetValue(page, "measured").locator("input:checked").waitFor();
    const shown = Number((await tableRows(page).first().locator("td").nth(8).textContent()).replace(/[^\d.]/g, ""));
    const slowest = await readMax("latency_ms", "measured");
    assert.ok(Math.abs(shown - slowest) <= 1e-14 * slowest, `${shown} ${slowest}`);
    await openHash(page, "#/emulator");
    await page.getByText("points as a table").click();
    const times = await page.locator(".emulator table.plain tbody td:nth-child(4)").allTextContents();
    const published = await page.evaluate(() => window.__data.emulator.points.map((point) => point.published));
    assert.deepEqual(times.map((time) => Number(time.replaceAll(",", ""))), published);
  }));

test("an unknown name in a link leaves the page usable", () =>
  onPage("#/results?sort=bogus", async (page) => {
    assert.ok((await readCount(page)) >= MIN_RESULTS);
    await openHash(page, "#/results?sort=-toString&analysis=toString");
    await page.getByText("No result matches").waitFor();
    await click(page, "Remove the filter Analysis: toString");
    await page.waitForFunction(() => !location.hash.includes("analysis"));
    assert.ok((await readCount(page)) >= MIN_RESULTS);
    await openHash(page, "#/toString");
    assert.ok((await readCount(page)) >= MIN_RESULTS);
    for (const column of ["bogus", "", "toString"]) {
      await openHash(page, `#/results?show=267c086811c5a825.${column}`);
      await page.getByRole("heading", { name: "No such column" }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    assert.ok((await readCount(page)) >= MIN_RESULTS);
  }));

test("an error of rendering is shown, and the next address is rendered", () =>
  onBrokenSite({ "/data/emulator.js": "window.__data.emulator={predictions:[],points:[]}" }, "#/emulator", async (page) => {
    await page.getByRole("alert").getByText("This cannot be shown").waitFor();
    await page.getByRole("link", { name: "Results", exact: true }).click();
    assert.ok((await readCount(page)) >= MIN_RESULTS);
    await page.goBack();
    await page.getByRole("alert").waitFor();
  }));

test("precisions that differ in case are one value of the facet, and each cell keeps its spelling", () =>
  onPage("#/results?precision=int8", async (page) => {
    const facet = page.getByRole("group", { name: "Precision" });
    const words = (await facet.locator(".word").allTextContents()).map((word) => word.toLowerCase());
    assert.equal(new Set(words).size, words.length);
    const value = facet.locator("label.value", { hasText: "INT8" });
    assert.ok(await value.locator("input").isChecked());
    const expected = await page.evaluate(() => {
      const column = window.__data.results.results.columns.find((candidate) => candidate.name === "compute_precision");
      return column.codes.filter((code) => /^int8$/i.test(column.words[code])).length;
    });
    assert.equal(await readCount(page), expected);
    assert.equal(Number(await value.locator(".number").textContent()), expected);
    await click(page, "Precision");
    const spellings = new Set();
    for (const top of [0, 1e6]) {
      await page.locator(".scroll").evaluate((box, to) => (box.scrollTop = to), top);
      await nextFrames(page);
      for (const cell of await page.locator(".scroll tbody td:nth-child(6)").allTextContents()) spellings.add(cell);
    }
    assert.deepEqual([...spellings].sort(), ["INT8", "int8"]);
    await value.locator("input").click();
    await page.waitForFunction(() => !location.hash.includes("precision="));
  }));

test("a link restores the whole state of the view", () =>
  onPage("#/results?q=resnext&platform=C2&origin=published&sort=-throughput&show=", async (page) => {
    assert.equal(await page.getByLabel("Search the results").inputValue(), "resnext");
    assert.equal(await readCount(page), 6);
    assert.ok(await facetValue(page, "C2").locator("input").isChecked());
    assert.match(await tableRows(page).first().textContent(), /2,526\.35/);
    await click(page, "Clear all");
    await page.waitForFunction(() => !location.hash.includes("q="));
    await page.goBack();
    assert.equal(await readCount(page), 6);
  }));

test("a click on a figure shows where it was printed, and Escape returns to it", () =>
  onPage("#/results?q=qwant&sort=batch_size", async (page) => {
    await page.getByRole("button", { name: /^1\.36, latency ms/ }).click();
    const panel = page.getByRole("dialog");
    await panel.getByText("as printed").first().waitFor();
    const text = await panel.textContent();
    for (const part of ["1.36", "page 1, box", "milliseconds per batch", "arXiv:2002.11670", "2020-02-28", "none (factor 1)"])
      assert.ok(text.includes(part), part);
    await panel.getByText("qwant2020-lowest-latency").or(panel.getByText("lowest latency of the card")).first().waitFor();
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    assert.ok(!(await page.evaluate(() => location.hash)).includes("show="));
    await nextFrames(page);
    assert.match(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? ""), /^1\.36/);
  }));

test("a flag is shown with its evidence and suggestion", () =>
  onPage("#/results?model=FastSpeech2&flag=R01", async (page) => {
    await page.getByRole("button", { name: /latency ms of FastSpeech2/ }).first().click();
    const panel = page.getByRole("dialog");
    await panel.getByText("Suggested, not applied").first().waitFor();
    assert.match(await panel.textContent(), /batches in flight/);
    assert.match(await panel.textContent(), /Public configuration/);
  }));

test("an MLPerf row shows its conversion, its official entry and the log files", () =>
  onPage("#/results?q=2.0-2047&origin=published", async (page) => {
    await page.getByRole("button", { name: /time to train s of ResNet-50/ }).click();
    const panel = page.getByRole("dialog");
    await panel.getByText("The official entry of this id").waitFor();
    await panel.getByText("as printed").first().waitFor();
    const text = await panel.textContent();
    assert.ok(text.includes("19.64 × 60 = 1,178.4"), text);
    assert.match(text, /5 log files/);
    const log = panel.locator('a[href*="result_0.txt"]');
    assert.match(await log.getAttribute("href"), /^https:\/\/github\.com\/mlcommons\/training_results_v2\.0\//);
    await panel.getByText("names this entry").first().waitFor();
  }));

test("each analysis is drawn, with a link to its rows", () =>
  onPage("#/charts", async (page) => {
    const links = page.locator(".questions a");
    assert.equal(await links.count(), 8);
    for (let index = 0; index < 8; index += 1) {
      await links.nth(index).click();
      await page.locator(".chart canvas").waitFor();
      assert.ok((await page.locator(".summary").allTextContents()).join(" ").length > 200);
    }
    await page.getByRole("link", { name: /rows in the table/ }).click();
    await tableRows(page).first().waitFor();
    assert.equal(await readCount(page), 81);
  }));

test("claims are filtered by verdict, and a linked claim is shown in addition", () =>
  onPage("#/claims", async (page) => {
    const linked = await page.locator(".claims > li:has(.verdict-confirmed)").first().locator(".self").textContent();
    await page.locator(".verdicts button", { hasText: "contradicted" }).click();
    await waitForHash(page, "verdict=contradicted");
    assert.equal(await readCount(page), 2);
    assert.ok((await page.locator(".arithmetic code").count()) >= 2);
    await openHash(page, `#/claims/${linked}?verdict=contradicted`);
    await page.locator(`#claim-${linked}.open`).waitFor();
    assert.equal(await readCount(page), 2);
    assert.equal(await page.locator("ol.claims > li").count(), 3);
    await openHash(page, "#/claims/none-such");
    await page.getByRole("alert").getByText("There is no claim none-such").waitFor();
  }));

test("claims and logs that cannot be loaded are reported, not shown as empty", () =>
  onBrokenSite({ "/data/claims.js": "", "/data/mlperf.js": "" }, "#/results?q=2.0-2047&origin=published", async (page) => {
    await page.getByRole("button", { name: /time to train s of ResNet-50/ }).click();
    for (const name of ["claims", "mlperf"]) await page.getByRole("alert").getByText(`data/${name}.js holds no data`).waitFor();
  }));

test("a redrawn chart leaves neither an old problem nor an old tooltip", () =>
  onPage("", async (page, opened) => {
    let requests = 0;
    await page.route("**/vega.js", (route) => (requests++ ? route.continue() : route.abort()));
    await openHash(page, "#/charts");
    await page.getByRole("alert").getByText("The chart could not be drawn").waitFor();
    opened.problems.length = 0;
    for (let time = 0; time < 3; time += 1) {
      await page.getByRole("button", { name: /^Use the/ }).click();
      await page.locator(".chart canvas").waitFor();
      await nextFrames(page);
    }
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.waitForFunction(() => document.querySelectorAll(".tip").length === 1);
  }));

test("the form shows predictions, marked emulated, with a memory verdict", () =>
  onPage("#/emulator?target=m2000&model=resnet50&batch=64", async (page) => {
    const prediction = page.locator(".predicted");
    const first = await prediction.textContent();
    assert.match(first, /EMULATED.*ms latency.*(FITS|UNCERTAIN|DOES-NOT-FIT)/);
    await page.getByLabel("Batch over all chips").selectOption("4");
    await waitForHash(page, "batch=4");
    await nextFrames(page);
    assert.notEqual(await prediction.textContent(), first);
    await page.locator(".chart canvas").waitFor();
  }));

test("SQL runs over the Parquet files, its result downloads, and no query reaches another host", () =>
  onPage("#/sql", async (page) => {
    await runQuery(page, "SELECT origin, count(*) AS n FROM results GROUP BY 1 ORDER BY 2 DESC");
    assert.match(await page.locator(".query-box table.plain").textContent(), /published516/);
    assert.match(String(await download(page, "CSV")), /^origin,n\r\npublished,516\r\n/);
    assert.equal((await download(page, "Parquet")).subarray(0, 4).toString(), "PAR1");
    const examples = page.locator(".examples button");
    assert.equal(await examples.count(), 10);
    for (let index = 0; index < 10; index += 1) {
      await examples.nth(index).click();
      await waitForResult(page);
      assert.equal(await page.locator(".problem").count(), 0);
      assert.ok((await readCount(page)) > 0);
    }
    for (const sql of ["FROM 'https://example.org/x.parquet'", "INSTALL httpfs; LOAD httpfs", "SELECT json_extract('{}', '$')"]) {
      await runQuery(page, sql);
      assert.equal(await page.locator(".problem").count(), 1, sql);
    }
    await runQuery(page, "SELECT 1");
    assert.equal(await page.locator(".problem").count(), 0);
  }));

const VALUES = [
  ["1.5", "1.5"], ["-0.05", "-0.05"], ["1.5::DECIMAL(20, 3)", "1.500"], ["9007199254740993", "9007199254740993"],
  ["123456789012345678901234567890::HUGEINT", "123456789012345678901234567890"], ["1e300", "1e+300"],
  ["DATE '1969-12-31'", "1969-12-31"], ["TIMESTAMP '2020-01-02 03:04:05'", "2020-01-02 03:04:05"],
  ["TIMESTAMP '2020-01-02 03:04:05.123456'", "2020-01-02 03:04:05.123456"], ["TIME '03:04:05.25'", "03:04:05.25"],
  ["TIMESTAMP_NS '1960-01-02 03:04:05.123456789'", "1960-01-02 03:04:05.123456789"],
  ["TIMESTAMPTZ '2020-01-02 03:04:05.5+02'", "2020-01-02 01:04:05.5+00"],
  ["TIMESTAMP '9999-12-31 23:59:59.999999'", "9999-12-31 23:59:59.999999"],
  ["true", "true"], ["[1, 2]", "[1,2]"], ["''", ""], ["NULL", "NULL"],
];
const REFUSED = ["INTERVAL 2 DAY", "[1.5, 2.5]", "TIMETZ '03:04:05+02'", "DATE '-infinity'", "DATE '10000-01-01'", "TIMESTAMP 'infinity'"];

test("SQL values are shown exactly, or refused", () =>
  onPage("#/sql", async (page) => {
    await runQuery(page, `SELECT ${VALUES.map(([sql], index) => `${sql} AS c${index}`)}`);
    assert.deepEqual(await queryCells(page).allTextContents(), VALUES.map(([, text]) => text));
    assert.match(String(await download(page, "CSV")), /,"\[1,2\]","",\r\n$/);
    for (const sql of REFUSED) {
      await runQuery(page, `SELECT 1 AS a, ${sql} AS x`);
      assert.match(await page.locator(".problem").textContent(), /^column x .* that this page cannot show; cast it to VARCHAR$/, sql);
    }
    await runQuery(page, "SELECT if(i = 600, DATE 'infinity', DATE '2020-01-01') AS x FROM range(700) t(i)");
    await click(page, "CSV");
    await page.getByRole("alert").getByText("column x holds a date").waitFor();
  }));

test("no query changes the data", () =>
  onPage("#/sql", async (page) => {
    const readSum = async () => {
      await runQuery(page, "SELECT sum(throughput) FROM results");
      return queryCells(page).textContent();
    };
    const sum = await readSum();
    for (const sql of ["UPDATE results SET throughput = 1", "DROP TABLE flags", "DELETE FROM results", "CREATE TABLE results2 AS FROM results"]) {
      await runQuery(page, sql);
      assert.match(await page.locator(".problem").textContent(), /read-only/, sql);
    }
    await runQuery(page, "COMMIT; UPDATE results SET throughput = 1");
    assert.match(await page.locator(".problem").textContent(), /multiple statements/);
    for (const sql of ["CREATE TEMP TABLE results AS SELECT 1 AS throughput", "COMMIT", "USE information_schema"]) await runQuery(page, sql);
    assert.equal(await readSum(), sum);
  }));

test("the result on the page is that of the query in the address", () =>
  onPage("#/sql", async (page) => {
    const waitForQuery = (sql) => page.waitForFunction((text) => document.getElementById("query").value === text, sql);
    const initial = await queryBox(page).inputValue();
    for (const word of ["one", "two"]) await runQuery(page, `SELECT '${word}'`);
    assert.equal(await queryCells(page).textContent(), "two");
    await page.goBack();
    await waitForQuery("SELECT 'one'");
    assert.equal(await queryCells(page).count(), 0);
    assert.equal(await page.getByRole("button", { name: "CSV" }).count(), 0);
    await page.goForward();
    assert.equal(await queryCells(page).textContent(), "two");
    for (let back = 0; back < 2; back += 1) await page.goBack();
    await page.waitForFunction(() => location.hash === "#/sql");
    await waitForQuery(initial);
  }));

test("one query runs at a time", () =>
  onPage("#/sql", async (page) => {
    await runQuery(page, "SELECT 0");
    await queryBox(page).fill("SELECT 41");
    await page.evaluate(() => {
      document.getElementById("query").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }));
      document.querySelector(".examples button").click();
    });
    await queryCells(page).getByText("41", { exact: true }).waitFor();
    assert.equal(await queryBox(page).inputValue(), "SELECT 41");
    await page.waitForFunction(() => !document.querySelector(".main:disabled, .examples button:disabled"));
  }));

test("a failed start of DuckDB leaves no worker behind", () =>
  onBrokenSite({ "/data/parquet/results.parquet": "none" }, "#/sql", async (page) => {
    for (let time = 0; time < 2; time += 1) {
      await runQuery(page, "SELECT 1");
      await page.locator(".problem").waitFor();
      await Promise.all(page.workers().map((worker) => worker.waitForEvent("close"))); // reported a moment after its end
      assert.equal(page.workers().length, 0);
    }
  }));

test("opened from disk, all views work but SQL, which says what it needs", () =>
  onPage("#/results?q=qwant", async (page) => {
    assert.equal(await readCount(page), 6);
    await page.locator("button.figure").nth(1).click();
    await page.getByRole("dialog").getByText("as printed").first().waitFor();
    await page.keyboard.press("Escape");
    for (const [view, content] of [["Charts", ".chart canvas"], ["Claims", ".arithmetic"], ["SQL", ".warning"]]) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await page.locator(content).first().waitFor();
    }
    await page.getByText("Serve the folder over http").waitFor();
    assert.ok(await page.getByRole("button", { name: "Run" }).isDisabled());
  }, { address: pathToFileURL(join(DIST, "index.html")).href }));

test("markup in a model name is shown as text, and the policy refuses inline script", async () => {
  const evil = '<script>window.hit=1</script><img src=x onerror="window.hit=1">';
  const replaced = {};
  for (const name of ["results", "provenance"])
    replaced[`/data/${name}.js`] = (await readFile(join(DIST, "data", `${name}.js`), "utf8")).replaceAll('"DINO"', JSON.stringify(evil));
  await onBrokenSite(replaced, "#/results?q=window.hit", async (page, opened) => {
    assert.equal(await readCount(page), 4);
    assert.ok((await tableRows(page).first().textContent()).includes(evil));
    await page.locator("button.figure").first().click();
    await page.getByRole("dialog").getByText("as printed").first().waitFor();
    assert.ok((await page.getByRole("dialog").textContent()).includes(evil));
    assert.equal(await page.locator("#app script, #app img").count(), 0);
    assert.equal(opened.problems.length, 0);
    await page.evaluate(() => document.body.append(Object.assign(document.createElement("script"), { textContent: "window.hit = 1" })));
    assert.equal(await page.evaluate(() => window.hit), undefined);
    assert.equal(opened.problems.splice(0).length, 1);
  });
});

test("the keyboard alone opens the source of a figure, and the theme is kept", () =>
  onPage("#/results?q=qwant", async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), "Skip to the content");
    await page.locator("button.figure").first().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await click(page, "Use the dark theme");
    await page.reload();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  }));

const VIEWS = {
  results: ".figure",
  "results?show=267c086811c5a825.time_to_train_s": ".printed",
  charts: ".chart canvas",
  claims: ".arithmetic",
  emulator: ".chart canvas",
  sql: ".examples",
};

for (const colorScheme of ["light", "dark"])
  test(`axe reports no violation in any view, ${colorScheme}`, async () => {
    const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
    for (const [view, content] of Object.entries(VIEWS))
      await onPage(`#/${view}`, async (page) => {
        await page.locator(content).first().waitFor();
        await page.waitForTimeout(300);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run());
        assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`), [], view);
      }, { colorScheme });
  });

test("no view is wider than a phone", async () => {
  for (const [view, content] of Object.entries(VIEWS))
    await onPage(`#/${view}`, async (page) => {
      await page.locator(content).first().waitFor();
      await nextFrames(page);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= PHONE.viewport.width, `${view}: ${width}`);
    }, { ...PHONE, colorScheme: "dark" });
});
