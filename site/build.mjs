// Builds four classic scripts: the page, and the documentation, the charts and the SQL engine that it loads on demand.
// Usage: node build.mjs [FOLDER], `dist` by default.
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { parse } from "smol-toml";
import { build } from "vite";

const OUT = process.argv[2] ?? "dist";
const DUCKDB = "node_modules/@duckdb/duckdb-wasm/dist";
const VENDORED = {
  "duckdb-eh.wasm": `${DUCKDB}/duckdb-eh.wasm`,
  "duckdb-browser-eh.worker.js": `${DUCKDB}/duckdb-browser-eh.worker.js`,
  "parquet_wasm_bg.wasm": "node_modules/parquet-wasm/esm/parquet_wasm_bg.wasm",
};

// parquet-wasm locates its binary relative to its module. A classic script has no module address and passes the path itself.
const withoutModuleAddress = {
  name: "without-module-address",
  transform: (code, id) =>
    id.includes("parquet_wasm.js") ? code.replace(/new URL\([^)]*import\.meta\.url\)/g, "undefined") : null,
};

// The palette is shared with the pipeline.
const tomlImports = {
  name: "toml-imports",
  transform: (code, id) => (id.endsWith(".toml") ? `export default ${JSON.stringify(parse(code))}` : null),
};

async function bundle(name, entry, first) {
  await build({
    configFile: false,
    logLevel: "warn",
    publicDir: first ? "public" : false,
    plugins: [withoutModuleAddress, tomlImports],
    define: { "process.env.NODE_ENV": '"production"' },
    build: {
      target: "es2022",
      outDir: OUT,
      emptyOutDir: false,
      lib: { entry, formats: ["iife"], name: `__${name}`, fileName: () => `${name}.js`, cssFileName: name },
      chunkSizeWarningLimit: 2000,
    },
  });
}

await bundle("app", "src/main.tsx", true);
await bundle("pages", "src/pages.ts", false);
await bundle("vega", "src/vega.ts", false);
await bundle("engine", "src/engine.ts", false);
await mkdir(`${OUT}/vendor`, { recursive: true });
for (const [name, path] of Object.entries(VENDORED)) await copyFile(path, `${OUT}/vendor/${name}`);

/** Collects the licences of the packages shipped. */
async function collectLicences() {
  const lock = JSON.parse(await readFile("package-lock.json", "utf8"));
  const shipped = Object.entries(lock.packages).filter(([path, entry]) => path && !entry.dev && !entry.optional);
  const notices = shipped.map(async ([path, { version, license }]) => {
    const files = (await readdir(path)).filter((name) => /^(licen[cs]e|notice)/i.test(name));
    const texts = await Promise.all(files.map((name) => readFile(`${path}/${name}`, "utf8")));
    return [`${path.split("node_modules/").pop()} ${version}: ${license}`, ...texts].join("\n\n");
  });
  return (await Promise.all(notices)).join(`\n\n${"-".repeat(80)}\n\n`);
}

await writeFile(`${OUT}/third-party.txt`, await collectLicences());
