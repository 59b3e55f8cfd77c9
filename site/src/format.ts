import type { Value } from "./frame";

const GROUPED = new Intl.NumberFormat("en", { maximumSignificantDigits: 15 });

/** Formats a figure with every digit, or with some `digits` where the emulator calculated it. */
export function formatFigure(value: Value, digits?: number): string {
  if (typeof value !== "number") return value ?? "";
  return GROUPED.format(digits === undefined ? value : Number(value.toPrecision(digits)));
}

export function formatCount(count: number, noun: string): string {
  return `${GROUPED.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function equalIgnoringCase(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase();
}

export function formatError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Columns that are computed, so that the table rounds them; the panel and downloads have every digit. */
export const ROUNDED = new Set(["minutes", "throughput_per_chip", "throughput_implied", "throughput_per_1000_usd"]);
export const ROUNDED_DIGITS = 5;
export const MANY_DIGITS = 9; // a figure with more was computed by its source, not read from a page

/** The printed column behind a computed one. */
export const SOURCES: Record<string, string> = {
  minutes: "time_to_train_s",
  throughput_per_chip: "throughput",
  throughput_per_1000_usd: "throughput",
};

/** The unit of a figure; that of a throughput names its item. */
export function formatUnit(name: string, item: string): string {
  return (UNITS[name] ?? ENDINGS[name.split("_").at(-1)!] ?? "").replace("items", `${item || "item"}s`).replace("per item", `per ${item || "item"}`);
}

export const INTERESTS: Record<string, string> = {
  maker: "the maker of the chip",
  rival: "a maker of other chips",
  neither: "a party that makes no chip",
  both: "a maker together with others",
  own: "this project",
  submitted: "a contributor to this project",
};

const ENDINGS: Record<string, string> = { ms: "ms", s: "s", w: "W", j: "J" };
const UNITS: Record<string, string> = {
  throughput: "items/s",
  efficiency: "items/s/W",
  energy_per_item_j: "J per item",
  minutes: "min",
  throughput_per_chip: "items/s per chip",
  chip_throughput: "items/s per chip",
  throughput_per_1000_usd: "items/s per $1,000",
  batch_size: "items",
};

export const TITLES: Record<string, string> = {
  throughput: "Throughput",
  latency_ms: "Latency",
  latency_isolated_ms: "Latency with nothing else in flight",
  latency_p90_ms: "Latency, 90th percentile",
  latency_p99_ms: "Latency, 99th percentile",
  latency_min_ms: "Shortest latency",
  latency_median_ms: "Median latency",
  latency_max_ms: "Longest latency",
  latency_std_ms: "Standard deviation of the latency",
  latency_ms_low: "Lower end of the latency",
  latency_ms_high: "Upper end of the latency",
  interval_confidence: "Coverage of the interval",
  efficiency: "Efficiency",
  power_w: "Power",
  energy_per_item_j: "Energy per item",
  run_energy_j: "Energy of the run",
  time_to_train_s: "Time to train",
  time_to_result_s: "Time to result",
  minutes: "Time to train",
  throughput_per_chip: "Throughput per chip",
  throughput_per_1000_usd: "Throughput per $1,000 of list price",
  batch_size: "Batch size",
  quality_value: "Quality",
};
