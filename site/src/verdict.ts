// Judges a run by physics and by its nearest rows, in the words of schema/comparison.toml, as `ipu-results compare` does
// (comparison/plausibility.py, mistakes.py and verdict.py); tests/site/test_site_compare.py compares the two.
import type { Row, Value } from "./frame";
import { type Context, type Data, fill, findNearest, findObstacle, findMissingFigure, getBasis, getGroup, isSet, comparePlaces, makeContext, type Match, type Nearest, type Run } from "./nearest";

type Outcome = "ok" | "impossible" | "doubtful" | "not checked";

export interface Check {
  name: string;
  outcome: Outcome;
  message: string;
  value: number | null;
  limit: number | null;
}

export interface Answer extends Nearest {
  status: string;
  verdict: string;
  checks: Check[];
}

const DIGITS = 4; // of a figure that is computed here
const OF_16_BITS = ["fp16", "bf16"];
const THOUSAND = 1000;
const UNVERIFIED = ["emulated", "submitted"]; // groups that no verdict rests on
const SETTLED = ["implausible", "doubtful", "plausible", "depends"];
const PLAIN = new Intl.NumberFormat("en", { useGrouping: false, maximumFractionDigits: 20 });

const formatPlain = (value: number, digits = 3) => PLAIN.format(Math.abs(value) >= 10 ** digits ? Math.round(value) : Number(value.toPrecision(digits)));
const formatExact = (value: number) => PLAIN.format(Number(value.toPrecision(12)));
const formatShare = (value: number, digits: number) => `${(value * 100).toFixed(digits)}%`;
const getGap = (ratio: number) => Math.max(ratio, 1 / ratio);

/** Compares a run with the rows of its network: the nearest, the checks, and a verdict in one line. */
export function judgeRun(data: Data, run: Run): Answer {
  const context = makeContext(data, run);
  const nearest = findNearest(data, run);
  const checks = [checkLittle(context), checkPeak(context), ...(run.latency_ms ? [checkLatency(context)] : [])];
  let [status, text] = judgeByRows(context, nearest, describeDoubted(context, data.rows));
  for (const [outcome, worse] of [["impossible", "implausible"], ["doubtful", "doubtful"]] as const) {
    const failed = checks.find((check) => check.outcome === outcome);
    if (failed) {
      [status, text] = [worse, `${failed.name}: ${failed.message}`];
      break;
    }
  }
  const doubt = SETTLED.includes(status) ? "" : doubtShare(context, data.rows);
  if (doubt) [status, text] = ["doubtful", doubt];
  const verdict = `${status.replaceAll("-", " ")}: ${text}${describePacked(context, data.rows, nearest.matches)}`;
  return { ...nearest, status, verdict, checks };
}

// Physics: Little's law, and work against the peak of the chips.

function makeCheck(name: string, outcome: Outcome, message: string, value: number | null = null, limit: number | null = null): Check {
  return { name, outcome, message, value, limit };
}

