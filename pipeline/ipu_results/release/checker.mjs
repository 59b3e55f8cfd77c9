// Follow each certificate of a release to the bytes of its source: yes, or the first broken link.
// usage: node checker.mjs RELEASE RAW [ROOT [LOGS]]; docs/reference/certificates.md has the format.
// `follow` needs nothing of Node.js, so that a page can import it.

const FIGURE = /^(-?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?)(?: \D.*)?$/;
const SHOWN = /\/F2 (\S+) Tf.*\n?.*BT 1 0 0 1 (\S+) (\S+) Tm \(((?:\\.|[^\\)])*)\) Tj/g;
const CSV_CELL = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/y;
const ABOVE_BASELINE = 0.783; // of the size of Times-Roman: the top of a box
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };
const CELL = ["result_id", "cell_number"];
const ENTRY = ["round", "path"];
const COMPUTED = ["derived", "run"]; // by us, with 12 digits
const STATING = ["results.csv", "figures.csv", "microbenchmarks.csv"];
const KINDS = ["printed", "minutes", "recomputed", "finding", "relation"];

function require(isSo, message) {
  if (!isSo) throw new Error(message);
}

function requireEqual(said, found, what) {
  require(JSON.stringify(said) === JSON.stringify(found), `${what}: ${found}, not ${said}`);
}

