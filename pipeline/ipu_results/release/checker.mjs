// Follow each certificate of a release to the bytes of its source: yes, or the first broken link.
// usage: node checker.mjs RELEASE RAW [ROOT [LOGS]]; docs/reference/certificates.md has the format.
// `main` alone needs Node.js, so that a page can import `readSource` and `follow`.

const KINDS = ["printed", "minutes", "recomputed", "finding", "relation"];
const STATING = ["results.csv", "figures.csv", "microbenchmarks.csv"];
const CELL = ["result_id", "cell_number"];
const ENTRY = ["round", "path"];
// What a certificate says, and the column that has it.
const OF_CELL = { column: "column_name", locator: "locator", value: "value", factor: "factor" };
const OF_DOCUMENT = { file: "file", sha256: "sha256" };
const OF_LOG = { file: "file", sha256: "sha256", counted: "counted", minutes: "minutes" };
const ROW = /(?:[^"\n]|"[^"]*")*(?:\n|$)/g;
const ROW_CELL = /,(?:"((?:[^"]|"")*)"|([^,]*))/g; // of a row with a comma in front
const HTML_CELL = /<t[dh]\b[^>]*>(.*?)<\/t[dh]>/gs;
const FIGURE = /^(-?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?)(?: \D.*)?$/;
const SHOWN = /\/F2 (\S+) Tf.*\n?.*BT 1 0 0 1 (\S+) (\S+) Tm \(((?:\\.|[^\\)])*)\) Tj/g;
const WORDS = new Map([[null, ""], [true, "True"], [false, "False"]]); // as a CSV file has them
const ABOVE_BASELINE = 0.783; // of the size of Times-Roman: the top of a box
const ROUNDED = 5e-12; // half a unit of the twelfth digit, which what we computed has
const MULTIPLIED = 1e-15; // what a product of doubles may be off

const decodeUtf8 = (bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes);
const decodeLatin = (bytes) => new TextDecoder("windows-1252").decode(bytes);

const nameRow = (values) => JSON.stringify(values.map(String));

function require(isSo, message) {
  if (!isSo) throw new Error(message);
}

function isClose(one, other, share) {
  return Math.abs(one - other) <= share * Math.max(Math.abs(one), Math.abs(other));
}

