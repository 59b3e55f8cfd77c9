// The built site in headless Chromium. Needs `dist` with data: `make site`.
import assert from "node:assert/strict";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { launch, open } from "./browser.mjs";
import { DIST, serve } from "./server.mjs";

let browser;
let site;

before(async () => {
  [browser, site] = await Promise.all([launch(), serve()]);
});
after(async () => {
  await browser?.close();
  await site?.close();
});

/** Runs with a page, and asserts that it reported nothing wrong and asked no other host. */
async function on(hash, run, { address = site.address, ...options } = {}) {
  const opened = await open(browser, `${address}${hash}`, options);
  await run(opened.page, opened);
  assert.deepEqual(opened.problems, []);
  assert.deepEqual(opened.elsewhere, []);
  await opened.context.close();
}

const found = (page) => page.locator(".count strong").first();
const number = async (page) => {
  await painted(page);
  return Number.parseInt((await found(page).textContent()).replaceAll(",", ""), 10);
};
const painted = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const rows = (page) => page.locator(".scroll tbody tr:not(.space)");
const value = (page, name) => page.locator(".facets label.value", { hasText: name }).first();

/** Runs a query, until it is answered or refused. */
async function asked(page, sql) {
  await page.getByRole("textbox", { name: "SQL" }).fill(sql);
  await page.getByRole("button", { name: "Run" }).click();
  await page.waitForFunction(() => document.querySelector(".ask .count, .problem") && !document.querySelector(".main:disabled"), null, { timeout: 60_000 });
}

test("loads all results, and only those in sight are in the page", () =>
  on("", async (page) => {
    await rows(page).first().waitFor();
    const total = await number(page);
    assert.ok(total >= 816);
    assert.ok((await rows(page).count()) < 80);
    assert.equal(await page.locator(".scroll table").getAttribute("aria-rowcount"), String(total + 1));
  }));

test("a facet filters, its count is what it gives, and the others' counts follow", () =>
  on("", async (page) => {
    const emulated = value(page, "EMULATED");
    const told = Number(await emulated.locator(".number").textContent());
    await emulated.locator("input").check();
    await page.waitForFunction(() => location.hash.includes("origin=emulated"));
    assert.equal(await number(page), told);
    assert.equal(await value(page, "inference").locator(".number").textContent(), String(told));
    assert.match(await value(page, "published").locator(".number").textContent(), /^\d{3}$/);
    assert.match(await rows(page).first().textContent(), /EMULATED.*≈/);
  }));

test("search takes every word", () =>
  on("", async (page) => {
    await page.getByLabel("Search the results").fill("qwant c2");
    await page.waitForFunction(() => location.hash.includes("q=qwant"));
    assert.equal(await number(page), 6);
  }));

test("sorts by a figure in both directions, blanks last", () =>
  on("#/results?origin=published&task=inference", async (page) => {
    const first = () => page.locator(".scroll tbody tr:not(.space)").first().locator("td").nth(7).textContent();
    await page.getByRole("button", { name: "Items/s", exact: true }).click();
    await painted(page);
    const most = Number((await first()).replaceAll(",", ""));
    await page.getByRole("button", { name: "Items/s", exact: true }).click();
    await painted(page);
    const least = Number((await first()).replaceAll(",", ""));
    assert.ok(most > least && least > 0);
    assert.equal(await page.locator('th[aria-sort="ascending"]').count(), 1);
  }));

for (const [name, options] of Object.entries({ wide: {}, phone: { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true } }))
  test(`no figure is cut in the table, ${name}`, () =>
    on("", async (page) => {
      await page.locator("button.figure").first().waitFor();
      for (const sort of ["", "-throughput", "-latency_ms", "time_to_train_s", "-time_to_train_s", "-batch_size", "-origin", "origin"]) {
        await page.evaluate((to) => (location.hash = to), `#/results?sort=${sort}`);
        await painted(page);
        const cut = await page.evaluate(() =>
          [...document.querySelectorAll("button.figure")]
            .filter((figure) => {
              const cell = figure.closest("td");
              const [inner, outer] = [figure.getBoundingClientRect(), cell.getBoundingClientRect()];
              return [figure, cell].some((one) => one.scrollWidth > one.clientWidth) || inner.left < outer.left || inner.right > outer.right;
            })
            .map((figure) => figure.textContent),
        );
        assert.deepEqual(cut, [], sort);
      }
    }, options));

