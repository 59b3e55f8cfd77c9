import type { Value } from "./frame";

const GROUPED = new Intl.NumberFormat("en", { maximumSignificantDigits: 15 });

/** Every digit of a figure; `digits` cut one that the emulator calculated. */
export function figure(value: Value, digits?: number): string {
  if (typeof value !== "number") return value ?? "";
  return GROUPED.format(digits === undefined ? value : Number(value.toPrecision(digits)));
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${GROUPED.format(value)} ${value === 1 ? one : many}`;
}

export const UNITS: Record<string, string> = {
  throughput: "items/s",
  latency_ms: "ms",
  efficiency: "items/s/W",
  power_w: "W",
  time_to_train_s: "s",
  time_to_result_s: "s",
  batch_size: "items",
};

export const TITLES: Record<string, string> = {
  throughput: "Throughput",
  latency_ms: "Latency",
  efficiency: "Efficiency",
  power_w: "Power",
  time_to_train_s: "Time to train",
  time_to_result_s: "Time to result",
  batch_size: "Batch size",
  quality_value: "Quality",
};
