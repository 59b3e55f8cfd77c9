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