test("a figure that was not calculated is told with every digit, in the table and in its panel", () =>
  on("#/results?origin=official&sort=-time_to_train_s", async (page) => {
    const held = await page.evaluate(() => {
      const { columns } = window.__data.results.results;
      const of = (name) => columns.find((one) => one.name === name);
      const official = of("origin").words.indexOf("official");
      return Math.max(...of("time_to_train_s").values.filter((_, row) => of("origin").codes[row] === official));
    });
    const told = held.toLocaleString("en", { maximumSignificantDigits: 15 });
    assert.ok(told.length > 10, told);
    const figure = page.getByRole("button", { name: /, time to train s of/ }).first();
    assert.equal(await figure.textContent(), told);
    await figure.click();
    const panel = page.getByRole("dialog");
    await panel.locator(".printed").waitFor();
    assert.equal(await panel.locator("h2").textContent(), `${told} s`);
    const printed = (await panel.locator(".printed").textContent()).split(" ")[0];
    assert.ok((await panel.textContent()).includes(`${printed} × 60 = ${told}`));
    await page.keyboard.press("Escape");
    await page.evaluate(() => (location.hash = "#/results?origin=measured&sort=-latency_ms"));
    await value(page, "measured").locator("input:checked").waitFor();
    const shown = Number((await rows(page).first().locator("td").nth(8).textContent()).replace(/[^\d.]/g, ""));
    const most = await page.evaluate(() => Math.max(...window.__data.results.results.columns.find((one) => one.name === "latency_ms").values));
    assert.ok(Math.abs(shown - most) <= 1e-14 * most, `${shown} ${most}`);
  }));

test("the published times of the emulator's table have every digit", () =>
  on("#/emulator", async (page) => {
    await page.getByText("points as a table").click();
    const told = await page.locator(".emulator table.plain tbody td:nth-child(4)").allTextContents();
    const held = await page.evaluate(() => window.__data.emulator.points.map((one) => one.published));
    assert.deepEqual(told.map((one) => Number(one.replaceAll(",", ""))), held);
  }));

test("a link that names what there is not of shows the page all the same", async () => {
  const all = "#/results?sort=bogus";
  await on(all, async (page) => assert.ok((await number(page)) >= 816));
  await on("#/results?sort=-toString&analysis=toString", async (page) => {
    assert.equal(await number(page), 0);
    await page.getByRole("button", { name: "Remove the filter Analysis: toString" }).click();
    await page.waitForFunction(() => !location.hash.includes("analysis"));
    assert.ok((await number(page)) >= 816);
  });
  await on("#/toString", async (page) => assert.ok((await number(page)) >= 816));
  for (const column of ["bogus", "", "toString"])
    await on(`#/results?show=267c086811c5a825.${column}`, async (page) => {
      await page.getByRole("heading", { name: "No such column" }).waitFor();
      await page.keyboard.press("Escape");
      assert.ok((await number(page)) >= 816);
    });
});

test("what cannot be drawn says so, and the next address is drawn", async (context) => {
  const broken = await serve(DIST, { "/data/emulator.js": "window.__data.emulator={predictions:[],points:[]}" });
  context.after(() => broken.close());
  await on("#/emulator", async (page) => {
    await page.getByRole("alert").getByText("This cannot be shown").waitFor();
    await page.getByRole("link", { name: "Results", exact: true }).click();
    assert.ok((await number(page)) >= 816);
    await page.goBack();
    await page.getByRole("alert").waitFor();
  }, { address: broken.address });
});

test("precisions that differ in case alone are one value of the facet, and each cell keeps its own", () =>
  on("#/results?precision=int8", async (page) => {
    const facet = page.getByRole("group", { name: "Precision" });
    const words = (await facet.locator(".word").allTextContents()).map((one) => one.toLowerCase());
    assert.equal(new Set(words).size, words.length);
    const box = facet.locator("label.value", { hasText: "INT8" });
    assert.ok(await box.locator("input").isChecked());
    assert.equal(await number(page), Number(await box.locator(".number").textContent()));
    const told = await page.evaluate(() => {
      const column = window.__data.results.results.columns.find((one) => one.name === "compute_precision");
      return column.codes.filter((code) => /^int8$/i.test(column.words[code])).length;
    });
    assert.equal(await number(page), told);
    await page.getByRole("button", { name: "Precision", exact: true }).click();
    const cells = async () => new Set(await page.locator(".scroll tbody td:nth-child(6)").allTextContents());
    const seen = await cells();
    await page.locator(".scroll").evaluate((box_) => (box_.scrollTop = box_.scrollHeight));
    await painted(page);
    for (const one of await cells()) seen.add(one);
    assert.deepEqual([...seen].sort(), ["INT8", "int8"]);
    await box.locator("input").click();
    await page.waitForFunction(() => !location.hash.includes("precision="));
  }));