function checkLittle({ rules: { texts }, known, run }: Context): Check {
  const { physics } = known;
  const make = (outcome: Outcome, message: string, limit = physics.min_batches_in_flight) => makeCheck("Little's law", outcome, message, depth, limit);
  const isOfItem = run.latency_basis === known.per_item;
  const batch = isOfItem ? 1 : run.batch_size;
  if (!(run.throughput && run.latency_ms && batch)) {
    const missing = (["throughput", "latency_ms", "batch_size"] as const).filter((name) => run[name] === null);
    return makeCheck("Little's law", "not checked", fill(texts["needs"]!, { what: missing.join(", ") }));
  }
  const depth = (run.throughput * run.latency_ms) / 1000 / batch;
  const product = `${formatExact(run.throughput)} × ${formatExact(run.latency_ms)} ms${isOfItem ? "" : ` / batch ${batch}`}`;
  let text = fill(texts["in_flight"]!, { depth: formatPlain(depth), unit: isOfItem ? "items" : "batches", product });
  const repairs: [number, string][] = [[THOUSAND, texts["seconds"]!]];
  if (!isOfItem && batch > 1) repairs.push([batch, texts["batches"]!]);
  if ((run.chip_count ?? 1) > 1) repairs.push([run.chip_count!, texts["one_chip"]!]);
  const fits = repairs
    .map(([factor, question]): [number, number, string] => [Math.abs(Math.log(depth * factor)), factor, question])
    .filter(([, factor]) => physics.min_batches_in_flight / 2 <= depth * factor && depth * factor <= physics.max_batches_in_flight)
    .sort((left, right) => left[0] - right[0] || left[1] - right[1] || (left[2] < right[2] ? -1 : 1));
  const hint = fits.slice(0, 2).map(([, factor, question]) => fill(texts["fits"]!, { times: formatPlain(factor), question }));
  const suffix = hint.length ? `; ${hint.join("; or ")}` : "";
  if (depth > physics.max_batches_in_flight * (isOfItem ? (run.batch_size ?? 1) : 1)) return make("doubtful", `${text}; ${fill(texts["too_many"]!, { limit: physics.max_batches_in_flight })}`, physics.max_batches_in_flight);
  if (run.latency_basis === "per-batch" || isOfItem) {
    if (depth >= physics.doubtful_batches_in_flight) return make("ok", depth < physics.min_batches_in_flight ? `${text}; ${texts["outside"]}` : text);
    text += `; ${fill(texts["idle"]!, { share: formatShare(1 - depth, 3) })}${suffix}`;
    return make(depth < physics.wrong_batches_in_flight ? "impossible" : "doubtful", text);
  }
  if (depth >= physics.min_batches_in_flight) return make("ok", text);
  const shortest = fill(texts["shortest"]!, { shortest: formatPlain((batch / run.throughput) * 1000, DIGITS) });
  return make("impossible", `${text}; ${shortest}${batch > 1 && !suffix ? `; ${texts["of_item"]}` : ""}${suffix}`);
}

function checkPeak(context: Context): Check {
  const { known, run } = context;
  const [macs, uncounted] = findMacs(context, run);
  const passes = countPasses(context, run.task);
  const work = computeTflops(run.throughput ?? 0, macs, passes);
  const arithmetic = `${formatExact(run.throughput ?? 0)} × ${formatPlain((macs ?? 0) / 1e9, DIGITS)} GMAC × ${known.physics.flop_per_mac * passes.count}`;
  const missing = [...(run.throughput === null ? ["a throughput"] : []), ...(macs === null ? [uncounted] : [])];
  return compareWithPeak(context, "peak of the chips", work, arithmetic, missing, "throughput");
}

/** The work of one batch within its latency: the floor of a latency, whatever is in flight. */
function checkLatency(context: Context): Check {
  const { known, run } = context;
  const [macs, uncounted] = findMacs(context, run);
  const batch = run.latency_basis === known.per_item ? 1 : run.batch_size;
  const passes = countPasses(context, run.task);
  const work = computeTflops(((batch ?? 0) * 1000) / run.latency_ms!, macs, passes);
  const arithmetic = `batch ${batch} × ${formatPlain((macs ?? 0) / 1e9, DIGITS)} GMAC × ${known.physics.flop_per_mac * passes.count} / ${formatExact(run.latency_ms!)} ms`;
  const missing = [...(batch === null ? ["batch_size"] : []), ...(macs === null ? [uncounted] : [])];
  return compareWithPeak(context, "latency floor", work, arithmetic, missing, "latency_ms");
}

interface Passes {
  count: number; // over the network, in units of an inference
  flop_per_mac: number;
}

function countPasses({ known: { physics } }: Context, task: Value): Passes {
  return { count: task === "training" ? physics.training_passes : 1, flop_per_mac: physics.flop_per_mac };
}

const computeTflops = (rate: number, macs: number | null, { count, flop_per_mac }: Passes) => (rate * ((macs ?? 0) / 1e9) * flop_per_mac * count) / 1000;

const getPeaks = ({ known }: Context, chip: Value) => known.chips[chip ?? ""]?.peaks ?? {};

/** The peak of one chip at a precision; null where no source gives it. */
function getPeak(context: Context, chip: Value, precision: Value): number | null {
  const peaks = getPeaks(context, chip);
  const type = context.known.types[precision ?? ""] ?? "";
  const own = (OF_16_BITS.includes(type) ? OF_16_BITS : [type]).flatMap((name) => peaks[name] ?? []);
  return own.length ? Math.max(...own) : null;
}

