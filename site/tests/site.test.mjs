// The built site in headless Chromium. Needs `dist` with data: `make site`.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { DIST, serve } from "./server.mjs";
import { onPage } from "./session.mjs";

const RAW = join(import.meta.dirname, "../../raw");
const MIN_RESULTS = 816;
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

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
const tableRows = (page) => page.locator(".scroll tbody tr:not(.space, .group)");
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
  onPage("#/results?sort=model", async (page) => {
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

function readOrigins(page) {
  return tableRows(page).evaluateAll((rows) => rows.map((row) => row.textContent));
}

/** How many rows are usable, and how many are not. */
const countUsable = (page) =>
  page.evaluate(() => {
    const { words, codes } = window.__data.results.results.columns.find(({ name }) => name === "usable");
    const usable = codes.filter((code) => words[code] === "true").length;
    return [usable, codes.length - usable];
  });

test("only usable rows are shown, with the number of the others, which are shown by choice or where nothing else matches", () =>
  onPage("#/results?sort=-throughput", async (page) => {
    await tableRows(page).first().waitFor();
    const [usable, others] = await countUsable(page);
    assert.ok(usable > 3000 && others > 100);
    assert.equal(await readCount(page), usable);
    await page.getByText(`Left out as not usable: ${others.toLocaleString("en")} rows`).waitFor();
    await click(page, "Show them");
    await waitForHash(page, "all=1");
    assert.equal(await readCount(page), usable + others);
    await page.getByText(`Shown, though not usable: ${others.toLocaleString("en")} rows`).waitFor();
    await click(page, "Leave them out");
    await page.waitForFunction(() => !location.hash.includes("all="));
    await openHash(page, "#/results?ms=2&sort=-throughput");
    await nextFrames(page);
    assert.ok(!(await readOrigins(page)).some((text) => /EMULATED/.test(text)));
    await openHash(page, "#/results?origin=emulated");
    await page.getByText("Shown, though not usable").waitFor();
    assert.match(await tableRows(page).first().textContent(), /EMULATED.*≈/);
  }));

test("each row that is not usable has a reason in its panel", () =>
  onPage("#/results?q=perceiver&all=1", async (page) => {
    await tableRows(page).first().waitFor();
    const column = (name) => page.evaluate((name) => window.__data.results.results.columns.find((each) => each.name === name), name);
    const [ids, until] = [await column("result_id"), await column("printed_until")];
    const row = until.codes ? until.codes.findIndex((code) => code >= 0) : 0;
    await openHash(page, `#/results?all=1&show=${ids.words[row]}`);
    await page.getByRole("dialog").getByText("its page no longer prints it").waitFor();
  }));

test("a suspect row is marked and its panel says why, and it is in no ranking", () =>
  onPage("#/results?flag=R47&all=1", async (page) => {
    await tableRows(page).first().waitFor();
    for (const text of await tableRows(page).allTextContents()) assert.match(text, /R47/);
    await page.locator("button.figure[aria-label*='warn R47']").first().click();
    const panel = page.getByRole("dialog");
    await panel.getByText(/^Not ranked: .*it is suspect/).waitFor();
    await panel.getByText(/blocks disturbed/).first().waitFor();
  }));

test("a facet filters, the counts of all facets follow, and search requires every word", () =>
  onPage("#/results?all=1", async (page) => {
    const emulated = facetValue(page, "EMULATED");
    const count = Number(await emulated.locator(".number").textContent());
    await emulated.locator("input").check();
    await waitForHash(page, "origin=emulated");
    assert.equal(await readCount(page), count);
    assert.equal(await facetValue(page, "inference").locator(".number").textContent(), String(count));
    assert.match(await facetValue(page, "published").locator(".number").textContent(), /^[\d,]{3,}$/);
    await emulated.locator("input").uncheck();
    await page.getByLabel("Search the results").fill("qwant c2");
    await waitForHash(page, "q=qwant");
    assert.equal(await readCount(page), 6);
  }));

/** The numbers of a column of figures, from the rows in the page. */
const readFigures = async (page, column) => {
  await nextFrames(page);
  const cells = await page.locator(`.scroll tbody tr:not(.space, .group) td:nth-child(${column})`).allTextContents();
  return cells.map((text) => Number.parseFloat(text.replace(/[^\d.]/g, "")));
};
const [THROUGHPUT, LATENCY] = [6, 7]; // columns of the table
/** Checks that there is one ranking, but for one of sparse networks below it. */
const checkOneRanking = async (page, label) => {
  const [first, ...others] = await page.locator("tr.group").allTextContents();
  assert.ok(first === undefined || (first.startsWith(label) && !first.includes("sparse")), first);
  assert.ok(others.every((other) => other.startsWith(`${label}, sparse network`)), others);
};

test("a figure column sorts in both directions, blanks last", () =>
  onPage("#/results?origin=published&task=inference&item=image", async (page) => {
    await click(page, "Throughput");
    const [largest] = await readFigures(page, THROUGHPUT);
    await click(page, "Throughput");
    const [smallest] = await readFigures(page, THROUGHPUT);
    assert.ok(largest > smallest && smallest > 0);
    assert.equal(await page.locator('th[aria-sort="ascending"]').count(), 1);
    await checkOneRanking(page, "inference, images/s");
  }));

test("throughput is ranked within one task and unit only, minutes within one network", () =>
  onPage("#/results?sort=-throughput", async (page) => {
    await page.locator("tr.group").first().waitFor();
    const labels = new Map();
    const box = page.locator(".scroll");
    const height = await box.evaluate((element) => element.scrollHeight);
    let [label, last] = ["", Infinity];
    for (let top = 0; top < height && !label.startsWith("Without"); top += 500) {
      await box.evaluate((element, to) => (element.scrollTop = to), top);
      await nextFrames(page);
      const lines = await page.evaluate(() =>
        [...document.querySelectorAll(".scroll tbody tr:not(.space)")].map((line) => ({
          at: Number(line.getAttribute("aria-rowindex")),
          group: line.classList.contains("group") ? line.textContent : null,
          unit: line.querySelector("td:nth-child(6) small")?.textContent.trim(),
          value: Number.parseFloat((line.querySelector("td:nth-child(6)")?.textContent ?? "").replace(/[^\d.]/g, "")),
          test: line.querySelector("td")?.textContent ?? "",
        })),
      );
      for (const line of lines.filter(({ at }) => !labels.has(at))) {
        if (line.group !== null) [label, last] = [line.group, Infinity];
        else if (!label.startsWith("Without")) {
          assert.ok(line.value <= last, `${line.value} after ${last} in ${label}`);
          assert.ok(line.test.includes(label.split(",")[0]), label);
          if (!label.includes("not printed")) assert.ok(label.includes(line.unit), `${line.unit} in ${label}`);
          last = line.value;
        }
        labels.set(line.at, label);
      }
    }
    assert.ok(new Set(labels.values()).size > 5);
    await page.getByText("so one ranking of all would mean nothing").waitFor();
    await page.getByRole("button", { name: /^inference, images/ }).click();
    await waitForHash(page, "item=image");
    await checkOneRanking(page, "inference, images/s");
    await openHash(page, "#/results?sort=minutes");
    await page.locator("tr.group", { hasText: /training of [^,]+, minutes/ }).first().waitFor();
  }));

const WIDTHS = {
  360: { ...PHONE, viewport: { width: 360, height: 760 } },
  768: { viewport: { width: 768, height: 1024 } },
  1280: { viewport: { width: 1280, height: 900 } },
  1920: { viewport: { width: 1920, height: 1080 } },
};
const RELATIONSHIPS = ["vendor", "independent", "official", "own"];
const SORTS = ["", "-throughput", "-latency_ms", "minutes", "-minutes", "-batch_size", "-origin", "origin"];

for (const [name, options] of Object.entries(WIDTHS))
  test(`no figure is cut in the table at ${name} px, whoever measured, and the columns fit`, () =>
    onPage("#/results", async (page) => {
      await page.locator("button.figure").first().waitFor();
      const queries = [
        ...SORTS.map((sort) => `sort=${sort}`),
        ...RELATIONSHIPS.flatMap((relationship) => SORTS.map((sort) => `relationship=${relationship}&sort=${sort}`)),
        "platform=C2&origin=published&origin=emulated&all=1&sort=-throughput", // a figure that is emulated and flagged has two signs
      ];
      for (const query of queries) {
        await openHash(page, `#/results?${query}`);
        await nextFrames(page);
        const { cut, content, box, figures, below } = await page.evaluate(() => {
          const all = [...document.querySelectorAll("button.figure")];
          const scroll = document.querySelector(".scroll");
          return {
            cut: all
              .filter((figure) => {
                const cell = figure.closest("td");
                const [inner, outer] = [figure.getBoundingClientRect(), cell.getBoundingClientRect()];
                const isWide = [figure, cell].some((element) => element.scrollWidth > element.clientWidth);
                return isWide || inner.left < outer.left || inner.right > outer.right || inner.right > innerWidth;
              })
              .map((figure) => figure.textContent),
            figures: all.length,
            content: scroll.scrollWidth,
            box: scroll.clientWidth,
            below: document.querySelector("footer").getBoundingClientRect().bottom - innerHeight,
          };
        });
        assert.deepEqual(cut, [], query);
        assert.ok(figures > 0, query);
        assert.ok(content <= box, `${query}: ${content} in ${box}`);
        if (Number(name) > 820) assert.ok(below <= 0, `the footer ends ${below} px below the window`);
      }
    }, options));

test("a printed figure has every digit in the table, minutes are rounded there and exact in the panel", () =>
  onPage("#/results?origin=official&model=BERT-Large&sort=-minutes", async (page) => {
    const readMax = (name, origin, model) =>
      page.evaluate(([column, ...wanted]) => {
        const find = (key) => window.__data.results.results.columns.find((candidate) => candidate.name === key);
        const has = (key, value, row) => value === undefined || find(key).words[find(key).codes[row]] === value;
        return Math.max(...find(column).values.filter((_, row) => has("usable", "true", row) && has("origin", wanted[0], row) && has("model", wanted[1], row)));
      }, [name, origin, model]);
    const figure = page.getByRole("button", { name: /, minutes of/ }).first();
    await figure.waitFor();
    const seconds = await readMax("time_to_train_s", "official", "BERT-Large");
    const longest = Number((seconds / 60).toPrecision(12));
    assert.ok(String(longest).length > 8);
    assert.equal(await figure.textContent(), longest.toLocaleString("en", { maximumSignificantDigits: 5 }));
    await figure.click();
    const panel = page.getByRole("dialog");
    const printed = (await panel.locator(".printed").textContent()).split(" ")[0];
    assert.equal(await panel.locator("h2").textContent(), `${longest.toLocaleString("en", { maximumSignificantDigits: 15 })} min`);
    assert.ok((await panel.textContent()).includes(`${printed} × 60 = ${seconds.toLocaleString("en", { maximumSignificantDigits: 15 })}`));
    await page.keyboard.press("Escape");
    await openHash(page, "#/results?origin=measured&sort=-latency_ms");
    await facetValue(page, "measured").locator("input:checked").waitFor();
    const [shown] = await readFigures(page, LATENCY);
    assert.equal(shown, Number((await readMax("latency_ms", "measured")).toPrecision(5)));
    const batches = await page.evaluate(() => {
      const find = (key) => window.__data.results.results.columns.find((candidate) => candidate.name === key).values;
      return find("batch_size").filter((value) => value !== null);
    });
    await openHash(page, "#/results?sort=-batch_size");
    await page.waitForFunction(() => document.querySelector('th[aria-sort="descending"]'));
    assert.equal((await readFigures(page, 5))[0], Math.max(...batches)); // a count is never rounded
  }));

test("the certificate of a figure is checked with its source in the browser", () =>
  onPage("#/results?origin=published&q=GPS%2B%2B", async (page) => {
    await page.getByRole("button", { name: /, minutes of/ }).first().click();
    const panel = page.getByRole("dialog");
    await panel.getByText("Certificate of this figure").click();
    const line = JSON.parse(await panel.locator(".certificate pre").textContent());
    assert.equal(line.raw, "23h 43m");
    assert.deepEqual([line.figure, line.stated, line.in], [85_380, "results.csv", "time_to_train_s"]);
    const chooser = panel.locator(".certificate input");
    const verdict = panel.locator(".certificate output");
    await chooser.setInputFiles(join(RAW, line.file));
    await verdict.getByText(/^Yes: /).waitFor();
    const source = await readFile(join(RAW, line.file), "utf8");
    await chooser.setInputFiles({ name: "x.html", mimeType: "text/html", buffer: Buffer.from(source.replace("23h 43m", "22h 43m")) });
    await verdict.getByText(/^No: graphcore\/performance-2023-07-04.html has other bytes/).waitFor();
  }));

test("an unknown name in a link leaves the page usable", () =>
  onPage("#/results?sort=bogus", async (page) => {
    assert.ok((await readCount(page)) >= MIN_RESULTS);
    await openHash(page, "#/results?sort=-toString&analysis=toString");
    await page.getByText("No result has all of this").waitFor();
    await click(page, "Remove the filter Analysis: toString");
    await page.waitForFunction(() => !location.hash.includes("analysis"));
    assert.ok((await readCount(page)) >= MIN_RESULTS);
    await openHash(page, "#/toString");
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    for (const column of ["bogus", "", "toString"]) {
      await openHash(page, `#/results?show=r267c086811c5a825.${column}`);
      await page.getByRole("heading", { name: "No such column" }).waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await openHash(page, "#/results?per=toString&ms=toString");
    assert.ok((await readCount(page)) >= MIN_RESULTS);
    for (const hash of ["#/compare?a=bogus&b=toString", "#/compare?by=toString", "#/charts/toString"]) {
      await openHash(page, hash);
      await page.locator("main h2, main [role=alert]").first().waitFor();
    }
  }));

test("an error of rendering is shown, and the next address is rendered", () =>
  onBrokenSite({ "/data/emulator.js": "window.__data.emulator=[]" }, "#/emulator", async (page) => {
    await page.getByRole("alert").getByText("This cannot be shown").waitFor();
    await page.getByRole("link", { name: "Results", exact: true }).click();
    assert.ok((await readCount(page)) >= MIN_RESULTS);
    await page.goBack();
    await page.getByRole("alert").waitFor();
  }));

test("a precision has one name, which each of its spellings finds, and the panel has the printed one", () =>
  onPage("#/results?precision=fp16&publisher=Graphcore", async (page) => {
    const facet = page.getByRole("group", { name: "Precision" });
    assert.ok(await facet.locator("label.value", { hasText: "FP16" }).locator("input").isChecked());
    const expected = await page.evaluate(() => {
      const find = (key) => window.__data.results.results.columns.find(({ name }) => name === key);
      const [precision, usable] = [find("precision"), find("usable")];
      return precision.codes.filter((code, row) => precision.words[code] === "FP16" && usable.words[usable.codes[row]] === "true").length;
    });
    assert.equal(await readCount(page), expected);
    for (const spelling of ["fp16", "16.16", "half"]) {
      await openHash(page, `#/results?precision=FP16&q=${spelling}`);
      await page.waitForFunction((text) => document.querySelector(".bar input").value === text, spelling);
      assert.equal(await readCount(page), expected, spelling);
    }
    await openHash(page, "#/results?q=46174");
    await page.getByRole("button", { name: /^46,174/ }).click();
    const panel = page.getByRole("dialog");
    assert.match(await panel.textContent(), /FP16.*Printed precision16\.16/);
  }));

test("a chip is one value of its facet, whoever names it", () =>
  onPage("#/results?chip=GC200", async (page) => {
    await tableRows(page).first().waitFor();
    for (const who of ["vendor", "independent", "official"]) assert.match(await facetValue(page, who).locator(".number").textContent(), /^\d{2,}$/);
  }));

test("figures that few rows have are found, shown in the panel, and lead to their source", () =>
  onPage("#/results", async (page) => {
    await tableRows(page).first().waitFor();
    for (const metric of ["latency_p99_ms", "run_energy_j", "time_to_result_s"]) {
      const [id, value] = await page.evaluate((name) => {
        const { figures, results } = window.__data.results;
        const find = (frame, key) => frame.columns.find((column) => column.name === key);
        const metrics = find(figures, "metric");
        const at = metrics.codes.findIndex((code) => metrics.words[code] === name);
        return [find(results, "result_id").words[find(figures, "row").values[at]], find(figures, "value").values[at]];
      }, metric);
      await openHash(page, `#/results?q=${id}&show=${id}`);
      const panel = page.getByRole("dialog");
      await panel.locator("dd button.link", { hasText: value.toLocaleString("en", { maximumSignificantDigits: 15 }) }).first().click();
      await waitForHash(page, `.${metric}`);
      await panel.getByText(/as printed|as in the file/).first().waitFor();
      await page.keyboard.press("Escape");
      await panel.waitFor({ state: "detached" });
    }
  }));

test("the start page needs neither the results nor another script, and its findings lead to their evidence", () =>
  onPage("", async (page) => {
    await page.locator(".finding").first().waitFor();
    const loaded = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name.split("/").pop()));
    assert.deepEqual(loaded.filter((name) => name.endsWith(".js")).sort(), ["app.js", "start.js"]);
    const findings = await page.evaluate(() => window.__data.start.findings);
    assert.ok(findings.length >= 3 && findings.length <= 5);
    for (const { title, link, bars, rule } of findings) {
      await openHash(page, "#/");
      const card = page.locator(".finding", { hasText: title });
      assert.equal(await card.locator(".bars tr").count(), bars.length + Number(rule !== null));
      await card.getByRole("link").click();
      await waitForHash(page, link.slice(0, 20));
      await page.locator(".claims .open, .chart canvas, .scroll button.figure").first().waitFor();
    }
    await openHash(page, "#/");
    for (const name of ["Download", "Cite", "Report a wrong figure"]) await page.getByRole("link", { name, exact: true }).waitFor();
    assert.match(await page.locator(".offers").textContent(), /As of \d{4}-\d\d-\d\d, (unreleased|release \d)/);
    for (const name of ["Methodology", "Glossary", "Cite"]) {
      const address = await page.getByRole("link", { name: new RegExp(`^${name}`) }).getAttribute("href");
      await readFile(new URL(`../../docs/${address.split("/docs/")[1]}`, import.meta.url)); // a page of the documentation
    }
  }));

test("the chart of the start page leads from a point to its source, and a machine can be left out", () =>
  onPage("", async (page) => {
    const circles = page.locator(".front circle");
    await circles.first().waitFor();
    const { machines } = await page.evaluate(() => window.__data.start.front);
    assert.ok(machines.length >= 5);
    assert.equal(await circles.count(), machines.flatMap(({ points }) => points).length);
    await page.getByRole("checkbox", { name: machines[0].name }).uncheck();
    assert.equal(await circles.count(), machines.slice(1).flatMap(({ points }) => points).length);
    await circles.first().click();
    await page.getByRole("dialog").getByText("as printed").first().waitFor();
  }));

test("what is not in the record is said, with the ways on", () =>
  onPage("#/results?q=Groq&task=inference", async (page) => {
    await page.getByText("Not in this record: “Groq”").waitFor();
    await click(page, /^Without the search/);
    assert.ok((await readCount(page)) > 100);
    await openHash(page, "#/results?platform=Bow-2000&chip=C600");
    await page.getByText("No result has all of this").waitFor();
    await click(page, /^Without Chip: C600/);
    assert.ok((await readCount(page)) > 10);
  }));

test("an example of a run gets a verdict, and one with a slip another", () =>
  onPage("#/run", async (page) => {
    await page.getByRole("link", { name: /^ResNet-50 on an IPU-M2000/ }).click();
    assert.match(await page.locator(".judged").textContent(), /^plausible/);
    await openHash(page, "#/run");
    await page.getByRole("link", { name: /slip/ }).click();
    await page.locator(".judged.warning", { hasText: "in seconds" }).waitFor();
  }));

const checkFigure = async (page, text) => {
  await page.getByLabel("Find a figure, a model or a machine").fill(text);
  await click(page, "Find it");
  await page.locator(".count").waitFor();
};

test("visitor: was the 40× true?", () =>
  onPage("", async (page) => {
    await checkFigure(page, "40×");
    await page.getByRole("link", { name: "Search the claims as well" }).click();
    await page.locator(".claims > li", { hasText: "IPU-M2000 gives 40 times the throughput of one A100" }).first().waitFor();
    await openHash(page, "#/");
    await page.getByRole("link", { name: "The claim, recomputed" }).click();
    await page.locator(".claims .open .verdict").first().waitFor();
  }));

test("visitor: where was 46,174 printed?", () =>
  onPage("", async (page) => {
    await checkFigure(page, "46,174");
    assert.equal(await readCount(page), 1);
    await page.getByRole("button", { name: /^46,174/ }).click();
    await page.getByRole("dialog").locator(".printed", { hasText: "46,174" }).waitFor();
  }));

test("visitor: which machine is fastest on ResNet-50 within 5 ms, per chip?", () =>
  onPage("", async (page) => {
    await page.getByRole("link", { name: "And within 5 ms, per chip?" }).click();
    await tableRows(page).first().waitFor();
    await checkOneRanking(page, "inference, images/s");
    const latencies = await readFigures(page, LATENCY);
    assert.ok(latencies.length > 5 && latencies.every((latency) => latency <= 5));
    const perChip = await readFigures(page, THROUGHPUT);
    assert.deepEqual(perChip, [...perChip].sort((left, right) => right - left));
    await page.locator("button.figure[aria-label*='per chip of']").first().click();
    assert.match(await page.getByRole("dialog").textContent(), /Computed: [\d,.]+ images\/s ÷ \d+ chips/);
  }));

test("a row of a sparse network is marked", () =>
  onPage("#/results?platform=S30", async (page) => {
    await tableRows(page).first().waitFor();
    const expected = await page.evaluate(() => {
      const { columns } = window.__data.results.results;
      const find = (name) => columns.find((column) => column.name === name);
      const [platform, sparsity] = [find("platform"), find("sparsity")];
      return sparsity ? platform.codes.filter((code, row) => platform.words[code] === "S30" && sparsity.values[row] !== null).length : 0;
    });
    assert.equal(await page.getByText("sparse", { exact: true }).count(), expected);
  }));

test("visitor: what is doubtful about Yolo v4?", () =>
  onPage("", async (page) => {
    await page.getByRole("link", { name: "What is doubtful about Yolo v4?" }).click();
    await page.locator(".flag-error").first().waitFor();
    const texts = await tableRows(page).allTextContents();
    for (const text of texts) assert.match(text, /Yolo v4/);
    const flagged = texts.map((text) => /R\d\d/.test(text));
    const count = flagged.filter(Boolean).length;
    assert.ok(count >= 5);
    assert.ok(flagged.slice(0, count).every(Boolean)); // before those that nothing is wrong with
  }));

test("visitor: download the A100 rows, all of them and exact", () =>
  onPage("", async (page) => {
    await checkFigure(page, "A100 NVIDIA");
    const count = await readCount(page);
    const lines = String(await download(page, "Download these results as CSV")).trimEnd().split("\r\n");
    assert.equal(lines.length, count + 1);
    const [head, ...rows] = lines.map((line) => line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).map((cell) => cell.replace(/,$/, "")));
    const at = (name) => head.indexOf(name);
    const expected = await page.evaluate(() => {
      const { columns } = window.__data.results.results;
      const ids = columns.find(({ name }) => name === "result_id").words;
      return Object.fromEntries(columns.find(({ name }) => name === "throughput").values.map((value, row) => [ids[row], String(value ?? "")]));
    });
    for (const row of rows) assert.equal(row[at("throughput")], expected[row[at("result_id")]]);
  }));