test("paging on takes the focus along", () =>
  on("", async (page) => {
    await page.locator("button.figure").first().focus();
    await page.locator(".scroll").evaluate((box) => (box.scrollTop = 10_000));
    await painted(page);
    assert.equal(await page.evaluate(() => document.activeElement.className), "scroll");
  }));

test("a link restores the whole state of the view", () =>
  on("#/results?q=resnext&platform=C2&origin=published&sort=-throughput&show=", async (page) => {
    assert.equal(await page.getByLabel("Search the results").inputValue(), "resnext");
    assert.equal(await number(page), 6);
    assert.ok(await value(page, "C2").locator("input").isChecked());
    assert.match(await rows(page).first().textContent(), /2,526\.35/);
    await page.getByRole("button", { name: "Clear all" }).click();
    await page.waitForFunction(() => !location.hash.includes("q="));
    await page.goBack();
    assert.equal(await number(page), 6);
  }));

test("a click on a figure shows where it was printed, and Escape leads back to it", () =>
  on("#/results?q=qwant&sort=batch_size", async (page) => {
    const figure = page.getByRole("button", { name: /^1\.36, latency ms/ });
    await figure.click();
    const panel = page.getByRole("dialog");
    await panel.getByText("as printed", { exact: false }).first().waitFor();
    const text = await panel.textContent();
    for (const part of ["1.36", "page 1, box", "milliseconds per batch", "arXiv:2002.11670", "2020-02-28", "none (factor 1)"])
      assert.ok(text.includes(part), part);
    await panel.getByText("qwant2020-lowest-latency").or(panel.getByText("lowest latency of the card")).first().waitFor();
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "detached" });
    assert.ok(!(await page.evaluate(() => location.hash)).includes("show="));
    await painted(page);
    assert.match(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? ""), /^1\.36/);
  }));

test("flags come with their evidence and suggestion", () =>
  on("#/results?model=FastSpeech2&flag=R01", async (page) => {
    await page.getByRole("button", { name: /latency ms of FastSpeech2/ }).first().click();
    const panel = page.getByRole("dialog");
    await panel.getByText("Suggested, not applied").first().waitFor();
    assert.match(await panel.textContent(), /batches in flight/);
    assert.match(await panel.textContent(), /Public configuration/);
  }));

