// Headless Chromium that records the errors and the third-party requests of a page.
import packaged from "@sparticuz/chromium";
import { chromium } from "playwright-core";

/** Launches the browser that CHROMIUM names, else the one that came with the Node packages. */
export async function launch() {
  const executablePath = process.env.CHROMIUM ?? (await packaged.executablePath());
  // No other host is found. A route for all requests would do the same, but turns the cache off.
  const args = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"];
  return chromium.launch({ executablePath, args });
}

const DESKTOP = { viewport: { width: 1400, height: 900 } };

/** Makes a context, which has a cache of its own. */
export function newContext(browser, options = {}) {
  return browser.newContext({ ...DESKTOP, ...options });
}

/**
 * Opens a page in a context of its own, or in the one of `options`. `problems` are its errors, `external` its requests
 * to another host, which fail.
 */
export async function open(browser, address, { context: shared, ...options } = {}) {
  const context = shared ?? (await newContext(browser, options));
  const page = await context.newPage();
  const problems = [];
  const external = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  const home = new URL(address).host;
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol.startsWith("http") && host !== home) external.push(request.url());
  });
  await page.goto(address);
  const close = () => (shared ? page.close() : context.close());
  return { context, page, problems, external, close };
}