async function hash(bytes) {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const decodeUtf8 = (bytes) => new TextDecoder("utf-8", { fatal: true }).decode(bytes);
const decodeLatin = (bytes) => new TextDecoder("windows-1252").decode(bytes);
const isClose = (one, other, share) => Math.abs(one - other) <= share * Math.max(Math.abs(one), Math.abs(other));
const isSame = (figure, stated, digits) => isClose(figure, stated, digits ? 5e-12 : 0); // half a unit of the 12th digit

export function readFigure(text) {
  const [, hours, minutes] = text.match(/^(\d+)h (\d+)m$/) ?? [];
  if (hours) return hours * 3600 + minutes * 60;
  return Number(text.match(FIGURE)[1].replaceAll(",", ""));
}

function addCells(cells, place, header, row) {
  require(header.length === row.length, `${place} has ${row.length} cells, not ${header.length}`);
  row.forEach((text, index) => {
    cells.set(`${place}, column ${index + 1} (${header[index]})`, text.trim().split(/\s+/).join(" "));
  });
}

/** Yields each row of a CSV file with the number of its last line. */
function* parseCsv(text) {
  const pattern = new RegExp(CSV_CELL);
  let line = 0;
  let row = [];
  while (pattern.lastIndex < text.length) {
    const [whole, quoted, plain, end] = pattern.exec(text);
    row.push(quoted?.replaceAll('""', '"') ?? plain);
    line += whole.split("\n").length - 1;
    if (end === ",") continue;
    yield [line, row];
    row = [];
  }
}

function readCsv(bytes) {
  const cells = new Map();
  const rows = parseCsv(decodeUtf8(bytes));
  const [, header] = rows.next().value;
  for (const [line, row] of rows) addCells(cells, `line ${line}`, header, row);
  return cells;
}

function readHtml(bytes) {
  const page = decodeUtf8(bytes);
  const cells = new Map();
  require(!/rowspan|colspan|<!--/.test(page), "spans and comments are not read");
  const plain = (cell) => cell.replace(/<[^>]*>/g, "").replace(/&(\w+);/g, (_, name) => ENTITIES[name]);
  [...page.matchAll(/<table.*?<\/table>/gs)].forEach(([text], table) => {
    const rows = text.split("<tr").slice(1).map((row) => [...row.matchAll(/<t[dh]\b[^>]*>(.*?)<\/t[dh]>/gs)]);
    const [header, ...body] = rows.map((row) => row.map((cell) => plain(cell[1])));
    body.forEach((row, index) => addCells(cells, `table ${table + 1}, row ${index + 1}`, header, row));
  });
  return cells;
}

function decode85(text) {
  const bytes = [];
  for (const group of text.replaceAll("z", "!!!!!").match(/[!-u]{1,5}/g)) {
    let word = 0;
    for (const digit of group.padEnd(5, "u")) word = word * 85 + digit.charCodeAt(0) - 33;
    const four = [24, 16, 8, 0].map((shift) => (word >>> shift) & 255);
    bytes.push(...four.slice(0, group.length - 1));
  }
  return new Uint8Array(bytes);
}

async function readPdf(bytes) {
  const cells = new Map();
  const file = decodeLatin(bytes);
  const objects = new Map([...file.matchAll(/(\d+) 0 obj(.*?)endobj/gs)].map((found) => found.slice(1)));
  const kids = [...file.match(/\/Kids \[(.*?)\]/)[1].matchAll(/(\d+) 0 R/g)];
  for (const [index, [, name]] of kids.entries()) {
    const height = Number(objects.get(name).match(/\/MediaBox \[ 0 0 \S+ (\S+) \]/)[1]);
    const content = objects.get(objects.get(name).match(/\/Contents (\d+) 0 R/)[1]);
    const packed = new Blob([decode85(content.match(/stream\r?\n(.*?)~>/s)[1].replace(/\s/g, ""))]);
    const unpacked = packed.stream().pipeThrough(new DecompressionStream("deflate"));
    const shown = decodeLatin(await new Response(unpacked).arrayBuffer());
    for (const [, size, x, y, text] of shown.matchAll(SHOWN)) {
      const top = height - y - ABOVE_BASELINE * size;
      const place = `page ${index + 1}, box ${Number(x).toFixed(1)},${top.toFixed(1)}`;
      require(!cells.has(place), `two texts begin at ${place}`);
      cells.set(place, text.replace(/\\(.)/g, "$1").split(": ").at(-1)); // without a label
    }
  }
  return cells;
}

/** Reads the cells of a source whose bytes have the digest that a certificate states. */
export async function readSource(file, sha256, bytes) {
  require((await hash(bytes)) === sha256, `${file} has other bytes`);
  const readers = { csv: readCsv, html: readHtml, pdf: readPdf };
  return readers[file.split(".").at(-1)](bytes);
}

/** Follows a printed figure to its text in the cells of its source. Throws for a broken link. */
export function follow(line, cells) {
  const text = cells.get(line.locator.replace(/(box [\d.]+,[\d.]+).*/, "$1"));
  require(text === line.raw, `${line.file} has "${text}", not "${line.raw}" at ${line.locator}`);
  const figure = readFigure(text);
  require(isSame(figure, line.value, line.digits), `"${text}" is not ${line.value}`);
  if (line.factor === null) return;
  const isNear = isClose(figure * line.factor, line.figure, line.digits ? 1e-11 : 1e-15);
  require(isNear, `"${text}" times ${line.factor} is not ${line.figure}`);
}

export function timeLog(bytes) {
  const times = {};
  for (const [, text] of decodeLatin(bytes).matchAll(/:::MLLOG ([^\r\n]*)/g)) {
    const { key, time_ms } = JSON.parse(text);
    if ((key === "run_start" || key === "run_stop") && !("run_stop" in times)) times[key] = time_ms;
  }
  return (times.run_stop - times.run_start) / 60_000;
}

/** Checks a release. `read` gives the bytes of a path, and null where there is no such file. */
export class Checker {
  counts = { lines: 0, logs: 0, "logs read": 0 };
  seen = { printed: new Set(), minutes: new Set() };
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

  async readRows(path, names) {
    const lines = parseCsv(decodeUtf8(await this.read(path)));
    const [, header] = lines.next().value;
    const rows = new Map();
    for (const [, cells] of lines) {
      const row = Object.fromEntries(header.map((name, index) => [name, cells[index]]));
      const key = JSON.stringify(names.map((name) => row[name]));
      rows.set(key, [...(rows.get(key) ?? []), row]);
    }
    return rows;
  }

  readTable(file, names) {
    const path = `${this.release}/${file}`;
    return this.keep(`${path} ${names}`, () => this.readRows(path, names));
  }

  async checkAll() {
    this.root ||= await hash(await this.read(`${this.release}/SHA256SUMS`));
    const sums = decodeUtf8(await this.readChecked(`${this.release}/SHA256SUMS`, this.root));
    this.sums = Object.fromEntries(sums.trimEnd().split("\n").map((line) => line.split("  ").reverse()));
    for (const name in this.sums) await this.readChecked(`${this.release}/${name}`, this.sums[name]);
    const lines = decodeUtf8(await this.read(`${this.release}/certificates.jsonl`)).trimEnd().split("\n");
    for (const line of lines) await this.checkLine(JSON.parse(line));
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
    const rows = await this.readTable(file, names);
    const expected = [...rows.keys()].filter((key) => rows.get(key)[0][needed] !== "");
    const isWhole = expected.length === this.seen[kind].size && expected.every((key) => this.seen[kind].has(key));
    require(isWhole, `${file} has other rows than the ${kind} certificates`);
  }

  async checkStated(line) {
    const key = Object.values(line.key).map(String);
    const rows = await this.readTable(line.stated, Object.keys(line.key));
    const text = rows.get(JSON.stringify(key))[0][line.in];
    const isStated = typeof line.figure === "string" ? text === line.figure : text !== "" && Number(text) === line.figure;
    require(isStated, `${line.stated} has ${text}, not ${line.figure}`);
    return key;
  }

  async printed(line) {
    const path = `${this.raw}/${line.file}`;
    const make = async () => readSource(line.file, line.sha256, await this.read(path));
    follow(line, await this.keep(`${path} ${line.sha256}`, make));
    await this.checkCell(line);
    if (line.factor === null) return;
    const key = await this.checkStated(line);
    const isRow = line.id.startsWith(`${key[0]} `) && (key.length === 1 || key[1] === line.column);
    const isColumn = [line.column, "value", "canonical_value"].includes(line.in);
    require(isRow && isColumn && STATING.includes(line.stated), `${line.in} of ${key} is another figure`);
  }

  async checkCell(line) {
    const key = JSON.stringify(line.id.split(" "));
    this.seen.printed.add(key);
    const [cell] = (await this.readTable("cells.csv", CELL)).get(key);
    const documents = await this.readTable("documents.csv", ["document_id"]);
    const [document] = documents.get(JSON.stringify([cell.document_id]));
    const place = [document.file, document.sha256, cell.locator, cell.column_name];
    requireEqual([line.file, line.sha256, line.locator, line.column], place, "place of the cell");
    const factor = cell.factor === "" ? null : Number(cell.factor);
    const digits = COMPUTED.includes(document.kind) ? 12 : null;
    const figures = [Number(cell.value), factor, digits];
    requireEqual([line.value, line.factor, line.digits ?? null], figures, "value, factor and digits of the cell");
  }

  async minutes(line) {
    const key = await this.checkStated(line);
    this.seen.minutes.add(JSON.stringify(key));
    const [entry] = (await this.readTable("mlperf_entries.csv", ENTRY)).get(JSON.stringify(key));
    const drop = entry.benchmark === "unet3d" ? 4 : 1;
    const own = [Number(entry.minutes), Number(entry.scaling_factor || 1), drop];
    requireEqual([line.figure, line.factor, line.drop], own, "minutes, factor and drop of the entry");
    const path = `${this.raw}/${line.file}`;
    await this.keep(`${path} ${line.sha256}`, () => this.readChecked(path, line.sha256));
    const runs = (await this.keep(path, () => this.readRows(path, ENTRY))).get(JSON.stringify(key));
    require(runs.length === line.logs.length, `${key} has other logs`);
    const minutes = [];
    for (const [index, run] of runs.entries()) {
      const log = line.logs[index];
      const isRun = run.file === log.file && run.sha256 === (log.sha256 ?? "");
      require(isRun && (run.counted === "True") === log.counted, `${log.file} is another log`);
      if (!log.counted) continue;
      minutes.push(Number(run.minutes));
      require(isSame(minutes.at(-1), log.minutes, 12), `${log.file} has other minutes`);
      await this.checkLog(`${this.logs}/v${key[0]}/${key[1]}`, log, minutes.at(-1));
    }
    const slowest = line.drop - (runs.length - minutes.length);
    const kept = minutes.sort((one, other) => one - other).slice(line.drop, minutes.length - slowest);
    const score = (kept.reduce((sum, each) => sum + each, 0) / kept.length) * line.factor;
    require(isClose(score, line.figure, 1e-11), `${key} scores ${score}`);
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
        const text = decodeUtf8(await this.read(path));
        const rows = text.match(/(?:[^"\n]|"[^"]*")+/g).map((row) => hash(new TextEncoder().encode(row)));
        return new Set(await Promise.all(rows));
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
    console.log(`yes, for root ${checker.root}: ${JSON.stringify(checker.counts)}; no statement was run`);
  } catch (error) {
    console.error(`no: line ${checker.counts.lines}: ${error.message}`);
    process.exitCode = 1;
  }
}

if (/[\\/]checker\.mjs$/.test(globalThis.process?.argv[1])) main(...process.argv.slice(2));
