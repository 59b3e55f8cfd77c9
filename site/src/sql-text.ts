// Exact texts of the values of a query. A type whose text Arrow cannot format exactly is refused.
import { DataType, type Field, Int64, TimeUnit, Vector } from "apache-arrow";

const UNITS_PER_SECOND: Record<number, bigint> = {
  [TimeUnit.SECOND]: 1n,
  [TimeUnit.MILLISECOND]: 1_000n,
  [TimeUnit.MICROSECOND]: 1_000_000n,
  [TimeUnit.NANOSECOND]: 1_000_000_000n,
};
const DAY_S = 86_400n;
// The years 1 to 9999, in milliseconds. Years before and after, and infinity, have no agreed text.
const FIRST = -62_135_596_800_000;
const LAST = 253_402_300_799_999;

/** Returns a function from row to text, null for NULL. `sqlType` is DuckDB's type, more precise than Arrow's. */
export function makeFormatter(field: Field, column: Vector, sqlType: string): (row: number) => string | null {
  const format = selectFormat(field, sqlType);
  const values = DataType.isTimestamp(field.type) ? readTimestamps(column) : column;
  return (row) => {
    const value: unknown = values.get(row);
    return value === null || value === undefined ? null : format(value);
  };
}

function selectFormat(field: Field, sqlType: string): (value: unknown) => string {
  const { type, name } = field;
  if (DataType.isDecimal(type)) return (value) => formatDecimal(String(value), type.scale);
  if (DataType.isDate(type)) return (value) => formatDate(Number(value), name);
  if (DataType.isTimestamp(type)) return (value) => formatTimestamp(value as bigint, type.unit, name) + (type.timezone ? "+00" : "");
  if (DataType.isTime(type) && !sqlType.includes("ZONE")) return (value) => formatTime(BigInt(value as bigint), UNITS_PER_SECOND[type.unit]!);
  if (/Decimal|Date|Time|Interval|Duration|Binary/.test(String(type))) throw makeRefusal(name, "is of a type");
  return String;
}

function makeRefusal(name: string, problem: string): Error {
  return new Error(`column ${name} ${problem} that this page cannot show; cast it to VARCHAR`);
}

/** Reads timestamps as the integers they are stored as; Arrow itself would round them to milliseconds. */
function readTimestamps(column: Vector): Vector<Int64> {
  return new Vector(column.data.map((part) => part.clone(new Int64()))) as Vector<Int64>;
}

/** Formats `digits` over ten to the power of `scale`. */
function formatDecimal(digits: string, scale: number): string {
  if (scale === 0) return digits;
  const sign = digits.startsWith("-") ? "-" : "";
  const whole = digits.slice(sign.length).padStart(scale + 1, "0");
  return `${sign}${whole.slice(0, -scale)}.${whole.slice(-scale)}`;
}

function formatDate(milliseconds: number, name: string): string {
  if (!(milliseconds >= FIRST && milliseconds <= LAST)) throw makeRefusal(name, "holds a date");
  return new Date(milliseconds).toISOString().slice(0, 10);
}

function formatTimestamp(value: bigint, unit: TimeUnit, name: string): string {
  const perSecond = UNITS_PER_SECOND[unit]!;
  const day = DAY_S * perSecond;
  const within = ((value % day) + day) % day;
  return `${formatDate(Number(((value - within) / perSecond) * 1000n), name)} ${formatTime(within, perSecond)}`;
}

function formatTime(units: bigint, perSecond: bigint): string {
  const seconds = units / perSecond;
  const parts = [seconds / 3600n, (seconds / 60n) % 60n, seconds % 60n].map((part) => String(part).padStart(2, "0"));
  const rest = units % perSecond;
  const fraction = String(rest).padStart(String(perSecond).length - 1, "0").replace(/0+$/, "");
  return parts.join(":") + (rest ? `.${fraction}` : "");
}
