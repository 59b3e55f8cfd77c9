// Builds three classic scripts: the page, and the charts and the SQL engine, each loaded on demand.
// Usage: node build.mjs [FOLDER], `dist` by default.
import { copyFile, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { gzipSync } from "node:zlib";
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

// The palette is shared with the pipeline. A script holds the tables that it names.
const formatModule = (tables) => Object.entries(tables).map(([name, table]) => `export const ${name} = ${JSON.stringify(table)};`).join("\n");
const tomlImports = {
  name: "toml-imports",
  transform: (code, id) => (id.endsWith(".toml") ? formatModule(parse(code)) : null),
};

async function bundle(name, entry, first) {
  await build({
    configFile: false,
    logLevel: "warn",
    publicDir: first ? "public" : false,
    plugins: [withoutModuleAddress, tomlImports],
    define: { "process.env.NODE_ENV": '"production"', ...sizes },
    build: {
      target: "es2022",
      outDir: OUT,
      emptyOutDir: false,
      lib: { entry, formats: ["iife"], name: `__${name}`, fileName: () => `${name}.js`, cssFileName: name },
      chunkSizeWarningLimit: 2000,
    },
  });
}

/** Sums the sizes of what the first query loads, in MB, as served and as packed by most static hosts. */
async function weighEngine() {
  const contents = await Promise.all([`${OUT}/engine.js`, ...Object.values(VENDORED)].map((path) => readFile(path)));
  const sum = (bytes) => String(Math.round(contents.map(bytes).reduce((total, size) => total + size, 0) / 1e6));
  return { ENGINE_MB: sum((content) => content.length), ENGINE_PACKED_MB: sum((content) => gzipSync(content).length) };
}

const sizes = {};
await bundle("engine", "src/engine.ts", false);
Object.assign(sizes, await weighEngine());
await bundle("app", "src/main.tsx", true);
await bundle("vega", "src/vega.ts", false);
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

// What a browser without scripts shows; the pipeline writes it with the data.
const HOME = `${OUT}/data/noscript.html`;
const EMPTY = /<noscript>.*?<\/noscript>/s;
if (await stat(HOME).catch(() => null)) {
  const [page, home] = await Promise.all([readFile(`${OUT}/index.html`, "utf8"), readFile(HOME, "utf8")]);
  await writeFile(`${OUT}/index.html`, page.replace(EMPTY, () => `<noscript>${home}</noscript>`));
}
