// Headless Chromium that records the errors and the third-party requests of a page.
import packaged from "@sparticuz/chromium";
import { chromium } from "playwright-core";

/** Launches the browser that CHROMIUM names, else the one that came with the Node packages. */
export async function launch() {
  const executablePath = process.env.CHROMIUM ?? (await packaged.executablePath());
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

/** Opens a page in its own context. `problems` are its errors, `external` its requests to another host (aborted). */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const problems = [];
  const external = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  const home = new URL(address).host;
  await context.route(/^https?:/, (route) => {
    if (new URL(route.request().url()).host === home) return route.continue();
    external.push(route.request().url());
    return route.abort();
  });
  await page.goto(address);
  return { context, page, problems, external };
}