test("search finds figures, aliases and units", () =>
  onPage("#/results", async (page) => {
    const search = async (text) => {
      await page.getByLabel("Search the results").fill(text);
      await page.waitForFunction((q) => new URLSearchParams(location.hash.split("?")[1]).get("q") === q, text);
      return readCount(page);
    };
    assert.equal(await search("9297"), await search("9,297"));
    assert.ok((await search("9,297")) >= 1);
    assert.match(await tableRows(page).first().textContent(), /9,297/);
    assert.equal(await search("20.654"), 1); // minutes that are rounded to it
    const total = await page.evaluate(() => {
      const find = (key) => window.__data.results.results.columns.find((candidate) => candidate.name === key);
      const usable = find("usable");
      const isUsable = (row) => usable.words[usable.codes[row]] === "true";
      const count = (name, word) => find(name).codes.filter((code, row) => find(name).words[code] === word && isUsable(row)).length;
      return [count("platform", "Bow-2000"), count("processor", "GPU"), count("item", "sequence")];
    });
    assert.equal(await search("bow2000"), total[0]);
    assert.equal(await search("sequences/s"), total[2]);
    assert.ok((await search("GPU")) >= total[1]);
    assert.ok(total[1] > 1000);
  }));

test("throughput per chip, watt and dollar is blank where it is unknown, never 0", () =>
  onPage("#/results?sort=-throughput", async (page) => {
    for (const per of ["chip", "watt", "dollar"]) {
      await page.locator(".bar select").selectOption(per);
      await waitForHash(page, `per=${per}`);
      const shown = (await readFigures(page, THROUGHPUT)).filter((value) => !Number.isNaN(value));
      assert.ok(shown.length > 0 && shown.every((value) => value > 0), per);
    }
    const counts = await page.evaluate(() => {
      const find = (key) => window.__data.results.results.columns.find((candidate) => candidate.name === key).values;
      return ["throughput_per_chip", "efficiency"].map((name) => [find(name).filter((value) => value === null).length, find(name).filter((value) => value === 0).length]);
    });
    for (const [blank, zero] of counts) assert.ok(blank > 1000 && zero === 0);
  }));

