// Scripts next to the page, each loaded once. A page opened from disk can load scripts, but neither modules nor JSON.
import type { Frame } from "./frame";

export type Severity = "error" | "warn" | "info";

/** The flags of all results, by column. */
interface FlagColumns {
  rows: number[];
  rules: string[];
  severities: Severity[];
  columns: string[];
}

export interface ResultsData {
  build: { version: string | null; build_id: string; documents: number };
  results: Frame;
  flags: FlagColumns;
  sets: Record<string, number[]>;
  rules: Record<string, string>;
  questions: Record<string, string>;
}

export interface ChartData {
  name: string;
  question: string;
  views: string[];
  summary: string;
  specification: Record<string, unknown>;
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

export interface Point {
  result_id: string;
  set: string;
  label: string;
  platform: string;
  batch: number;
  published: number;
  emulated: number;
}

export interface Use {
  claim_id: string;
  result_id: string;
}

export interface Data {
  results: ResultsData;
  provenance: Record<"cells" | "documents" | "flags" | "configurations" | "runs", Frame>;
  mlperf: Record<"entries" | "logs", Frame>;
  claims: Record<"claims" | "recomputations" | "contradictions", Frame> & { uses: Use[] };
  charts: ChartData[];
  emulator: { predictions: Prediction[]; points: Point[] };
  sql: {
    files: Record<string, string>;
    views: string[];
    columns: { table_name: string; column_name: string; type: string; unit: string | null; description: string }[];
    examples: { title: string; sql: string }[];
  };
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
  if (!window.__data?.[name]) await loadScript(`data/${name}.js`);
  const data = window.__data?.[name];
  if (!data) throw new Error(`data/${name}.js holds no data`);
  return data as Data[Name];
}