function compareWithPeak(context: Context, name: string, work: number, arithmetic: string, missing: string[], figure: string): Check {
  const { rules: { texts }, known, run } = context;
  const peaks = getPeaks(context, run.chip);
  const chips = run.chip_count ?? 0;
  const top = Math.max(0, ...Object.values(peaks)) * chips;
  const shown = formatPlain(work, DIGITS);
  const anyPeak = fill(texts["any_precision"]!, { chips, chip: run.chip });
  const isAbove = top > 0 && work > top;
  if (run.precision === null && isAbove)
    return makeCheck(name, "impossible", fill(texts["above_any"]!, { work: shown, limit: formatPlain(top, DIGITS), peak: anyPeak }) + askAboutPeak(context, work, top, figure), work, top);
  if (run.precision === null) missing.push("a precision");
  if (missing.length || run.chip_count === null) return makeCheck(name, "not checked", fill(texts["needs"]!, { what: [...missing, ...(chips ? [] : ["the number of chips"])].join(", ") }));
  const peak = getPeak(context, run.chip, run.precision);
  if (peak === null) {
    if (isAbove) return makeCheck(name, "impossible", fill(texts["above_known"]!, { work: shown, peak: anyPeak }) + askAboutPeak(context, work, top, figure), work, top);
    return makeCheck(name, "not checked", fill(texts["no_peak"]!, { machine: run.platform || run.chip || "the machine", precision: run.precision }));
  }
  const limit = peak * chips;
  const words = { work: shown, arithmetic, share: formatShare(work / limit, 1), limit: formatPlain(limit, DIGITS), chips, chip: run.chip || "chip", precision: run.precision };
  const text = fill(texts["share"]!, words);
  if (work <= limit) return makeCheck(name, "ok", text, work, limit);
  const tensor = known.types[run.precision!] === "fp32" && known.chips[run.chip!]?.is_accelerator ? peaks["tf32"] : undefined;
  const outcome = tensor && work <= tensor * chips ? "doubtful" : "impossible"; // frameworks run convolutions of FP32 as TF32
  return makeCheck(name, outcome, text + askAboutPeak(context, work, limit, figure), work, limit);
}

/** The questions that explain work above a limit; "" where nothing does. */
function askAboutPeak(context: Context, work: number, limit: number, figure: string): string {
  const { rules: { texts }, known, run } = context;
  const [chips, batch] = [run.chip_count ?? 1, run.batch_size ?? 1];
  const questions: string[] = [];
  const faster = Object.entries(getPeaks(context, run.chip)).filter(([, peak]) => peak * chips >= work);
  if (faster.length && run.precision !== null) {
    const [name] = faster.reduce((best, each) => (each[1] < best[1] ? each : best));
    questions.push(fill(texts["other_precision"]!, { other: name.toUpperCase(), option: name, precision: run.precision }));
  }
  if (figure === "latency_ms") {
    if (work <= limit * THOUSAND * 2) questions.push(texts["seconds"]!);
    if (batch > 1 && run.latency_basis !== known.per_item && work <= limit * batch) questions.push(texts["latency_of_item"]!);
  } else {
    if (work <= limit * Math.max(64, chips)) questions.push(texts["more_chips"]!);
    if (work <= limit * batch && batch > 1) questions.push(texts["batch_twice"]!);
    if (work > limit * 10) questions.push(texts["unit"]!);
  }
  return questions.length ? `; ${questions.join("; or ")}` : "";
}

/** The multiply-accumulates of one item of a run or a row, else what is missing of them. */
function findMacs({ rules: { texts }, known }: Context, run: object): [number | null, string] {
  const own = run as Record<string, Value>;
  const length = own["sequence_length"] ?? null;
  const variant = length ? `SL${length}` : String(own["variant"] ?? "");
  const what = fill(texts["operations"]!, { what: `${own["model"]}${variant ? ` (${variant})` : ""}` });
  const counts = known.operations[String(own["model"])];
  if (!counts) return [null, what + texts["not_counted"]];
  if (own["sparsity"]) return [null, what + texts["sparse"]];
  if (isSet(own["packed"])) return [null, what + texts["packed"]];
  const entry = counts[variant];
  if (!entry) {
    const names = Object.keys(counts).filter(Boolean).sort();
    const lengths = names.flatMap((name) => new RegExp(known.sequence_length).exec(name)?.[1] ?? []);
    if (lengths.length && !length) return [null, fill(texts["length"]!, { lengths: lengths.join(", ") })];
    return [null, what + fill(texts["counted"]!, { variants: names.length ? `for ${names.join(", ")}` : "without a variant" })];
  }
  const [macs, isOfTraining] = entry;
  return own["task"] === "training" && !isOfTraining ? [null, what + texts["inference_only"]] : [macs, ""];
}

