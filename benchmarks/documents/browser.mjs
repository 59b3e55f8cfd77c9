// Renders pages that arrive on stdin, one JSON text a line, and prints for each what its tables show: the place of every
// character of every cell, and two pictures of the page, with its text and without, which differ by its ink.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../../site/package.json", import.meta.url));
const { chromium } = require("playwright-core");

const NO_TEXT = `*, *::before, *::after, *::marker { color: transparent !important; text-shadow: none !important;
  -webkit-text-fill-color: transparent !important; -webkit-text-stroke-color: transparent !important;
  text-decoration-color: transparent !important; text-emphasis-color: transparent !important; }`;

function measure() {
  const apart = /^(inline-(block|flex|grid|table)|none)$/;
  const isStruck = (node) => {
    for (let at = node.parentElement; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      const line = style.textDecorationLine.includes("line-through");
      if (line && !/^rgba.*, 0\)$|\/ 0\)$/.test(style.textDecorationColor)) return true;
      if (apart.test(style.display) || style.float !== "none" || /absolute|fixed/.test(style.position)) return false;
    }
    return false;
  };
  const readCell = (cell) => {
    const box = cell.getBoundingClientRect();
    const chars = [];
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const struck = isStruck(node);
      if (!node.parentElement.checkVisibility({ visibilityProperty: true })) continue;
      if (getComputedStyle(node.parentElement).contentVisibility === "hidden") continue;
      const range = document.createRange();
      for (let at = 0; at < node.length; at++) {
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        for (const rect of [...range.getClientRects()].slice(-1))
          chars.push([node.data[at], rect.x + scrollX, rect.y + scrollY, rect.width, rect.height, struck]);
      }
    }
    return { box: [box.x + scrollX, box.y + scrollY, box.width, box.height], chars };
  };
  return [...document.querySelectorAll("table")].map((table) =>
    [...table.rows].map((row) => [...row.cells].map(readCell)),
  );
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, javaScriptEnabled: true });
await context.route(/^https?:/, (route) => route.abort());
const page = await context.newPage();
for await (const line of createInterface({ input: process.stdin })) {
  await page.goto("about:blank");
  await page.setContent(JSON.parse(line), { waitUntil: "load" });
  await page.waitForTimeout(20);
  const tables = await page.evaluate(measure);
  const pictures = [(await page.screenshot({ fullPage: true })).toString("base64")];
  // Adopted, so that no selector of the page counts an element more.
  await page.evaluate((text) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(text);
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  }, NO_TEXT);
  pictures.push((await page.screenshot({ fullPage: true })).toString("base64"));
  console.log(JSON.stringify({ tables, pictures }));
}
await browser.close();