test("an MLPerf row shows its official entry and log files, a printed one its conversion", () =>
  on("#/results?q=2.0-2047&origin=published", async (page) => {
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

test("each analysis draws, with a link to its rows", () =>
  on("#/charts", async (page) => {
    const links = page.locator(".questions a");
    assert.equal(await links.count(), 8);
    for (let index = 0; index < 8; index += 1) {
      await links.nth(index).click();
      await page.locator(".chart canvas").waitFor();
      assert.ok((await page.locator(".told").textContent()).length > 200);
    }
    await page.getByRole("link", { name: /rows in the table/ }).click();
    await rows(page).first().waitFor();
    assert.equal(await number(page), 81);
  }));

test("claims are filtered by verdict and show their arithmetic", () =>
  on("#/claims", async (page) => {
    await page.locator(".verdicts button", { hasText: "contradicted" }).click();
    await page.waitForFunction(() => location.hash.includes("verdict=contradicted"));
    assert.equal(await number(page), 3);
    assert.ok((await page.locator(".arithmetic code").count()) >= 3);
  }));

test("a linked claim stands beside those that the filters let through, and is not counted with them", () =>
  on("#/claims", async (page) => {
    const linked = await page.locator(".claims > li:has(.verdict-confirmed)").first().locator(".self").textContent();
    await page.evaluate((to) => (location.hash = to), `#/claims/${linked}?verdict=contradicted`);
    await page.locator(`#claim-${linked}.open`).waitFor();
    assert.equal(await number(page), 3);
    assert.equal(await page.locator("ol.claims > li").count(), 4);
    await page.evaluate(() => (location.hash = "#/claims/none-such"));
    await page.getByRole("alert").getByText("No such claim").waitFor();
  }));

test("claims and logs that cannot be loaded are told as that, not as none", async (context) => {
  const broken = await serve(DIST, { "/data/claims.js": "", "/data/mlperf.js": "" });
  context.after(() => broken.close());
  await on("#/results?q=2.0-2047&origin=published", async (page) => {
    await page.getByRole("button", { name: /time to train s of ResNet-50/ }).click();
    for (const name of ["claims", "mlperf"]) await page.getByRole("alert").getByText(`data/${name}.js holds no data`).waitFor();
  }, { address: broken.address });
});

test("a chart that is drawn anew leaves neither an old problem nor an old tooltip", () =>
  on("", async (page, opened) => {
    let refused = 0;
    await page.route("**/vega.js", (route) => (refused++ ? route.continue() : route.abort()));
    await page.evaluate(() => (location.hash = "#/charts"));
    await page.getByRole("alert").getByText("The chart could not be drawn").waitFor();
    opened.problems.length = 0;
    for (let time = 0; time < 3; time += 1) {
      await page.getByRole("button", { name: /^Use the/ }).click();
      await page.locator(".chart canvas").waitFor();
      await painted(page);
    }
    assert.equal(await page.getByRole("alert").count(), 0);
    await page.waitForFunction(() => document.querySelectorAll(".tip").length === 1);
  }));

test("the form gives predictions, marked emulated, with a memory verdict", () =>
  on("#/emulator?target=m2000&model=resnet50&batch=64", async (page) => {
    const box = page.locator(".predicted");
    await box.waitFor();
    const before_ = await box.textContent();
    assert.match(before_, /EMULATED.*ms latency.*(FITS|UNCERTAIN|DOES-NOT-FIT)/);
    await page.getByLabel("Batch over all chips").selectOption("4");
    await page.waitForFunction(() => location.hash.includes("batch=4"));
    await painted(page);
    assert.notEqual(await box.textContent(), before_);
    await page.locator(".chart canvas").waitFor();
  }));

test("SQL runs over the Parquet files without any other host, and its result downloads", async () => {
  const folder = await mkdtemp(join(tmpdir(), "site-"));
  await on("#/sql", async (page) => {
    await page.getByRole("textbox", { name: "SQL" }).fill("SELECT origin, count(*) AS n FROM results GROUP BY 1 ORDER BY 2 DESC");
    await page.getByRole("button", { name: "Run" }).click();
    await page.locator(".ask table.plain").waitFor({ timeout: 60_000 });
    assert.match(await page.locator(".ask table.plain").textContent(), /published516/);
    const [csv] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
    await csv.saveAs(join(folder, "result.csv"));
    assert.match(await readFile(join(folder, "result.csv"), "utf8"), /^origin,n\r\npublished,516\r\n/);
    const [parquet] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Parquet" }).click()]);
    await parquet.saveAs(join(folder, "result.parquet"));
    assert.equal((await readFile(join(folder, "result.parquet"))).subarray(0, 4).toString(), "PAR1");
    const examples = page.locator(".examples button");
    assert.equal(await examples.count(), 10);
    for (let index = 0; index < 10; index += 1) {
      await examples.nth(index).click();
      await page.waitForFunction(() => document.querySelector(".ask .count, .problem") && !document.querySelector(".main:disabled"));
      assert.equal(await page.locator(".problem").count(), 0);
      assert.ok((await number(page)) > 0);
    }
    for (const sql of ["FROM 'https://example.org/x.parquet'", "INSTALL httpfs; LOAD httpfs", "SELECT json_extract('{}', '$')"]) {
      await page.getByRole("textbox", { name: "SQL" }).fill(sql);
      await page.getByRole("button", { name: "Run" }).click();
      await page.locator(".problem").waitFor();
      await page.getByRole("textbox", { name: "SQL" }).fill("SELECT 1");
      await page.getByRole("button", { name: "Run" }).click();
      await page.locator(".problem").waitFor({ state: "detached" });
    }
  });
});

test("SQL values are shown exactly, and what cannot be is refused", () =>
  on("#/sql", async (page) => {
    const run = (sql) => asked(page, sql);
    await run(`SELECT 1.5 AS a, -0.05 AS b, 1.5::DECIMAL(20, 3) AS c, 123456789012345678901234567890::HUGEINT AS d,
      9007199254740993 AS e, DATE '1969-12-31' AS f, TIMESTAMP '2020-01-02 03:04:05' AS g, TIME '03:04:05.25' AS h, NULL AS i,
      true AS j, [1, 2] AS k, 1e300 AS l`);
    await page.locator(".ask table.plain td").first().waitFor({ timeout: 60_000 });
    assert.deepEqual(await page.locator(".ask table.plain td").allTextContents(), [
      "1.5", "-0.05", "1.500", "123456789012345678901234567890", "9007199254740993", "1969-12-31", "2020-01-02 03:04:05",
      "03:04:05.25", "NULL", "true", "[1,2]", "1e+300",
    ]);
    await run(`SELECT TIMESTAMP '2020-01-02 03:04:05.123456' AS a, TIMESTAMP_NS '1960-01-02 03:04:05.123456789' AS b,
      TIMESTAMPTZ '2020-01-02 03:04:05.5+02' AS c, TIMESTAMP '9999-12-31 23:59:59.999999' AS d, '' AS e, NULL AS f`);
    assert.deepEqual(await page.locator(".ask table.plain td").allTextContents(), [
      "2020-01-02 03:04:05.123456", "1960-01-02 03:04:05.123456789", "2020-01-02 01:04:05.5+00", "9999-12-31 23:59:59.999999",
      "", "NULL",
    ]);
    const [csv] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
    assert.match(await readFile(await csv.path(), "utf8"), /999999,"",\r\n$/);
    for (const x of ["INTERVAL 2 DAY", "[1.5, 2.5]", "TIMETZ '03:04:05+02'", "DATE '-infinity'", "DATE '10000-01-01'", "TIMESTAMP 'infinity'"]) {
      await run(`SELECT 1 AS a, ${x} AS x`);
      assert.match(await page.locator(".problem").textContent(), /^column x .* that this page cannot show; cast it to VARCHAR$/, x);
    }
    await run("SELECT if(i = 600, DATE 'infinity', DATE '2020-01-01') AS x FROM range(700) t(i)");
    await page.getByRole("button", { name: "CSV" }).click();
    await page.getByRole("alert").getByText("column x holds a date").waitFor();
  }));

test("no query changes the data", () =>
  on("#/sql", async (page) => {
    const sum = async () => {
      await asked(page, "SELECT sum(throughput) FROM results");
      return page.locator(".ask table.plain td").textContent();
    };
    const before_ = await sum();
    for (const sql of ["UPDATE results SET throughput = 1", "DROP TABLE flags", "DELETE FROM results", "CREATE TABLE results2 AS FROM results"]) {
      await asked(page, sql);
      assert.match(await page.locator(".problem").textContent(), /read-only/, sql);
    }
    await asked(page, "COMMIT; UPDATE results SET throughput = 1");
    assert.match(await page.locator(".problem").textContent(), /multiple statements/);
    for (const sql of ["CREATE TEMP TABLE results AS SELECT 1 AS throughput", "COMMIT", "USE information_schema"]) await asked(page, sql);
    assert.equal(await sum(), before_);
  }));

test("the answer on the page is that of the query in the address", () =>
  on("#/sql", async (page) => {
    const holds = (sql) => page.waitForFunction((text) => document.getElementById("query").value === text, sql);
    const cell = page.locator(".ask table.plain td");
    const first = await page.getByRole("textbox", { name: "SQL" }).inputValue();
    await asked(page, "SELECT 'one'");
    await asked(page, "SELECT 'two'");
    assert.equal(await cell.textContent(), "two");
    await page.goBack();
    await holds("SELECT 'one'");
    assert.equal(await cell.count(), 0);
    assert.equal(await page.getByRole("button", { name: "CSV" }).count(), 0);
    await page.goForward();
    await cell.waitFor();
    assert.equal(await cell.textContent(), "two");
    for (let back = 0; back < 2; back += 1) await page.goBack();
    await page.waitForFunction(() => location.hash === "#/sql");
    await holds(first);
  }));

test("one query runs at a time", () =>
  on("#/sql", async (page) => {
    await asked(page, "SELECT 0");
    await page.getByRole("textbox", { name: "SQL" }).fill("SELECT 41");
    await page.evaluate(() => {
      document.getElementById("query").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }));
      document.querySelector(".examples button").click();
    });
    await page.locator(".ask table.plain td").getByText("41", { exact: true }).waitFor();
    assert.equal(await page.getByRole("textbox", { name: "SQL" }).inputValue(), "SELECT 41");
    await page.waitForFunction(() => !document.querySelector(".main:disabled, .examples button:disabled"));
  }));