/** The share of the peak of all chips that a throughput uses; null where either is not known. */
function computeShare(context: Context, values: object, precision: Value): number | null {
  const own = values as Record<string, Value>;
  const [macs] = findMacs(context, values);
  const peak = getPeak(context, own["chip"] ?? null, precision);
  const [chips, throughput] = [own["chip_count"], own["throughput"]] as number[];
  if (!(macs && peak && chips && throughput)) return null;
  return computeTflops(throughput, macs, countPasses(context, own["task"] ?? null)) / (peak * chips);
}

// Mistakes, by the factor that they put on a figure.

/** Names the mistakes that explain a ratio to a row, after a semicolon; "" where none does. */
function nameMistake({ rules: { mistakes, texts }, run }: Context, figure: string, ratio: number, row: Row, near = mistakes.near, expected = 1): string {
  const theirs = row["chip_count"] as number | null;
  const factor = ratio / (figure === "throughput" && run.chip_count && theirs ? run.chip_count / theirs : 1) / expected;
  const words = { batch: run.batch_size ?? 1, chips: run.chip_count ?? 1, machine: run.platform || "the machine" };
  const named = new Map<string, { off: number; questions: string[] }>();
  for (const entry of mistakes.factors.filter((each) => each.figure === figure))
    for (const several of entry.factor.includes("{several}") ? mistakes.several : [1]) {
      const filled = { ...words, several, of_several: several * words.chips };
      const what = fill(entry.factor, filled);
      const [top, bottom = 1] = what.split("/").map(Number);
      const off = Math.abs(Math.log((factor * bottom) / top!));
      if (top === bottom || off > Math.log(near)) continue;
      const other = named.get(what) ?? { off, questions: [] };
      named.set(what, { off: Math.min(off, other.off), questions: [...other.questions, fill(entry.question, filled)] });
    }
  const best = [...named].sort((left, right) => left[1].off - right[1].off).slice(0, mistakes.max_questions);
  const parts = best.map(([what, { questions }]) => {
    const text = [questions[0]!, ...questions.slice(1).map((question) => question.replace(/^and /, ""))].join("; or ");
    const about = fill(texts["factor"]!, { factor: `${what} ${what.startsWith("1/") ? "of" : "times"}`, of: "the nearest row" });
    return `${about}${text.startsWith("and") ? "," : ":"} ${text}`;
  });
  return parts.length ? `; ${parts.join("; or ")}` : "";
}

/** Why a figure is doubtful, seen from a row of another machine or precision; "" where it may be right. */
function doubtOtherMachine(context: Context, figure: string, ratio: number, row: Row): string {
  const { rules: { mistakes, texts }, run } = context;
  const chips = row["chip_count"] as number | null;
  const isRate = figure === "throughput";
  if (!(isRate || figure === "latency_ms") || run.task !== "inference" || !run.chip_count || !chips) return "";
  const peak = run.precision === null ? null : getPeak(context, run.chip, run.precision);
  const theirs = getPeak(context, row["chip"] ?? null, row["precision"] ?? null);
  if (!peak || !theirs) return "";
  const faster = peak / theirs;
  const speed = ((isRate ? ratio : 1 / ratio) * chips) / run.chip_count;
  const isSame = run.platform !== null && run.platform === row["platform"] && run.batch_size === row["batch_size"];
  if (isSame && isRate && faster <= mistakes.slower_precision && speed > mistakes.same_speed)
    return fill(texts["precision_peak"]!, { ours: run.precision, theirs: row["precision"] ?? null, faster: formatShare(faster, 0) });
  const margin = isRate ? 1 : mistakes.latency_margin;
  const [low, expected] = [Math.min(1, faster) / mistakes.far_below / margin, faster ** 0.5];
  if (speed >= low) return "";
  const named = nameMistake(context, figure, ratio, row, mistakes.far * margin, isRate ? expected : 1 / expected);
  return named && fill(texts["slow"]!, { speed: formatPlain(speed), limit: formatPlain(low) }) + named;
}

