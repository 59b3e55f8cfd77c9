// The published rows that are nearest to a run, and those that may not be compared with it. The rules are data of
// schema/comparison.toml, as for `ipu-results compare`; tests/site/test_site_compare.py compares the two.
import type { Frame, Row, Value } from "./frame";

/** A column in which a run and a row must agree; schema/comparison.toml says how each kind compares. */
interface Rule {
  column: string;
  kind: string;
  what?: string;
  reason?: string;
  blank?: boolean;
  blank_words?: string;
  figures?: string[];
}

export interface Rules {
  max_batch_factor: number;
  mlperf: string;
  same_latency: string[][];
  rules: Rule[];
  figure_rules: Rule[];
  reasons: Record<string, string>;
  distance: Record<string, number>;
  groups: Record<string, string>;
  rows: Record<string, string>;
  texts: Record<string, string>;
  mistakes: Record<MistakeLimit, number> & { several: number[]; factors: { figure: string; factor: string; question: string }[] };
}

type MistakeLimit =
  | "near" | "far" | "max_questions" | "doubtful_factor" | "far_below" | "latency_margin" | "slower_precision" | "same_speed" | "high_share"
  | "system" | "low_share";

/** What the command knows besides rows and rules: machines and chips, operations of networks, items, spellings, physics. */
export interface Known {
  machines: Record<string, [string | null, string | null, number | null]>;
  items: Record<string, string>;
  precisions: Record<string, string>; // the name that spellings share, by spelling without case, blanks, hyphens and underscores
  types: Record<string, string>; // of precisions, as in the peaks
  chips: Record<string, { peaks: Record<string, number>; is_accelerator: boolean }>; // peaks in 10¹² operations per second
  accelerators: string[]; // chips that a visitor may have, also those of no machine here
  operations: Record<string, Record<string, [number, boolean]>>; // by model and variant: MACs, and whether they hold for training
  figures: string[];
  doubts: Frame; // the errors of a result, and why it is suspect
  per_item: string;
  input_size: string;
  sequence_length: string;
  physics: Record<"min_batches_in_flight" | "max_batches_in_flight" | "doubtful_batches_in_flight" | "wrong_batches_in_flight" | "flop_per_mac" | "training_passes", number>;
}

/** A run in the columns of `results`; null is not stated. */
export interface Run {
  model: string;
  task: string;
  platform: string | null;
  chip: string | null; // of a machine that the record does not have
  chip_count: number | null; // null: all of the machine
  batch_size: number | null;
  precision: string | null;
  framework: string | null;
  phase: string | null;
  sequence_length: number | null;
  latency_basis: string | null;
  throughput: number | null;
  latency_ms: number | null;
}

export interface Match {
  group: string;
  row: Row;
  distance: number;
  ratios: { figure: string; ours: number; theirs: number; ratio: number }[];
  not_compared: Record<string, string>;
  ratio_per_chip: number | null;
}

export interface Nearest {
  matches: Match[];
  refusals: { reason: string; rows: number }[];
}

const FIGURES = ["throughput", "latency_ms"] as const; // those that the form asks for

export interface Data {
  rows: Row[];
  rules: Rules;
  known: Known;
}

export interface Context {
  rules: Rules;
  known: Known;
  run: Run & { item: string | null; family: string | null };
}

/** Adds to a run what follows from its machine and model. */
export function makeContext({ rules, known }: Data, run: Run): Context {
  const [family, chip, chip_count] = (run.platform !== null && known.machines[run.platform]) || [null, null, null];
  return { rules, known, run: { ...run, family, chip: run.chip ?? chip, chip_count: run.chip_count ?? chip_count, item: known.items[run.model] ?? null } };
}

/** Finds the nearest row of each group, and of each latency basis where a latency is stated without one. */
export function findNearest(data: Data, run: Run): Nearest {
  const { rows, rules } = data;
  const context = makeContext(data, run);
  const refused = new Map<string, number>();
  const comparable: { row: Row; distance: number }[] = [];
  for (const row of rows) {
    if (row["model"] !== run.model) continue;
    const reason = findObstacle(context, row) ?? findMissingFigure(context, row);
    if (reason === null) comparable.push({ row, distance: computeDistance(context, row) });
    else refused.set(reason, (refused.get(reason) ?? 0) + 1);
  }
  comparable.sort((left, right) => left.distance - right.distance || compareSources(left.row, right.row));
  const nearest = new Map<string, Match>();
  for (const { row, distance } of comparable) {
    const group = getGroup(row);
    const match = makeMatch(context, row, distance, group);
    const isOpen = run.latency_basis === null && match.ratios[0]!.figure === "latency_ms";
    const basis = isOpen ? getBasis(row) : null;
    const isFirst = ![...nearest.values()].some((other) => other.group === group);
    if (isFirst || (basis !== null && !nearest.has(`${group}/${basis}`))) nearest.set(`${group}/${basis}`, match);
  }
  return {
    matches: Object.keys(rules.groups).flatMap((group) => [...nearest.values()].filter((match) => match.group === group)),
    refusals: sortRefusals(refused, run.task),
  };
}

