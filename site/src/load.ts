// Scripts next to the page, each loaded once. A page opened from disk can load scripts, but neither modules nor JSON.
import { expand, type Frame, isFrame } from "./frame";

export type Severity = "error" | "warn" | "info";

/** A few values, and one to compare them with. */
export interface Bars {
  bars: { label: string; value: number }[];
  unit: string;
  rule: { label: string; value: number } | null;
}

export interface Finding extends Bars {
  name: string;
  title: string;
  figure: string;
  text: string;
  objection: string;
  reading: string; // what the bars show
  link: string;
  link_text: string;
}

/** A row that no other of its machine beats in both throughput and latency. */
export interface FrontPoint {
  result_id: string;
  batch_size: number;
  latency_ms: number;
  throughput_per_chip: number;
}

export interface FrontMachine {
  name: string;
  chips: string; // "4 chips"
  color: string;
  points: FrontPoint[]; // by latency
}

export interface StartData {
  front: { title: string; note: string; link: string; x_title: string; y_title: string; machines: FrontMachine[] };
  build: { version: string | null; as_of: string; build_id: string; documents: number };
  counts: { results: number; left_out: number; documents: number; claims: number; errors: number };
  repository: string;
  findings: Finding[];
}

export interface ResultsData {
  results: Frame;
  figures: Frame; // those that few results have; `row` is the position of the result
  flags: Frame; // likewise
  aliases: Record<string, Record<string, string>>; // other names by column and name
  prices: Record<string, number>; // list prices in USD by platform
  sets: Record<string, number[]>;
  rules: Record<string, string>;
  questions: Record<string, string>;
}

export interface ChartData {
  name: string;
  question: string;
  finding: string;
  shows: string[]; // what the chart draws, and how to read it
  figures: string[]; // paragraphs
  caveats: string[]; // sentences
  views: string[];
  numbers: NumberTable[];
  specification: Record<string, unknown>;
}

/** What a chart draws, as a table; `ids` are those of the results, where a row is one. */
export interface NumberTable {
  headings: string[];
  rows: (string | number | null)[][];
  ids: (string | null)[];
}

export interface Prediction {
  target: string;
  model: string;
  batch_size: number;
  micro_batch_size: number;
  throughput: number;
  latency_ms: number;
  latency_ms_low: number;
  latency_ms_high: number;
  device_ms: number;
  protocol_ms: number;
  power_w: number | null;
  memory_verdict: string;
  protocol: string;
  calibration_id: string;
  compute_share: number;
  exchange_share: number;
  superstep_share: number;
}

export interface RowFlag {
  rule: string;
  severity: Severity;
  title: string;
  column_name: string;
  message: string;
  suggested: string | null;
  statement: string; // the SQL of the rule, with what it flags and why in front
}

export interface Use {
  claim_id: string;
  result_id: string;
}

export interface Data {
  start: StartData;
  results: ResultsData;
  provenance: Record<"cells" | "documents" | "flags" | "rules" | "configurations" | "runs", Frame>;
  mlperf: Record<"entries" | "logs", Frame>;
  claims: Record<"claims" | "recomputations" | "contradictions", Frame> & { uses: Use[] };
  charts: ChartData[];
  rankings: Frame;
  replications: Frame;
  history: Frame; // figures that a page changed
  citations: { dataset: string; results: Record<string, [footnote: string, bibtex: string]> }; // by result_id
  run: Known;
  emulator: Prediction[];
  sql: {
    files: Record<string, string>;
    views: string[]; // and the macros that they use
    relations: { schema_name: string; table_name: string; type: string; description: string }[];
    columns: Frame;
    examples: { title: string; sql: string }[];
  };
}

/** What the form of a run offers, and what follows from its choices. */
export interface Known {
  machines: Record<string, [chip: string | null, chips: number | null]>;
  items: Record<string, string>; // by model
  models: string[]; // that a run may be compared with
  accelerators: string[]; // chips that a visitor may have, also those of no machine here
  precision_names: string[];
  precisions: Record<string, string>; // the name that spellings share, by spelling without case, blanks, hyphens and underscores
}

declare global {
  interface Window {
    __data?: Partial<Data>;
  }
}

const scripts = new Map<string, Promise<void>>();

export function loadScript(path: string): Promise<void> {
  const known = scripts.get(path);
  if (known) return known;
  const loading = new Promise<void>((resolve, reject) => {
    const script = document.createElement("script");
    script.src = path;
    script.onload = () => resolve();
    script.onerror = () => {
      scripts.delete(path); // the next caller tries again
      reject(new Error(`${path} could not be loaded`));
    };
    document.head.append(script);
  });
  scripts.set(path, loading);
  return loading;
}

export async function load<Name extends keyof Data>(name: Name): Promise<Data[Name]> {
  const path = `data/${name}.js`;
  if (!window.__data?.[name]) {
    await loadScript(path);
    const loaded = window.__data?.[name];
    if (loaded) [loaded, ...Object.values(loaded)].filter(isFrame).forEach(expand);
  }
  const data = window.__data?.[name];
  if (!data) throw new Error(`${path} holds no data`);
  return data as Data[Name];
}