/** Why a share of the peak is doubtful, seen from the highest of the record for the network; "" if it is not. */
function doubtShare(context: Context, rows: Row[]): string {
  const { rules: { mistakes, texts }, run } = context;
  const share = computeShare(context, run, run.precision);
  if (share === null || !run.chip_count) return "";
  let best: [number, Row] | null = null;
  for (const row of rows) {
    if (row["model"] !== run.model || row["task"] !== run.task || row["usable"] !== "true") continue;
    const own = computeShare(context, row, row["precision"] ?? null);
    if (own !== null && own > (best?.[0] ?? 0)) best = [own, row];
  }
  if (best === null) return "";
  const [highest, row] = best;
  const text = fill(texts["of_peak"]!, { share: formatShare(share, 2), highest: formatShare(highest, 2), publisher: row["publisher"]!, platform: row["platform"]! });
  if (share > highest * mistakes.far && share > mistakes.high_share) return `${text}; ${fill(texts["too_high"]!, { precision: run.precision })}`;
  return run.chip_count >= mistakes.system && share < highest / run.chip_count / mistakes.low_share ? text + fill(texts["of_one_chip"]!, { chips: run.chip_count }) : "";
}

// The verdict that the nearest measured row gives.

function isSameSetUp({ run }: Context, row: Row): boolean {
  const [ours, theirs] = [run.precision, row["precision"] ?? null];
  const chips = row["chip_count"] ?? null;
  const isSame = run.platform !== null && run.platform === row["platform"] && (run.chip_count === null || chips === null || run.chip_count === chips);
  return isSame && run.batch_size === (row["batch_size"] ?? null) && (ours === null || theirs === null || ours === theirs);
}

function judgeByRows(context: Context, { matches, refusals }: Nearest, doubted: string): [string, string] {
  const { rules: { mistakes, texts }, run } = context;
  const measured = matches.filter(({ group }) => !UNVERIFIED.includes(group)).sort((left, right) => left.distance - right.distance);
  const same = measured.filter(({ row }) => isSameSetUp(context, row));
  const hasBases = ({ row }: Match) => run.latency_basis !== null && getBasis(row) !== null;
  const nearest = same.find((match) => match.ratios[0]!.figure !== "latency_ms" || hasBases(match));
  if (same.length && !nearest) return judgeByBases(context, same);
  if (nearest) {
    const settled = nearest.ratios.filter(({ figure }, index) => index === 0 || figure !== "latency_ms" || hasBases(nearest));
    const worst = settled.reduce((best, each) => (getGap(each.ratio) > getGap(best.ratio) ? each : best));
    if (getGap(worst.ratio) <= mistakes.doubtful_factor) return ["plausible", describeMatch(context, nearest)];
    const limit = fill(texts["apart"]!, { factor: mistakes.doubtful_factor, batch: texts["same_batch"]! });
    return ["doubtful", `${describeMatch(context, nearest, worst)}: ${limit}${nameMistake(context, worst.figure, worst.ratio, nearest.row)}`];
  }
  for (const match of measured) {
    const doubt = doubtOtherMachine(context, match.ratios[0]!.figure, match.ratios[0]!.ratio, match.row);
    if (doubt) return ["doubtful", `${describeMatch(context, match)}: ${doubt}`];
  }
  if (measured[0]) return ["other-conditions", `${describeMatch(context, measured[0])}: ${doubted || texts["no_such_row"]}`];
  const more = doubted && `; ${doubted}`;
  const emulated = matches.find(({ group }) => group === "emulated");
  if (emulated) return ["only-emulated", `${describeMatch(context, emulated)}: ${texts["no_measured"]}${more}`];
  if (matches[0]) return ["no-comparable-row", `${describeMatch(context, matches[0])}: ${texts["no_other"]}${more}`];
  if (!refusals[0]) return ["no-comparable-row", fill(texts["no_row"]!, { model: run.model })];
  const count = refusals.reduce((sum, { rows }) => sum + rows, 0);
  return ["no-comparable-row", fill(texts["refused"]!, { rows: `${count} row${count === 1 ? "" : "s"}`, model: run.model, most: refusals[0].rows, reason: refusals[0].reason }) + more];
}

