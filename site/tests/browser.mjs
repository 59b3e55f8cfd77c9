// Headless Chromium, with what a page did wrong written down.
import { chromium } from "playwright-core";

export const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

export function launch() {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
}

/** A page of its own; `problems` are errors and refusals of the policy, `elsewhere` requests to any other host. */
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const problems = [];
  const elsewhere = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(error.message));
  const home = new URL(address).host;
  await context.route(/^https?:/, (route) => {
    if (new URL(route.request().url()).host === home) return route.continue();
    elsewhere.push(route.request().url());
    return route.abort();
  });
  await page.goto(address);
  return { context, page, problems, elsewhere };
}