export function fill(template: string, words: Record<string, Value>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => String(words[name]));
}

/** A value as a reason names it: the command writes True for a flag. */
const word = (value: Value | boolean, blank: string) => (value === null ? blank : value === true ? "True" : (value as Value));

function refuse(rules: Rules, rule: Rule, ours: Value | boolean, theirs: Value | boolean, reason = rule.reason ?? "differ"): string {
  const blank = rule.blank_words ?? rules.reasons["not_stated"]!;
  const words = { what: rule.what ?? "", ours: word(ours, blank), theirs: word(theirs, blank), factor: rules.max_batch_factor };
  return fill(rules.reasons[reason]!, words);
}

/** Why a row may not be compared at all; null where it may. */
export function findObstacle(context: Context, row: Row): string | null {
  const { rules, run } = context;
  for (const rule of rules.rules) {
    const [ours, theirs] = [getValue(run, rule.column), getValue(row, rule.column)];
    const check = rule.kind === "factor" ? findBatchObstacle : findRuleObstacle;
    const obstacle = check(context, rule, ours, theirs);
    if (obstacle !== null) return obstacle;
  }
  return null;
}

/** A value of a run or a row, null for none; flags of the record are words. */
function getValue(values: object, name: string): Value | boolean {
  const value = (values as Record<string, Value>)[name] ?? null;
  return value === "true" ? true : value === "false" ? false : value;
}

/** Why two values break a rule; null where they agree. The kinds are those of schema/comparison.toml. */
function findRuleObstacle({ rules, known }: Context, rule: Rule, ours: Value | boolean, theirs: Value | boolean): string | null {
  const kinds: Record<string, () => boolean> = {
    equal: () => (ours ?? rule.blank) === (theirs ?? rule.blank),
    stated: () => ours !== null && ours === theirs,
    known: () => !ours || !theirs || ours === theirs,
    absent: () => !theirs,
    another: () => theirs === null || ours !== theirs,
    mlperf: () => theirs !== rules.mlperf, // the form has no benchmark
    latency: () =>
      ours === theirs ||
      (!(ours && theirs) && ![ours, theirs].includes(known.per_item)) ||
      rules.same_latency.some((pair) => pair.includes(String(ours)) && pair.includes(String(theirs))),
  };
  return kinds[rule.kind]!() ? null : refuse(rules, rule, ours, theirs);
}

/** Why the batch sizes of two inference rows are too far apart; null where they are not. */
function findBatchObstacle({ rules, run }: Context, rule: Rule, ours: Value | boolean, theirs: Value | boolean): string | null {
  if (run.task !== "inference" || (ours === null && theirs === null)) return null;
  if (ours === null) return refuse(rules, rule, ours, theirs, "batch_not_stated");
  const ratio = theirs === null ? 1 : Number(ours) / Number(theirs);
  return Math.max(ratio, 1 / ratio) > rules.max_batch_factor ? refuse(rules, rule, ours, theirs) : null;
}

/** Why one figure may not be compared although the rows may; null where it may. */
function findFigureObstacle(context: Context, figure: string, row: Row): string | null {
  for (const rule of context.rules.figure_rules.filter(({ figures }) => figures!.includes(figure))) {
    const theirs = rule.kind === "latency" ? getBasis(row) : getValue(row, rule.column);
    const obstacle = findRuleObstacle(context, rule, getValue(context.run, rule.column), theirs);
    if (obstacle !== null) return obstacle;
  }
  return null;
}

/** What the latency of a row times; that of a run here is amortised over its batches. */
export const getBasis = (row: Row) => (row["latency_basis"] ?? (row["run_id"] ? "amortised" : null)) as string | null;

const listShared = (run: Run, row: Row) => FIGURES.filter((name) => run[name] !== null && (row[name] ?? null) !== null);

