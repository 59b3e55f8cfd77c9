// What the page says of runs, as JSON: `node verdicts.mjs < RUNS.json`. Needs `make site`.
import { launch, open } from "./browser.mjs";
import { serve } from "./server.mjs";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const runs = JSON.parse(Buffer.concat(chunks).toString());
const [browser, site] = await Promise.all([launch(), serve()]);
const { page } = await open(browser, `${site.address}#/run`);
const readTexts = (selector) => page.locator(selector).allTextContents();
const VERDICT = ".judged, .own-run [role=alert]";
const answers = [];
for (const run of runs) {
  for (const [hash, state] of [["#/run", "detached"], [`#/run?${new URLSearchParams(run)}`, "visible"]]) {
    await page.evaluate((to) => (location.hash = to), hash);
    await page.locator(VERDICT).waitFor({ state, timeout: 60_000 });
  }
  const [verdict] = await readTexts(VERDICT);
  answers.push({ verdict, checks: await readTexts(".checks li"), refusals: await readTexts(".refusals li"), ratios: await readTexts("td strong") });
}
await Promise.all([browser.close(), site.close()]);
process.stdout.write(JSON.stringify(answers));
