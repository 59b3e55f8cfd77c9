// The built site in a browser, for the tests of a file. Needs `dist` with data and pages: `make site`.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { launch, newContext, open } from "./browser.mjs";
import { serve } from "./server.mjs";

let browser;
let site;
let usual; // the context of pages without options: what one loads is in the cache of the next

before(async () => {
  [browser, site] = await Promise.all([launch(), serve()]);
  usual = await newContext(browser);
});
after(async () => {
  await browser?.close();
  await site?.close();
});

/** Opens a page of the site, or of another address. */
export function openPage(path, { address = site.address, ...options } = {}) {
  const own = Object.keys(options).length > 0;
  return open(browser, `${address}${path}`, own ? options : { context: usual });
}

/** Runs steps on a page, and asserts that it reported no problem and made no request to another host. */
export async function onPage(path, run, options) {
  const opened = await openPage(path, options);
  await run(opened.page, opened);
  assert.deepEqual(opened.problems, []);
  assert.deepEqual(opened.external, []);
  await opened.close();
}
