import { useMemo } from "preact/hooks";
import { Chart } from "./chart";
import type { Dataset } from "./dataset";
import { figure } from "./format";
import { address, change } from "./hash";
import { useData } from "./hooks";
import type { Data, Point, Prediction } from "./load";
import { Origin } from "./marks";

const SETS: Record<string, string> = {
  calibration: "C2 rows that it was fitted on",
  resnext: "ResNeXt101, held out, errors watched",
  ten: "ten others, held out, errors watched",
  honest: "held out, errors not watched",
};

export function Emulator({ query, data }: { query: URLSearchParams; data: Dataset }) {
  const loaded = useData("emulator");
  if (loaded.state === "failed") return <p role="alert">{loaded.why}</p>;
  if (loaded.state === "waiting") return <p role="status">Loading the predictions …</p>;
  return (
    <div class="emulator">
      <h2>
        An IPU without an IPU <Origin origin="emulated" />
      </h2>
      <p class="warning">
        Every figure of the form is <strong>emulated, not measured</strong>: calculated from the architecture, with two numbers
        fitted on the paper's six C2 rows. Nothing runs here; the predictions were made when this page was built.
      </p>
      <Form held={loaded.data} query={query} />
      <Plot points={loaded.data.points} data={data} />
    </div>
  );
}

function unique<Kind>(values: Kind[]): Kind[] {
  return [...new Set(values)];
}

function Form({ held, query }: { held: Data["emulator"]; query: URLSearchParams }) {
  const all = held.predictions;
  const pick = <Name extends "target" | "model" | "batch_size">(from: Prediction[], name: Name) => {
    const known = unique(from.map((one) => String(one[name])));
    const asked = query.get(name === "batch_size" ? "batch" : name);
    return { known, picked: asked && known.includes(asked) ? asked : known[0]! };
  };
  const target = pick(all, "target");
  const ofTarget = all.filter((one) => one.target === target.picked);
  const model = pick(ofTarget, "model");
  const ofModel = ofTarget.filter((one) => one.model === model.picked);
  const batch = pick(ofModel, "batch_size");
  const found = ofModel.find((one) => String(one.batch_size) === batch.picked)!;
  return (
    <section aria-labelledby="predict">
      <h3 id="predict">Predict a batch</h3>
      <form class="predict" onSubmit={(event) => event.preventDefault()}>
        <Choice label="Target" name="target" of={target} />
        <Choice label="Network" name="model" of={model} />
        <Choice label="Batch over all chips" name="batch" of={batch} />
      </form>
      <Predicted one={found} />
    </section>
  );
}

