// A value of a query's result as text, exactly; what Arrow gives only in parts is refused, never shown wrong.
import { DataType, type Field, Int64, TimeUnit, Vector } from "apache-arrow";

const UNITS_PER_SECOND: Record<number, bigint> = {
  [TimeUnit.SECOND]: 1n,
  [TimeUnit.MILLISECOND]: 1_000n,
  [TimeUnit.MICROSECOND]: 1_000_000n,
  [TimeUnit.NANOSECOND]: 1_000_000_000n,
};
const DAY_S = 86_400n;
// The years 1 to 9999, in milliseconds: before and after, and for infinity, there is no agreed text.
const FIRST = -62_135_596_800_000;
const LAST = 253_402_300_799_999;

/** Texts of a column by row, null for NULL; `sqlType` is what DuckDB calls its type, which says more than Arrow's. */
export function shown(field: Field, column: Vector, sqlType: string): (row: number) => string | null {
  const text = texts(field, sqlType);
  const held = DataType.isTimestamp(field.type) ? units(column) : column;
  return (row) => {
    const value: unknown = held.get(row);
    return value === null || value === undefined ? null : text(value);
  };
}

function texts(field: Field, sqlType: string): (value: unknown) => string {
  const { type, name } = field;
  if (DataType.isDecimal(type)) return (value) => decimal(String(value), type.scale);
  if (DataType.isDate(type)) return (value) => date(Number(value), name);
  if (DataType.isTimestamp(type)) return (value) => timestamp(value as bigint, type.unit, name) + (type.timezone ? "+00" : "");
  if (DataType.isTime(type) && !sqlType.includes("ZONE")) return (value) => time(BigInt(value as bigint), UNITS_PER_SECOND[type.unit]!);
  if (/Decimal|Date|Time|Interval|Duration|Binary/.test(String(type))) throw refused(name, "is of a type");
  return String;
}

function refused(name: string, why: string): Error {
  return new Error(`column ${name} ${why} that this page cannot show; cast it to VARCHAR`);
}

/** Timestamps as the whole numbers that they are kept as, which Arrow's own reading makes milliseconds of. */
function units(column: Vector): Vector<Int64> {
  return new Vector(column.data.map((part) => part.clone(new Int64()))) as Vector<Int64>;
}

/** `digits` over ten to the power of `scale`. */
function decimal(digits: string, scale: number): string {
  if (scale === 0) return digits;
  const sign = digits.startsWith("-") ? "-" : "";
  const whole = digits.slice(sign.length).padStart(scale + 1, "0");
  return `${sign}${whole.slice(0, -scale)}.${whole.slice(-scale)}`;
}

function date(milliseconds: number, name: string): string {
  if (!(milliseconds >= FIRST && milliseconds <= LAST)) throw refused(name, "holds a date");
  return new Date(milliseconds).toISOString().slice(0, 10);
}

function timestamp(at: bigint, unit: TimeUnit, name: string): string {
  const perSecond = UNITS_PER_SECOND[unit]!;
  const day = DAY_S * perSecond;
  const within = ((at % day) + day) % day;
  return `${date(Number(((at - within) / perSecond) * 1000n), name)} ${time(within, perSecond)}`;
}

function time(units: bigint, perSecond: bigint): string {
  const seconds = units / perSecond;
  const parts = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((part) => String(part).padStart(2, "0"));
  const rest = units % perSecond;
  const fraction = String(rest).padStart(String(perSecond).length - 1, "0").replace(/0+$/, "");
  return parts.join(":") + (rest ? `.${fraction}` : "");
}
