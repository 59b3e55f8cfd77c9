// Runs a checker over jobs and prints its verdicts: of each line of a job, else of a log or a source, else of a release.
// usage: node judge.mjs CHECKER JOBS
import { readFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { pathToFileURL } from "node:url";

const [script, path] = process.argv.slice(2);
const { Checker, readSource } = await import(pathToFileURL(script));
const read = (each) => readFile(each).catch(() => null);

const kept = new Map(); // no two jobs have the same path for other bytes

async function isPassed(check) {
  try {
    await check();
    return true;
  } catch {
    return false;
  }
}

async function checkSource({ source, folder }) {
  const bytes = await readFile(`${folder}/${source}`);
  await readSource(source, createHash("sha256").update(bytes).digest("hex"), bytes);
}

async function judge(job) {
  const checker = new Checker(read, job.release, job.raw, job.root);
  checker.kept = kept;
  if (job.log) return isPassed(() => checker.checkLog(job.folder, job.log, job.log.minutes));
  if (job.source) return isPassed(() => checkSource(job));
  if (!job.lines) return isPassed(() => checker.checkAll());
  const verdicts = [];
  for (const line of job.lines) verdicts.push(await isPassed(() => checker.checkLine(line)));
  return verdicts;
}

const verdicts = [];
for (const job of JSON.parse(await readFile(path))) verdicts.push(await judge(job));
console.log(JSON.stringify(verdicts));