/** Says that rows of the same set-up are left out for an error or a doubt alone, and why; "" for none. */
function describeDoubted(context: Context, rows: Row[]): string {
  const isLeftOut = (row: Row) => {
    if (!row["doubt"] || row["model"] !== context.run.model || UNVERIFIED.includes(getGroup(row))) return false;
    const cleared = { ...row, errors: 0, suspect: null };
    return isSameSetUp(context, row) && findObstacle(context, cleared) === null && findMissingFigure(context, cleared) === null;
  };
  const [first, ...others] = rows.filter(isLeftOut).sort(comparePlaces);
  if (!first) return "";
  const [count, verb, suchAs] = others.length ? [`${others.length + 1} rows`, "are", ", such as"] : ["1 row", "is", ":"];
  return `${fill(context.rules.texts["doubted"]!, { rows: count, verb })}${suchAs} ${first["result_id"]} (${first["doubt"]})`;
}

/** Judges a latency by the nearest row of each basis; what only the basis can explain settles nothing. */
function judgeByBases(context: Context, same: Match[]): [string, string] {
  const { rules: { mistakes, texts }, known, run } = context;
  const bases = new Map<string | null, Match>();
  for (const match of same) if (!bases.has(getBasis(match.row))) bases.set(getBasis(match.row), match);
  const gaps = [...bases.values()].map((match) => getGap(match.ratios[0]!.ratio));
  const stated = [...bases]
    .map(([basis, match]) => fill(texts[basis ? "if_basis" : "without_basis"]!, { ratio: formatPlain(match.ratios[0]!.ratio), basis, row: describeRow(context, match, match.ratios[0]!) }))
    .join("; ");
  if (Math.max(...gaps) <= mistakes.doubtful_factor) return ["plausible", stated];
  const several = [...bases.keys()].filter((basis) => basis !== null).length > 1;
  if (Math.min(...gaps) > mistakes.doubtful_factor * (several ? 1 : known.physics.max_batches_in_flight)) {
    const named = [...bases.values()].map((match) => nameMistake(context, match.ratios[0]!.figure, match.ratios[0]!.ratio, match.row));
    return ["doubtful", `${stated}: ${fill(texts["apart_bases"]!, { factor: mistakes.doubtful_factor })}${named.find(Boolean) ?? ""}`];
  }
  return ["depends", `${stated}: ${fill(texts["depends"]!, { step: texts[run.latency_basis ? "rows_say_no" : "state_basis"]! })}`];
}

type Ratio = Match["ratios"][number];

function describeMatch(context: Context, match: Match, ratio: Ratio = match.ratios[0]!): string {
  const interval = getInterval(ratio.figure, match.row);
  const ends = interval ? ` (${formatPlain(ratio.ours / interval[1])} to ${formatPlain(ratio.ours / interval[0])})` : "";
  return fill(context.rules.texts["nearest"]!, { ratio: formatPlain(ratio.ratio) + ends, kind: context.rules.rows[match.group]!, row: describeRow(context, match, ratio) });
}

/** The stated interval of a figure of a row; that of an amortised latency is that of the throughput, too. */
function getInterval(figure: string, row: Row): [number, number] | null {
  const ends = ["low", "high"].map((end) => row[`latency_ms_${end}`] as number | null | undefined);
  const [low, high] = ends;
  const batch = row["batch_size"] as number | null;
  if (!low || !high || low === high) return null;
  if (figure === "latency_ms") return [low, high];
  return figure === "throughput" && row["run_id"] && batch ? [(batch * 1000) / high, (batch * 1000) / low] : null;
}

function describeRow({ known }: Context, { row }: Match, ratio: Ratio): string {
  const unit = ratio.figure === "throughput" ? `${row["item"] ?? "item"}s/s` : "ms";
  const size = new RegExp(known.input_size).exec(String(row["variant"] ?? ""))?.[0];
  const parts = [row["publisher"], row["platform"], size, row["batch_size"] && `batch ${row["batch_size"]}`, row["framework"]];
  return `(${[...parts.filter(Boolean), `${formatExact(ratio.theirs)} ${unit}`].join(", ")})`;
}

/** Says that only rows of packed sequences have the machine, batch and precision; "" where others have. */
function describePacked(context: Context, rows: Row[], matches: Match[]): string {
  if (matches.some(({ row }) => isSameSetUp(context, row))) return "";
  const packed = { ...context, run: { ...context.run, packed: "true" } };
  const count = rows.filter((row) => row["model"] === context.run.model && isSameSetUp(packed, row) && findObstacle(packed, row) === null && findMissingFigure(packed, row) === null).length;
  return count ? `; ${count === 1 ? "1 row" : `${count} rows`} ${fill(context.rules.texts["packed_rows"]!, { have: count === 1 ? "has" : "have" })}` : "";
}
