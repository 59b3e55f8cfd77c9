// Draws the picture of docs/explanation/site.md, docs/page.png: a comparison of two machines. Usage: node picture.mjs, after `make site`.
import { fileURLToPath } from "node:url";
import { launch, open } from "./tests/browser.mjs";
import { serve } from "./tests/server.mjs";

const site = await serve();
const browser = await launch();
const { page } = await open(browser, `${site.address}#/compare?a=Bow-2000&b=1x+A100-40GB&model=BERT-Large`, { viewport: { width: 1200, height: 590 } });
await page.locator(".compare .figure").first().waitFor();
await page.screenshot({ path: fileURLToPath(new URL("../docs/page.png", import.meta.url)) });
await browser.close();
await site.close();