test("a start of DuckDB that fails leaves no worker behind", async (context) => {
  const broken = await serve(DIST, { "/data/parquet/results.parquet": "none" });
  context.after(() => broken.close());
  await on("#/sql", async (page) => {
    for (let time = 0; time < 2; time += 1) {
      await asked(page, "SELECT 1");
      await page.locator(".problem").waitFor();
      const ended = page.workers().map((worker) => worker.waitForEvent("close")); // told a moment after its end
      await Promise.all(ended);
      assert.equal(page.workers().length, 0);
    }
  }, { address: broken.address });
});

test("opened from disk, table, provenance, charts and claims work, and SQL says what it needs", async () => {
  const address = pathToFileURL(join(DIST, "index.html")).href;
  await on("#/results?q=qwant", async (page) => {
    assert.equal(await number(page), 6);
    await page.locator("button.figure").nth(1).click();
    await page.getByRole("dialog").getByText("as printed").first().waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Charts" }).click();
    await page.locator(".chart canvas").waitFor();
    await page.getByRole("link", { name: "Claims" }).click();
    await page.locator(".arithmetic").first().waitFor();
    await page.getByRole("link", { name: "SQL", exact: true }).click();
    await page.getByText("Serve the folder over http").waitFor();
    assert.ok(await page.getByRole("button", { name: "Run" }).isDisabled());
  }, { address });
});

