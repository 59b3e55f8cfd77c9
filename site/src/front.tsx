// The chart of the start page: throughput a chip against latency, a line for each machine, which a reader can switch off.
import { useRef, useState } from "preact/hooks";
import { useWidth } from "./chart";
import { useMedia } from "./data";
import { formatFigure } from "./format";
import type { FrontMachine, FrontPoint, StartData } from "./load";
import { adaptColor } from "./palette";
import { openPanel } from "./route";

const DIGITS = 4;
const HEIGHT = 300;
const LEFT = 52; // for the labels of the axis
const BOTTOM = 40;
const TOP = 22;
const RIGHT = 14;
const ROOM = 1.25; // a factor between the outermost points and the edge
const STEPS = [1, 2, 5];

type Scale = (value: number) => number;

/** A scale by logarithm from the values, with some room, to pixels. */
function makeScale(values: number[], from: number, to: number): Scale {
  const low = Math.log(Math.min(...values) / ROOM);
  const high = Math.log(Math.max(...values) * ROOM);
  return (value) => from + ((to - from) * (Math.log(value) - low)) / (high - low);
}

/** The round numbers between the outermost values. */
function listTicks(values: number[]): number[] {
  const low = Math.min(...values) / ROOM;
  const high = Math.max(...values) * ROOM;
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
    for (const step of STEPS) {
      const tick = step * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  return ticks;
}

export function Front({ front }: { front: StartData["front"] }) {
  const [hidden, setHidden] = useState<string[]>([]);
  const toggle = (machine: string) => setHidden(hidden.includes(machine) ? hidden.filter((name) => name !== machine) : [...hidden, machine]);
  const dark = useMedia("(prefers-color-scheme: dark)");
  const color = (machine: FrontMachine) => (dark ? adaptColor(machine.color) : machine.color);
  return (
    <figure class="front">
      <figcaption>{front.title}</figcaption>
      <div class="machines" role="group" aria-label="Machines in the chart">
        {front.machines.map((machine) => (
          <label key={machine.name}>
            <input type="checkbox" checked={!hidden.includes(machine.name)} onChange={() => toggle(machine.name)} />
            <i style={{ background: color(machine) }} /> {machine.name} <small>{machine.chips}</small>
          </label>
        ))}
      </div>
      <Drawing front={front} shown={(machine) => !hidden.includes(machine.name)} color={color} />
      <p>
        <small>{front.note}</small> <a href={front.link}>All rows as a table</a>
      </p>
    </figure>
  );
}

interface DrawingProps {
  front: StartData["front"];
  shown: (machine: FrontMachine) => boolean;
  color: (machine: FrontMachine) => string;
}

function Drawing({ front, shown, color }: DrawingProps) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box, 0);
  const points = front.machines.flatMap((machine) => machine.points); // of all, so that the axes stay
  const latencies = points.map(({ latency_ms }) => latency_ms);
  const rates = points.map(({ throughput_per_chip }) => throughput_per_chip);
  const x = makeScale(latencies, LEFT, width - RIGHT);
  const y = makeScale(rates, HEIGHT - BOTTOM, TOP);
  return (
    <div ref={box} style={{ minHeight: `${HEIGHT}px` }}>
      {width > 0 && (
        <svg width={width} height={HEIGHT} role="img" aria-label={`${front.title} ${front.note}`}>
          {listTicks(rates).map((tick) => (
            <g key={tick} class="tick">
              <line x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
              <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
                {formatFigure(tick)}
              </text>
            </g>
          ))}
          {listTicks(latencies).map((tick) => (
            <text key={tick} class="tick" x={x(tick)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
              {formatFigure(tick)}
            </text>
          ))}
          <text x={4} y={12}>
            ↑ {front.y_title}
          </text>
          <text x={width - RIGHT} y={HEIGHT - 6} text-anchor="end">
            {front.x_title} →
          </text>
          {front.machines.filter(shown).map((machine) => (
            <g key={machine.name} style={{ color: color(machine) }}>
              <polyline points={machine.points.map((point) => `${x(point.latency_ms)},${y(point.throughput_per_chip)}`).join(" ")} />
              {machine.points.map((point) => (
                <circle
                  key={point.result_id}
                  cx={x(point.latency_ms)}
                  cy={y(point.throughput_per_chip)}
                  r={5}
                  onClick={() => openPanel(point.result_id)}
                >
                  <title>{describePoint(machine, point)}</title>
                </circle>
              ))}
            </g>
          ))}
        </svg>
      )}
    </div>
  );
}

function describePoint({ name, chips }: FrontMachine, point: FrontPoint): string {
  const rate = formatFigure(point.throughput_per_chip, DIGITS);
  const latency = formatFigure(point.latency_ms, DIGITS);
  return `${name}, ${chips}, batch ${point.batch_size}: ${rate} images/s a chip within ${latency} ms. Click for the source`;
}