function Choice({ label, name, of }: { label: string; name: string; of: { known: string[]; picked: string } }) {
  return (
    <label>
      {label}
      <select value={of.picked} onChange={(event) => change(name, event.currentTarget.value)}>
        {of.known.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

function Predicted({ one }: { one: Prediction }) {
  const verdict = one.memory_verdict;
  return (
    <div class="predicted" aria-live="polite">
      <p class="big">
        <Origin origin="emulated" />{" "}
        <span class="whole">
          ≈ {figure(one.latency_ms, 3)} <small>ms latency</small> ·
        </span>{" "}
        <span class="whole">
          ≈ {figure(one.throughput, 4)} <small>images/s</small>
        </span>
      </p>
      <dl>
        <dt>Band of the latency</dt>
        <dd>
          {figure(one.latency_ms_low, 3)} to {figure(one.latency_ms_high, 3)} ms
        </dd>
        <dt>Memory</dt>
        <dd>
          <strong class={`memory memory-${verdict.toLowerCase()}`}>{verdict}</strong>
          {verdict !== "FITS" && " (the time is given all the same)"}
        </dd>
        <dt>On the device</dt>
        <dd>
          {figure(one.device_ms, 3)} ms, of it {percent(one.compute_share)} compute,{" "}
          {percent(one.exchange_share)} exchange, {percent(one.superstep_share)} supersteps
        </dd>
        <dt>Host path</dt>
        <dd>
          {figure(one.protocol_ms, 3)} ms, protocol {one.protocol}
        </dd>
        <dt>Batch of a chip</dt>
        <dd>{one.micro_batch_size}</dd>
        {one.power_w !== null && (
          <>
            <dt>Power</dt>
            <dd>≈ {figure(one.power_w, 3)} W, ± 10 % and not validated</dd>
          </>
        )}
        <dt>Calibration</dt>
        <dd>
          <code>{one.calibration_id}</code>
        </dd>
      </dl>
    </div>
  );
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function Plot({ points, data }: { points: Point[]; data: Dataset }) {
  const specification = useMemo(() => plot(points), [points]);
  const clicked = (datum: Record<string, unknown>) => {
    const id = String(datum["result_id"] ?? "");
    if (data.place(id) >= 0) change("show", `${id}.throughput`);
  };
  return (
    <section aria-labelledby="against">
      <h3 id="against">Predicted against published</h3>
      <p>
        Each point is a published row: its time per batch to the right, the <strong>emulated</strong> one upwards. On the line
        both agree; dashed is ± 25 %. Click a point for where its published figure came from, or use the table below.
      </p>
      <Chart specification={specification} label="Emulated against published time per batch, both axes logarithmic; the table below holds its figures" clicked={clicked} />
      <details>
        <summary>The {points.length} points as a table</summary>
        <div class="wide-content" tabIndex={0} role="region" aria-label="Points of the plot">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Row</th>
                <th scope="col">Machine</th>
                <th scope="col" class="right">Batch</th>
                <th scope="col" class="right">Published (ms)</th>
                <th scope="col" class="right">EMULATED (ms)</th>
                <th scope="col" class="right">Off by</th>
                <th scope="col">Set</th>
              </tr>
            </thead>
            <tbody>
              {points.map((one) => (
                <tr key={one.result_id}>
                  <td>
                    <a href={address("results", "", new URLSearchParams({ q: one.result_id }))}>{one.label}</a>
                  </td>
                  <td>{one.platform}</td>
                  <td class="right">{one.batch}</td>
                  <td class="right">{figure(one.published)}</td>
                  <td class="right">≈ {figure(one.emulated, 4)}</td>
                  <td class="right">{((one.emulated / one.published - 1) * 100).toFixed(1)} %</td>
                  <td>{SETS[one.set] ?? one.set}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}

function plot(points: Point[]): Record<string, unknown> {
  const both = points.flatMap((one) => [one.published, one.emulated]);
  const ends = [Math.min(...both) / 1.3, Math.max(...both) * 1.3];
  const scale = { type: "log", domain: ends, nice: false };
  const line = (factor: number) => ({
    data: { values: ends.map((at) => ({ published: at / Math.max(1, factor), emulated: (at / Math.max(1, factor)) * factor })) },
    mark: { type: "line", color: "#555555", strokeWidth: 1, clip: true, strokeDash: factor === 1 ? [1, 0] : [4, 4] },
    encoding: encoding(scale),
  });
  return {
    width: 460,
    height: 460,
    layer: [
      ...[0.75, 1, 1.25].map(line),
      {
        data: { values: points.map((one) => ({ ...one, set: SETS[one.set] ?? one.set })) },
        mark: { type: "point", filled: true, size: 70, opacity: 0.85, cursor: "pointer" },
        encoding: {
          ...encoding(scale),
          shape: { field: "set", type: "nominal", title: null, scale: { domain: Object.values(SETS) } },
          color: {
            field: "set",
            type: "nominal",
            title: null,
            scale: { domain: Object.values(SETS), range: ["#8C6D1F", "#0072B2", "#D55E00", "#009E73"] },
          },
          tooltip: ["label", "platform", "batch", "published", "emulated", "set"].map((field) => ({ field, type: "nominal" })),
        },
      },
    ],
    config: { legend: { orient: "bottom", columns: 2, labelLimit: 0 } },
  };
}

function encoding(scale: Record<string, unknown>) {
  return {
    x: { field: "published", type: "quantitative", title: "Published time per batch (ms)", scale },
    y: { field: "emulated", type: "quantitative", title: "EMULATED time per batch (ms)", scale },
  };
}