test("a figure's citation and report name it", () =>
  onPage("#/results?q=46174", async (page) => {
    await page.getByRole("button", { name: /^46,174/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cite", exact: true }).click();
    const text = await page.getByLabel("BibTeX").inputValue();
    const id = await page.evaluate(() => /show=(r[0-9a-f]+)/.exec(location.hash)[1]);
    for (const part of [id, "46,174 items/sec", "Graphcore", "@misc{ipu-results,", "build"]) assert.ok(text.includes(part), part);
    const footnote = await page.getByLabel("Footnote").inputValue();
    for (const part of [id, "46,174 items/sec", "Graphcore, “"]) assert.ok(footnote.includes(part), part);
    const report = new URL(await page.getByRole("link", { name: "Report a wrong figure" }).getAttribute("href"));
    assert.ok(report.pathname.endsWith("/issues/new") && report.searchParams.get("body").includes(id));
  }));

/** The pairs on the page of a comparison, with the rows of the data behind them. */
async function readPairs(page) {
  await page.locator(".compare .figure").first().waitFor();
  return page.evaluate(() => {
    const { columns } = window.__data.results.results;
    const read = (name, row) => {
      const column = columns.find((candidate) => candidate.name === name);
      return column.kind === "number" ? column.values[row] : (column.words[column.codes[row]] ?? null);
    };
    const NAMES = ["platform", "sdk_version", "task", "model", "phase", "item", "latency_basis", "origin", "batch_size", "usable", "throughput", "latency_ms", "time_to_train_s"];
    const ids = columns.find(({ name }) => name === "result_id").words;
    return [...document.querySelectorAll(".compare tbody tr")].map((line) => {
      const rows = [...line.querySelectorAll(".figure")].map((figure) => {
        figure.click();
        const [id, measure] = new URLSearchParams(location.hash.split("?")[1]).get("show").split(".");
        const row = ids.indexOf(id);
        return { measure, ...Object.fromEntries(NAMES.map((name) => [name, read(name, row)])) };
      });
      return { rows, ratio: Number.parseFloat(line.querySelector("td:nth-child(5)").textContent.replace(/^[^\d]*/, "")) };
    });
  });
}

const COLUMN = { minutes: "time_to_train_s" }; // what a computed figure is of

test("a comparison pairs only what may be compared, and its address restores it", async () => {
  for (const [hash, side] of [
    ["#/compare?a=Bow+Pod16&b=8x+A100-40GB+(DGX+A100)", "platform"],
    ["#/compare?a=Bow-2000&b=IPU-M2000", "platform"],
    ["#/compare?by=sdk_version&a=3.3&b=3.0", "sdk_version"],
  ])
    await onPage(hash, async (page) => {
      const names = [...new URLSearchParams(hash.split("?")[1]).entries()].filter(([key]) => key !== "by").map(([, name]) => name);
      const pairs = await readPairs(page);
      assert.ok(pairs.length > 2, hash);
      for (const { rows: [left, right], ratio } of pairs) {
        assert.deepEqual([left[side], right[side]], names);
        for (const name of ["measure", "task", "model", "phase"]) assert.equal(left[name], right[name], name);
        if (left.measure === "throughput") assert.equal(left.item, right.item);
        if (left.measure === "latency_ms") {
          assert.deepEqual([left.latency_basis, left.batch_size], [right.latency_basis, right.batch_size]);
          assert.notEqual(left.latency_basis, "per-item");
        }
        for (const row of [left, right]) assert.ok(row.origin !== "emulated" && row.usable === "true" && row[COLUMN[row.measure] ?? row.measure] !== null);
        const exact = left.measure === "throughput" ? left.throughput / right.throughput : right[COLUMN[left.measure] ?? left.measure] / left[COLUMN[left.measure] ?? left.measure];
        assert.ok(Math.abs(ratio / exact - 1) < 0.006, `${ratio} ${exact}`);
        if (side === "sdk_version") assert.equal(left.platform, right.platform);
      }
    });
});

test("machines that share nothing are not compared", () =>
  onPage("#/compare?a=C2&b=tinybox+red", async (page) => {
    await page.getByText("C2 and tinybox red share no test that may be compared").waitFor();
    assert.equal(await page.locator(".compare .figure").count(), 0);
  }));

test("where two machines share no test of a network, the condition that fails is named with both values", () =>
  onPage("#/compare?a=Bow-2000&b=1x+A100-40GB&model=ResNet-50+v1.5", async (page) => {
    await page.getByText("no row of ResNet-50 v1.5 on 1x A100-40GB.").waitFor();
    await page.getByRole("link", { name: "1x A100-40GB (DGX A100)" }).click();
    await page.locator(".compare .figure").first().waitFor();
    await openHash(page, "#/compare?a=IPU&b=1x+A100-40GB&model=BERT-Large");
    await page.getByText(/BERT-Large: latency: .*what the latency times is several-in-flight \/ per-batch/).waitFor();
  }));

// The five tasks with which visitors come: one search, or three clicks at most.

test("visitor: fastest ResNet-50 under 2 ms: measured, dense, each measurement once, the division of MLPerf shown", () =>
  onPage("", async (page) => {
    await page.getByRole("link", { name: "Which machine is fastest on ResNet-50 within 2 ms?" }).click();
    await tableRows(page).first().waitFor();
    assert.ok(!(await readOrigins(page)).some((text) => /EMULATED/.test(text)));
    const latencies = await readFigures(page, LATENCY);
    assert.ok(latencies.length > 3 && latencies.every((latency) => latency <= 2));
    await page.getByText("Left out as not usable").waitFor();
    await openHash(page, "#/results?q=mlperf&sort=minutes");
    await tableRows(page).filter({ hasText: /MLPerf \d\.\d (closed|open)/ }).first().waitFor();
  }));

test("visitor: Bow-2000 against A100 on BERT-Large, with batch sizes and what differs", () =>
  onPage("", async (page) => {
    await page.getByRole("link", { name: "Bow-2000 against A100, BERT-Large" }).click();
    const pairs = await readPairs(page);
    assert.deepEqual(pairs.map(({ rows: [left, right] }) => [left.batch_size, left.latency_ms, right.latency_ms]), [
      [4, 1.36, 3.36], [8, 1.94, 4.95], [12, 2.56, 6.38], [16, 3.01, 8.43],
    ]);
    await page.getByText("Bow-2000 is faster in 4 of 4 tests, 4 chips against 1 chip").waitFor();
    for (const text of await page.locator(".compare tbody tr").allTextContents()) assert.match(text, /chips 4 \/ 1.*latency timed on host \/ device/s);
  }));

test("visitor: who is faster, how sure, and the MLPerf times that say otherwise", () =>
  onPage("#/compare?a=Bow+Pod16&b=8x+A100-40GB+(DGX+A100)&model=BERT-Large", async (page) => {
    const pairs = await readPairs(page);
    const ratios = pairs.map(({ ratio }) => ratio).sort((one, other) => one - other);
    const text = await page.locator(".compare > p").first().textContent();
    assert.match(text, new RegExp(`Bow Pod16 is faster in ${ratios.filter((ratio) => ratio > 1).length} of ${ratios.length} tests`));
    assert.match(text, /4 are by the makers of the chips.*conditions differ/);
    await page.keyboard.press("Escape");
    await openHash(page, "#/compare?a=Bow+Pod16&b=8x+A100-40GB+(DGX+A100)&model=BERT-Large");
    const link = page.getByRole("link", { name: /^Bow Pod16 is [\d.]+× as fast as dgxa100/ });
    const [, claimed] = /is ([\d.]+)×/.exec(await link.textContent());
    await link.click();
    await page.getByRole("heading", { name: /^Bow Pod16 against dgxa100/ }).waitFor();
    const [{ rows: [own, other], ratio }] = await readPairs(page);
    assert.equal(own.measure, "minutes");
    assert.ok(Number(claimed) === ratio && Math.abs(other.time_to_train_s / own.time_to_train_s / ratio - 1) < 0.006);
  }));

test("visitor: who else measured this, in the panel of a figure", async () => {
  let pair;
  await onPage("#/results", async (page) => {
    await tableRows(page).first().waitFor();
    await page.evaluate(() => new Promise((resolve) => {
      const script = Object.assign(document.createElement("script"), { src: "data/replications.js", onload: resolve });
      document.head.append(script);
    }));
    pair = await page.evaluate(() => {
      const { rows, columns } = window.__data.replications;
      const read = (name, row) => {
        const column = columns.find((candidate) => candidate.name === name);
        const stored = column.values ?? column.codes ?? column.words.map((_, at) => at);
        const values = column.runs ? stored.flatMap((value, at) => Array(column.runs[at]).fill(value)) : stored;
        return column.kind === "number" ? values[row] : column.words[values[row]];
      };
      const row = Array.from({ length: rows }, (_, at) => at).find((at) => read("counts", at) === "true" && read("measure", at) === "throughput");
      return Object.fromEntries(["first_result_id", "second_publisher", "ratio"].map((name) => [name, read(name, row)]));
    });
  });
  await onPage(`#/results?q=${pair.first_result_id}`, async (page) => {
    await page.locator("button.figure[aria-label*='throughput of']").first().click();
    const panel = page.getByRole("dialog");
    await panel.locator(".others li").first().waitFor();
    const text = (await panel.locator(".others li").allTextContents()).join("\n");
    assert.ok(text.includes(pair.second_publisher) && text.includes(`${Number(pair.ratio.toPrecision(3))}×`), text);
  });
});

test("a figure is found with its unit", () =>
  onPage("#/results", async (page) => {
    const search = async (text) => {
      await page.getByLabel("Search the results").fill(text);
      await nextFrames(page);
    };
    await search("0.58 ms");
    assert.ok((await readCount(page)) >= 1);
    for (const latency of await readFigures(page, LATENCY)) assert.equal(Math.round(latency * 100) / 100, 0.58);
    await search("46,174 images/s");
    assert.equal(await readCount(page), 1);
  }));

test("a panel that was closed is not opened by Back", () =>
  onPage("#/results?q=46174", async (page) => {
    await page.getByRole("button", { name: /^46,174/ }).click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !location.hash.includes("show="));
    await page.goBack();
    await page.waitForTimeout(200);
    assert.equal(await page.getByRole("dialog").count(), 0);
  }));

test("an unknown view says so, and titles name the view", () =>
  onPage("#/nowhere", async (page) => {
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    const titles = new Set();
    for (const hash of ["#/", "#/results", "#/results?model=ResNet-50+v1.5", "#/results?q=bow", "#/compare", "#/charts/scaling", "#/claims", "#/sql", "#/nowhere"]) {
      await openHash(page, hash);
      await page.locator("main h2").first().waitFor();
      await page.waitForTimeout(500);
      titles.add(await page.title());
    }
    assert.equal(titles.size, 9, [...titles].join("; "));
  }));

test("a code explains itself on a touch", () =>
  onPage("#/results?q=46174", async (page) => {
    await page.locator(".flag-marks button").first().tap();
    assert.match(await page.locator("body > .tip[role=status]").textContent(), /^(Error|Warning|Remark) R\d\d: \w+ \w+/);
  }, { hasTouch: true }));

test("on a phone, a chart starts in the first screen", () =>
  onPage("#/charts/generations", async (page) => {
    await page.locator(".chart canvas").waitFor();
    const { y } = await page.locator(".chart").boundingBox();
    assert.ok(y < 760, `${y}`);
  }, { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }));

test("no name of a framework or network breaks inside a word, at any width", () =>
  onPage("#/results?framework=TensorFlow1", async (page) => {
    for (const width of [390, 844, 1024, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      await page.locator("button.figure").first().waitFor();
      await nextFrames(page);
      const broken = await page.evaluate(() => {
        const words = document.createTreeWalker(document.querySelector(".scroll tbody"), NodeFilter.SHOW_TEXT);
        const found = [];
        for (let text; (text = words.nextNode()); )
          for (const { 0: word, index } of text.data.matchAll(/TensorFlow1|ResNeXt101/g)) {
            const range = new Range();
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            found.push(new Set([...range.getClientRects()].map(({ top }) => top)).size);
          }
        return found;
      });
      assert.ok(broken.length > 5 && Math.max(...broken) === 1, `${width}: ${broken}`);
    }
  }));

test("the start page takes at most 150 kB over the wire, as most hosts pack it", async () => {
  const packed = await serve(DIST, {}, true);
  const measure = async (page) => {
    const session = await page.context().newCDPSession(page);
    await session.send("Network.enable");
    await session.send("Network.setCacheDisabled", { cacheDisabled: true });
    let bytes = 0;
    session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
    await page.reload();
    await page.locator(".finding").first().waitFor();
    assert.ok(bytes > 10_000 && bytes <= 150_000, `${bytes}`);
  };
  await onPage("", measure, { address: packed.address }).finally(packed.close);
});

test("claims are shown in parts", () =>
  onPage("#/claims", async (page) => {
    await page.locator(".claims > li").first().waitFor();
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    assert.ok(height < 8000, `${height}`);
    const before = await page.locator("ol.claims > li").count();
    await page.getByRole("button", { name: /^Show 12 more/ }).click();
    assert.equal(await page.locator("ol.claims > li").count(), before + 12);
  }));

test("downloads name rows and sizes, in two formats and all in one", () =>
  onPage("downloads.html", async (page) => {
    const text = await page.locator("main, body").first().textContent();
    assert.match(text, /results\d,\d{3}.*measurements view.*build/s); // results, then views, then the other tables
    assert.ok(!text.includes("`"));
    for (const name of ["results", "measurements"]) await page.locator(`a[href$="csv/${name}.csv"]`).waitFor();
    for (const kind of ["parquet", "csv"]) {
      const response = await page.request.get(new URL(`data/ipu-results-${kind}.zip`, page.url()).href);
      assert.ok(response.ok());
    }
  }));

test("a link restores the whole state of the view", () =>
  onPage("#/results?q=resnext&platform=C2&origin=published&sort=-throughput&show=", async (page) => {
    assert.equal(await page.getByLabel("Search the results").inputValue(), "resnext");
    assert.equal(await readCount(page), 6);
    assert.ok(await page.getByRole("group", { name: "Platform" }).locator("label.value", { hasText: "C2" }).first().locator("input").isChecked());
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
    await panel.getByText("How R01 finds it").first().click();
    await panel.getByRole("link", { name: "Run it in the SQL box" }).first().click();
    await page.keyboard.press("Escape");
    await click(page, "Run");
    await waitForResult(page);
    assert.deepEqual([await readCount(page), await page.locator(".problem").count()], [93, 0]);
  }));

test("an MLPerf row shows its conversion, its official entry and the log files", () =>
  onPage("#/results?q=2.0-2047&origin=published", async (page) => {
    await page.getByRole("button", { name: /minutes of ResNet-50/ }).click();
    const panel = page.getByRole("dialog");
    await panel.getByText("The official entry of this id").waitFor();
    await panel.getByText("as printed").first().waitFor();
    const text = await panel.textContent();
    assert.ok(text.includes("19.64 × 60 = 1,178.4"), text);
    assert.match(text, /5 log files/);
    const log = panel.locator('a[href*="result_0.txt"]');
    assert.match(await log.getAttribute("href"), /^https:\/\/github\.com\/mlcommons\/training_results_v2\.0\//);
    await panel.getByRole("heading", { name: "Claims that use it" }).waitFor();
  }));

test("a drawn chart moves nothing that was in view, and its numbers are made when they are opened", () =>
  onPage("#/claims", async (page) => {
    await page.evaluate(() => {
      window.moved = 0;
      new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => (window.moved += value))).observe({ type: "layout-shift" });
      location.hash = "#/charts/latency_bounded";
    });
    await page.locator(".chart canvas").waitFor();
    await nextFrames(page);
    assert.equal(await page.locator(".numbers table").count(), 0);
    const moved = await page.evaluate(() => window.moved);
    assert.ok(moved < 0.1, `${moved}`);
  }));

test("each analysis is drawn, with a link to its rows", () =>
  onPage("#/charts", async (page) => {
    const links = page.locator(".questions a");
    await links.first().waitFor();
    const count = await page.evaluate(() => window.__data.charts.length);
    assert.equal(await links.count(), count + 1); // and the ranking
    for (let index = 0; index < count; index += 1) {
      await links.nth(index).click();
      await page.locator(".chart canvas").waitFor();
      assert.ok((await page.locator(".answer h2").textContent()).length > 40);
      assert.ok((await page.locator(".caveats li").count()) > 0);
    }
    await openHash(page, "#/charts/resnext101");
    await page.getByRole("heading", { name: /ResNeXt101/ }).waitFor();
    await page.getByRole("link", { name: /rows in the table/ }).click();
    await tableRows(page).first().waitFor();
    const { all, usable } = await page.evaluate(() => {
      const { words, codes } = window.__data.results.results.columns.find(({ name }) => name === "usable");
      const rows = window.__data.results.sets.resnext101;
      return { all: rows.length, usable: rows.filter((row) => words[codes[row]] === "true").length };
    });
    assert.equal(await readCount(page), usable);
    assert.ok(all > usable && usable > 30);
  }));

test("claims are filtered by verdict, and a linked claim is shown in addition", () =>
  onPage("#/claims", async (page) => {
    const linked = await page.locator("ol.claims > li:not(:has(.verdict-contradicted))").first().locator(".self").textContent();
    await page.locator(".verdicts button", { hasText: "contradicted" }).click();
    await waitForHash(page, "verdict=contradicted");
    const contradicted = await page.evaluate(() => {
      const { words, codes } = window.__data.claims.claims.columns.find(({ name }) => name === "verdict");
      return codes.filter((code) => words[code] === "contradicted").length;
    });
    assert.equal(await readCount(page), contradicted);
    assert.ok((await page.locator(".arithmetic code").count()) >= contradicted);
    await openHash(page, `#/claims/${linked}?verdict=contradicted`);
    await page.locator(`#claim-${linked}.open`).waitFor();
    assert.equal(await readCount(page), contradicted);
    assert.equal(await page.locator("ol.claims > li").count(), contradicted + 1);
    await openHash(page, "#/claims/none-such");
    await page.getByRole("alert").getByText("There is no claim none-such").waitFor();
  }));

test("claims and logs that cannot be loaded are reported, not shown as empty", () =>
  onBrokenSite({ "/data/claims.js": "", "/data/mlperf.js": "" }, "#/results?q=2.0-2047&origin=published", async (page) => {
    await page.getByRole("button", { name: /minutes of ResNet-50/ }).click();
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
      await page.emulateMedia({ colorScheme: time % 2 ? "light" : "dark" });
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
  }));

test("SQL runs over the Parquet files, its result downloads, and no query reaches another host", () =>
  onPage("#/sql", async (page) => {
    await runQuery(page, "SELECT origin, count(*) AS n FROM results GROUP BY 1 ORDER BY 2 DESC");
    assert.match(await page.locator(".query-box table.plain").textContent(), /published\d{3}/);
    assert.match(String(await download(page, "CSV")), /^origin,n\r\n(.*\r\n)*published,\d+\r\n/);
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

test("opened from disk, all views work but comparisons and SQL, which say what they need", () =>
  onPage("#/results?q=qwant", async (page) => {
    assert.equal(await readCount(page), 6);
    await page.locator("button.figure").nth(1).click();
    await page.getByRole("dialog").getByText("as printed").first().waitFor();
    await page.keyboard.press("Escape");
    for (const [view, content] of [["Charts", ".chart canvas"], ["Claims", ".arithmetic"], ["SQL", ".warning"]]) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await page.locator(content).first().waitFor();
    }
    assert.ok(await page.getByRole("button", { name: "Run" }).isDisabled());
    for (const view of ["SQL", "Compare", "Your run"]) {
      await page.getByRole("link", { name: view, exact: true }).click();
      await page.getByText("Serve the folder over http").waitFor();
    }
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

test("the keyboard alone opens the source of a figure", () =>
  onPage("#/results?q=qwant", async (page) => {
    await page.locator("button.figure").first().waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), "Skip to the rows");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement.className), "scroll");
    await page.locator("button.figure").first().press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.waitForFunction(() => !location.hash.includes("show="));
  }));