test("a model called <script> shows as text", async (context) => {
  const evil = '<script>window.hit=1</script><img src=x onerror="window.hit=1">';
  const doctor = async (name) => (await readFile(join(DIST, "data", `${name}.js`), "utf8")).replaceAll('"DINO"', JSON.stringify(evil));
  const instead = { "/data/results.js": await doctor("results"), "/data/provenance.js": await doctor("provenance") };
  const doctored = await serve(DIST, instead);
  context.after(() => doctored.close());
  await on("#/results?q=window.hit", async (page) => {
    assert.equal(await number(page), 4);
    assert.ok((await rows(page).first().textContent()).includes(evil));
    await page.locator("button.figure").first().click();
    await page.getByRole("dialog").getByText("as printed").first().waitFor();
    assert.ok((await page.getByRole("dialog").textContent()).includes(evil));
    assert.equal(await page.evaluate(() => window.hit), undefined);
    assert.equal(await page.locator("#app script, #app img").count(), 0);
  }, { address: doctored.address });
});

test("the policy refuses inline script", () =>
  on("", async (page, opened) => {
    await rows(page).first().waitFor();
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "window.hit = 1";
      document.body.append(script);
    });
    assert.equal(await page.evaluate(() => window.hit), undefined);
    assert.equal(opened.problems.length, 1);
    opened.problems.length = 0;
  }));

test("the keyboard alone leads to a figure's provenance, and the theme is kept", () =>
  on("#/results?q=qwant", async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), "Skip to the content");
    await page.locator("button.figure").first().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Use the dark theme" }).click();
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
  test(`axe finds nothing wrong in any view, ${colorScheme}`, async () => {
    const axe = await readFile(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
    for (const [view, there] of Object.entries(VIEWS))
      await on(`#/${view}`, async (page) => {
        await page.locator(there).first().waitFor();
        await page.waitForTimeout(300);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run());
        const told = violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
        assert.deepEqual(told, [], view);
      }, { colorScheme });
  });

test("nothing is wider than a phone", async () => {
  for (const view of ["results", "charts", "claims", "emulator", "sql"])
    await on(`#/${view}`, async (page) => {
      await page.waitForTimeout(500);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 390, `${view}: ${width}`);
    }, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, colorScheme: "dark" });
});
