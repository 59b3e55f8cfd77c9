// A value of a query's result as text, exactly; a type that Arrow gives only in parts is refused, never shown wrong.
import { DataType, type Field, TimeUnit } from "apache-arrow";

const UNITS_PER_SECOND: Record<number, bigint> = {
  [TimeUnit.SECOND]: 1n,
  [TimeUnit.MILLISECOND]: 1_000n,
  [TimeUnit.MICROSECOND]: 1_000_000n,
  [TimeUnit.NANOSECOND]: 1_000_000_000n,
};

export function shown(field: Field): (value: unknown) => string {
  const { type } = field;
  if (DataType.isDecimal(type)) return (value) => decimal(String(value), type.scale);
  if (DataType.isDate(type)) return (value) => new Date(Number(value)).toISOString().slice(0, 10);
  if (DataType.isTimestamp(type)) return (value) => new Date(Number(value)).toISOString().replace("T", " ").replace(/(\.000)?Z$/, "");
  if (DataType.isTime(type)) return (value) => time(BigInt(value as bigint), UNITS_PER_SECOND[type.unit] ?? 1n);
  if (/Decimal|Date|Time|Interval|Duration|Binary/.test(String(type)))
    throw new Error(`column ${field.name} is of a type that this page cannot show; cast it to VARCHAR`);
  return String;
}

/** `digits` over ten to the power of `scale`. */
function decimal(digits: string, scale: number): string {
  if (scale === 0) return digits;
  const sign = digits.startsWith("-") ? "-" : "";
  const whole = digits.slice(sign.length).padStart(scale + 1, "0");
  return `${sign}${whole.slice(0, -scale)}.${whole.slice(-scale)}`;
}

function time(units: bigint, perSecond: bigint): string {
  const seconds = units / perSecond;
  const parts = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((part) => String(part).padStart(2, "0"));
  const rest = units % perSecond;
  return parts.join(":") + (rest ? `.${String(rest).padStart(String(perSecond).length - 1, "0")}` : "");
}