/** Why no figure of a row can be compared; null where one can. */
export function findMissingFigure(context: Context, row: Row): string | null {
  const { rules, known, run } = context;
  const obstacles = listShared(run, row).map((name) => findFigureObstacle(context, name, row));
  if (obstacles.length === 0) {
    const ours = FIGURES.filter((name) => run[name] !== null).join(", ");
    const theirs = known.figures.filter((name) => (row[name] ?? null) !== null).join(", ");
    return fill(rules.reasons["no_figure"]!, { ours, theirs: theirs || "none" });
  }
  return obstacles.includes(null) ? null : [...new Set(obstacles)].join("; ");
}

function computeDistance({ rules, run }: Context, row: Row): number {
  const parts = rules.distance as Record<string, number>;
  const weigh = (ours: Value, theirs: Value, name: string) =>
    ours === null || theirs === null ? parts[`unknown_${name}`]! : ours === theirs ? 0 : parts[`other_${name}`]!;
  const theirs = (name: string) => row[name] ?? null;
  const batch = theirs("batch_size") as number | null;
  const ofBatch = run.batch_size === null || batch === null ? (run.batch_size === batch ? 0 : parts["unknown_batch"]!) : parts["per_doubled_batch"]! * logRatio(run.batch_size, batch);
  return (
    computeMachineDistance(parts, run, row) +
    ofBatch +
    weigh(run.precision, theirs("precision"), "precision") +
    weigh(run.framework, theirs("framework"), "framework") +
    (theirs("variant") ? parts["other_variant"]! : 0) +
    (theirs("sdk_version") ? parts["other_sdk"]! : 0)
  );
}

/** Whether a flag of a run or of a row, where it is a word, is set. */
export const isSet = (value: Value | boolean | undefined) => value === true || value === "true";

function computeMachineDistance(parts: Record<string, number>, run: Context["run"], row: Row): number {
  if (run.platform === null) return parts["unknown_machine"]!;
  const chips = row["chip_count"] as number | null;
  if (run.platform === row["platform"] && (!run.chip_count || !chips || run.chip_count === chips)) return 0;
  if (run.chip !== null && run.chip === row["chip"]) return parts["other_chip_count"]! + logRatio(run.chip_count, chips);
  return run.family !== null && run.family === row["family"] ? parts["other_chip"]! : parts["other_family"]!;
}

function logRatio(ours: number | null, theirs: number | null): number {
  return ours && theirs ? Math.abs(Math.log2(ours / theirs)) : 0;
}

/** The order of equally near rows: the newest first, then as the sources print them. */
function compareSources(left: Row, right: Row): number {
  const [first, second] = [left, right].map((row) => String(row["published_on"] ?? ""));
  if (first !== second) return first! > second! ? -1 : 1;
  return comparePlaces(left, right);
}

/** The order in which the sources print rows. */
export function comparePlaces(left: Row, right: Row): number {
  for (const name of ["document_id", "table_name", "row_number", "result_id"]) {
    const [one, other] = [left[name] ?? null, right[name] ?? null];
    if (one === other) continue;
    if (one === null || other === null) return one === null ? 1 : -1;
    return one < other ? -1 : 1;
  }
  return 0;
}

export function getGroup(row: Row): string {
  return row["origin"] === "emulated" ? "emulated" : String(row["relationship"] ?? "unknown");
}

function makeMatch(context: Context, row: Row, distance: number, group: string): Match {
  const { run } = context;
  const ratios: Match["ratios"] = [];
  const refused: Record<string, string> = {};
  for (const figure of listShared(run, row)) {
    const obstacle = findFigureObstacle(context, figure, row);
    const [ours, theirs] = [run[figure]!, row[figure] as number];
    if (obstacle === null) ratios.push({ figure, ours, theirs, ratio: ours / theirs });
    else refused[figure] = obstacle;
  }
  const chips = row["chip_count"] as number | null;
  const other = ratios[0]?.figure === "throughput" && run.chip_count && chips && run.chip_count !== chips;
  return { group, row, distance, ratios, not_compared: refused, ratio_per_chip: other ? (ratios[0]!.ratio / run.chip_count!) * chips! : null };
}

/** The largest groups first; rows of another task, which nothing could make comparable, last. */
function sortRefusals(refused: Map<string, number>, task: string): Nearest["refusals"] {
  const isTask = (reason: string) => Number(reason.endsWith(`may not be compared with ${task}`));
  return [...refused]
    .map(([reason, rows]) => ({ reason, rows }))
    .sort((left, right) => isTask(left.reason) - isTask(right.reason) || right.rows - left.rows || (left.reason < right.reason ? -1 : 1));
}