async function hash(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function readFigure(text) {
  const [, hours, minutes] = text.match(/^(\d+)h (\d+)m$/) ?? [];
  if (hours) return hours * 3600 + minutes * 60;
  return Number(text.match(FIGURE)[1].replaceAll(",", ""));
}

/** Returns the rows of a CSV file as they are written, without the line breaks between them. */
function splitRows(bytes) {
  const rows = decodeUtf8(bytes).match(ROW);
  rows.pop(); // the pattern matches once more at the end
  return rows.map((row) => row.replace(/\r?\n$/, ""));
}

/** Returns the cells of each row of a CSV file, and the number of its last line. */
function parseCsv(bytes) {
  let line = 0;
  return splitRows(bytes).map((row) => {
    line += row.split("\n").length;
    const cells = [...`,${row}`.matchAll(ROW_CELL)];
    return [cells.map(([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain), line];
  });
}

function listCells(place, header, row) {
  require(header.length === row.length, `${place} has ${row.length} cells, not ${header.length}`);
  return row.map((text, index) => {
    const name = `${place}, column ${index + 1} (${header[index]})`;
    return [name, text.trim().split(/\s+/).join(" ")];
  });
}

function readCsv(bytes) {
  const [[header], ...rows] = parseCsv(bytes);
  return rows.flatMap(([row, line]) => listCells(`line ${line}`, header, row));
}

function readHtml(bytes) {
  const page = decodeUtf8(bytes);
  const isPlain = !/rowspan|colspan|<!--|&/.test(page);
  require(isPlain, "a page with spans, comments or entities is not read");
  return [...page.matchAll(/<table.*?<\/table>/gs)].flatMap(([text], table) => {
    const rows = text.split("<tr").map((row) => [...row.matchAll(HTML_CELL)]);
    // before the first <tr> there is no row
    const [, header, ...body] = rows.map((row) => row.map(([, cell]) => cell));
    return body.flatMap((row, at) => listCells(`table ${table + 1}, row ${at + 1}`, header, row));
  });
}

function decode85(text) {
  const groups = text.replace(/\s/g, "").replaceAll("z", "!!!!!").match(/.{1,5}/g);
  const bytes = groups.flatMap((group) => {
    const digits = [...group.padEnd(5, "u")].map((digit) => digit.charCodeAt(0) - 33);
    const word = digits.reduce((sum, digit) => sum * 85 + digit);
    return [24, 16, 8, 0].map((shift) => (word >>> shift) & 255).slice(0, group.length - 1);
  });
  return new Uint8Array(bytes);
}

async function readPdf(bytes) {
  const file = decodeLatin(bytes);
  const heights = [...file.matchAll(/\/MediaBox \[ 0 0 \S+ (\S+) \]/g)];
  const streams = [...file.matchAll(/stream\r?\n(.*?)~>/gs)];
  require(heights.length === 1 && streams.length === 1, "a PDF file of several pages is not read");
  const [[, height]] = heights;
  const packed = new Blob([decode85(streams[0][1])]).stream();
  const shown = new Response(packed.pipeThrough(new DecompressionStream("deflate")));
  return [...decodeLatin(await shown.arrayBuffer()).matchAll(SHOWN)].map(([, size, x, y, text]) => {
    const top = height - y - ABOVE_BASELINE * size;
    const place = `page 1, box ${Number(x).toFixed(1)},${top.toFixed(1)}`;
    return [place, text.replace(/\\(.)/g, "$1").split(": ").at(-1)]; // without a label
  });
}

/** Reads the cells of a source whose bytes have the digest that a certificate states. */
export async function readSource(file, sha256, bytes) {
  require(bytes && (await hash(bytes)) === sha256, `${file} has other bytes`);
  const readers = { csv: readCsv, html: readHtml, pdf: readPdf };
  const texts = await readers[file.split(".").at(-1)](bytes);
  const cells = new Map(texts);
  require(cells.size === texts.length, `${file} has two texts at one place`);
  return cells;
}

/** Follows a printed figure to its text in the cells of its source. Throws for a broken link. */
export function follow(line, cells) {
  const text = cells.get(line.locator.replace(/(box [\d.]+,[\d.]+).*/, "$1"));
  require(text === line.raw, `${line.file} has "${text}", not "${line.raw}" at ${line.locator}`);
  const figure = readFigure(text);
  const share = line.digits ? ROUNDED : 0;
  require(isClose(figure, line.value, share), `"${text}" is not ${line.value}`);
  if (line.factor === null) return;
  const isNear = isClose(figure * line.factor, line.figure, share + MULTIPLIED);
  require(isNear, `"${text}" times ${line.factor} is not ${line.figure}`);
}

function timeLog(bytes) {
  const times = {};
  for (const [, text] of decodeLatin(bytes).matchAll(/:::MLLOG ([^\r\n]*)/g)) {
    const { key, time_ms } = JSON.parse(text);
    // the last start before the first stop counts
    if (!("run_stop" in times)) times[key] = time_ms;
  }
  return (times.run_stop - times.run_start) / 60_000;
}

function compare(line, columns, row, share = 0) {
  for (const [field, column] of Object.entries(columns)) {
    const said = WORDS.get(line[field]) ?? line[field];
    const text = row[column];
    const isNear = typeof said === "number" && text !== "" && isClose(Number(text), said, share);
    require(said !== undefined && (isNear || text === said), `${column} is ${text}, not ${said}`);
  }
}

/** Checks a release. `read` gives the bytes of a path, and null where there is no such file. */
export class Checker {
  counts = { lines: 0, logs: 0, "logs read": 0 };
  seen = { printed: new Set(), minutes: new Set() };
  sums = {};
  kept = new Map();

  constructor(read, release, raw, root = "", logs = ".") {
    Object.assign(this, { read, release, raw, root, logs });
  }

  keep(name, make) {
    if (!this.kept.has(name)) this.kept.set(name, make());
    return this.kept.get(name);
  }

  async readChecked(path, sha256) {
    const bytes = await this.read(path);
    require(bytes && (await hash(bytes)) === sha256, `${path} has other bytes`);
    return bytes;
  }

  readRows(path, names) {
    return this.keep(`${path} ${names}`, async () => {
      const [[header], ...lines] = parseCsv(await this.read(path));
      const rows = new Map();
      for (const [cells] of lines) {
        const row = Object.fromEntries(header.map((name, index) => [name, cells[index]]));
        const key = nameRow(names.map((name) => row[name]));
        rows.set(key, [...(rows.get(key) ?? []), row]);
      }
      return rows;
    });
  }

  async checkAll() {
    const path = `${this.release}/SHA256SUMS`;
    this.root ||= await hash(await this.read(path));
    const sums = decodeUtf8(await this.readChecked(path, this.root));
    for (const line of sums.trimEnd().split("\n")) {
      const [sha256, name] = line.split("  ");
      await this.readChecked(`${this.release}/${name}`, sha256);
      this.sums[name] = sha256;
    }
    const lines = decodeUtf8(await this.read(`${this.release}/certificates.jsonl`));
    for (const line of lines.trimEnd().split("\n")) await this.checkLine(JSON.parse(line));
    await this.checkAllSeen("printed", "cells.csv", CELL, "value");
    await this.checkAllSeen("minutes", "mlperf_entries.csv", ENTRY, "minutes");
  }

  async checkLine(line) {
    this.counts.lines += 1;
    require(KINDS.includes(line.kind), `${line.kind} is no kind of certificate`);
    this.counts[line.kind] = (this.counts[line.kind] ?? 0) + 1;
    await this[line.kind](line);
  }

  async checkAllSeen(kind, file, names, needed) {
    const rows = await this.readRows(`${this.release}/${file}`, names);
    const expected = [...rows.keys()].filter((key) => rows.get(key)[0][needed] !== "");
    const seen = this.seen[kind];
    require(seen.size === (this.counts[kind] ?? 0), `a row of ${file} has two certificates`);
    const isWhole = expected.length === seen.size && expected.every((key) => seen.has(key));
    require(isWhole, `${file} has other rows than the ${kind} certificates`);
  }

  async checkRow(line, columns, file, key) {
    const rows = await this.readRows(`${this.release}/${file}`, Object.keys(key));
    const [row, ...others] = rows.get(nameRow(Object.values(key)));
    require(others.length === 0, `${file} has several rows of ${Object.values(key)}`);
    compare(line, columns, row);
    return row;
  }

  checkStated(line) {
    require(line.figure !== null, `${line.in} has no figure`);
    return this.checkRow(line, { figure: line.in }, line.stated, line.key);
  }

  async printed(line) {
    const [result_id, cell_number, ...rest] = line.id.split(" ");
    require(rest.length === 0, `${line.id} is no cell`);
    this.seen.printed.add(nameRow([result_id, cell_number]));
    const cell = await this.checkRow(line, OF_CELL, "cells.csv", { result_id, cell_number });
    const source = { document_id: cell.document_id };
    const document = await this.checkRow(line, OF_DOCUMENT, "documents.csv", source);
    const digits = ["derived", "run"].includes(document.kind) ? 12 : undefined;
    require(line.digits === digits, `figures of ${line.file} have ${digits} digits`);
    const path = `${this.raw}/${line.file}`;
    const make = async () => readSource(line.file, line.sha256, await this.read(path));
    follow(line, await this.keep(`${path} ${line.sha256}`, make));
    if (line.factor === null) return;
    await this.checkStated(line);
    // the row is that of the cell's result, or of the result and the column
    const [result, metric = line.column] = Object.values(line.key);
    const isRow = result === result_id && metric === line.column;
    const isColumn = [line.column, "value", "canonical_value"].includes(line.in);
    const isOwn = isRow && isColumn && STATING.includes(line.stated);
    require(isOwn, `${line.in} of ${result} is another figure`);
  }

  async minutes(line) {
    const entry = await this.checkStated(line);
    const isScore = line.stated === "mlperf_entries.csv" && line.in === "minutes";
    const isFactor = line.factor === Number(entry.scaling_factor || 1);
    const isDrop = line.drop === (entry.benchmark === "unet3d" ? 4 : 1);
    require(isScore && isFactor && isDrop, `${entry.path} has another figure, factor or drop`);
    const key = nameRow([entry.round, entry.path]);
    this.seen.minutes.add(key);
    const path = `${this.raw}/${line.file}`;
    await this.keep(`${path} ${line.sha256}`, () => this.readChecked(path, line.sha256));
    const runs = (await this.readRows(path, ENTRY)).get(key);
    require(runs.length === line.logs.length, `${entry.path} has other logs`);
    const minutes = [];
    for (const [index, run] of runs.entries()) {
      const log = line.logs[index];
      compare(log, OF_LOG, run, ROUNDED);
      if (!log.counted) continue;
      minutes.push(Number(run.minutes));
      await this.checkLog(`${this.logs}/v${entry.round}/${entry.path}`, log, minutes.at(-1));
    }
    minutes.sort((one, other) => one - other);
    // a run that does not count is one of the slowest that are left out
    const kept = minutes.slice(line.drop, runs.length - line.drop);
    const score = (kept.reduce((sum, each) => sum + each, 0) / kept.length) * line.factor;
    require(isClose(score, line.figure, 2 * ROUNDED), `${entry.path} scores ${score}`);
  }

  async checkLog(folder, log, minutes) {
    this.counts.logs += 1;
    const bytes = await this.read(`${folder}/${log.file}`);
    if (!bytes) return;
    require((await hash(bytes)) === log.sha256, `${log.file} has other bytes`);
    require(isClose(timeLog(bytes), minutes, 1e-12), `${log.file} has other times`);
    this.counts["logs read"] += 1;
  }

  async recomputed(line) {
    await this.checkStated(line);
    for (const [file, digests] of Object.entries(line.rows)) {
      const path = `${this.release}/${file}`;
      const known = await this.keep(`digests of ${path}`, async () => {
        const rows = splitRows(await this.read(path));
        const hashes = rows.map((row) => hash(new TextEncoder().encode(row)));
        return new Set(await Promise.all(hashes));
      });
      require(digests.every((digest) => known.has(digest)), `${file} has other rows`);
    }
  }

  finding(line) {
    const isRead = Object.entries(line.files).every(([name, sha256]) => this.sums[name] === sha256);
    require(isRead, `${line.id} read other files`);
  }

  relation(line) {
    this.finding(line);
  }
}

async function main(release, raw, root, logs) {
  const { readFile } = process.getBuiltinModule("node:fs/promises");
  const read = (path) => readFile(path).catch(() => null);
  const checker = new Checker(read, release, raw, root, logs);
  try {
    await checker.checkAll();
    const counts = JSON.stringify(checker.counts);
    console.log(`yes, for root ${checker.root}: ${counts}; no statement was run`);
  } catch (error) {
    console.error(`no: line ${checker.counts.lines}: ${error.message}`);
    process.exitCode = 1;
  }
}

if (/[\\/]checker\.mjs$/.test(globalThis.process?.argv[1])) main(...process.argv.slice(2));
