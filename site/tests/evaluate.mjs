// Runs functions of a module of the page on data, without a browser: `node evaluate.mjs MODULE.ts < CALLS.json`.
// Each call is the name of a function and its arguments; an Error is its message. Prints the list of what they returned.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";

const [module] = process.argv.slice(2);
const entry = fileURLToPath(new URL(`../src/${module}`, import.meta.url));
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { shared, calls } = JSON.parse(Buffer.concat(chunks).toString());
const config = { configFile: false, logLevel: "error", build: { write: false, target: "es2022", minify: false, lib: { entry, formats: ["es"] } } };
const [{ output }] = await build(config);
const folder = await mkdtemp(join(tmpdir(), "evaluate-"));
try {
  const path = join(folder, "module.mjs");
  await writeFile(path, output[0].code);
  const functions = await import(pathToFileURL(path));
  const answers = calls.map(([name, ...values]) => {
    try {
      return functions[name](shared, ...values);
    } catch (error) {
      return { error: error.message };
    }
  });
  process.stdout.write(JSON.stringify(answers));
} finally {
  await rm(folder, { recursive: true });
}
