import { WithData } from "./data";
import { formatFigure } from "./format";
import type { Prediction } from "./load";
import { Origin } from "./marks";
import { Choice, Fields, inCode } from "./parts";
import { formatHash, setParameter } from "./route";

export function Emulator({ query }: { query: URLSearchParams }) {
  return (
    <WithData name="emulator" loading="Loading the predictions">
      {(predictions) => (
        <div class="emulator">
          <h2>
            Predictions without an IPU <Origin origin="emulated" />
          </h2>
          <p class="warning">
            Every figure here is <strong>emulated, not measured</strong>: calculated from the architecture, with two numbers fitted on
            the paper's six C2 rows. Nothing is executed here: the predictions were made when this page was built.
          </p>
          <Form predictions={predictions} query={query} />
          <p>
            <a href={formatHash("charts", "predicted")}>How close are predictions to published figures?</a>
          </p>
        </div>
      )}
    </WithData>
  );
}

interface Picked {
  values: string[];
  picked: string;
  matches: Prediction[];
}

function Form({ predictions, query }: { predictions: Prediction[]; query: URLSearchParams }) {
  const choose = (from: Prediction[], field: "target" | "model" | "batch_size", parameter: string): Picked => {
    const values = [...new Set(from.map((prediction) => String(prediction[field])))];
    const requested = query.get(parameter);
    const picked = requested && values.includes(requested) ? requested : values[0]!;
    return { values, picked, matches: from.filter((prediction) => String(prediction[field]) === picked) };
  };
  const offer = (label: string, parameter: string, { values, picked }: Picked) => (
    <Choice label={label} value={picked} options={values.map((value) => [value, value])} onChange={(value) => setParameter(parameter, value)} />
  );
  const target = choose(predictions, "target", "target");
  const model = choose(target.matches, "model", "model");
  const batch = choose(model.matches, "batch_size", "batch");
  return (
    <section aria-labelledby="predict">
      <h3 id="predict">Predict a batch</h3>
      <form class="predict" onSubmit={(event) => event.preventDefault()}>
        {offer("Target", "target", target)}
        {offer("Model", "model", model)}
        {offer("Batch over all chips", "batch", batch)}
      </form>
      <Predicted prediction={batch.matches[0]!} />
    </section>
  );
}

function Predicted({ prediction }: { prediction: Prediction }) {
  const { memory_verdict: verdict, power_w: power } = prediction;
  const milliseconds = (value: number) => `${formatFigure(value, 3)} ms`;
  const memory = (
    <>
      <strong class={`memory memory-${verdict.toLowerCase()}`}>{verdict}</strong>
      {verdict !== "FITS" && " (the time is shown all the same)"}
    </>
  );
  return (
    <div class="predicted" aria-live="polite">
      <p class="big">
        <Origin origin="emulated" />{" "}
        <span class="whole">
          ≈ {formatFigure(prediction.latency_ms, 3)} <small>ms latency</small> ·
        </span>{" "}
        <span class="whole">
          ≈ {formatFigure(prediction.throughput, 4)} <small>images/s</small>
        </span>
      </p>
      <Fields
        of={{
          "Band of the latency": `${formatFigure(prediction.latency_ms_low, 3)} to ${milliseconds(prediction.latency_ms_high)}`,
          Memory: memory,
          "On the device": `${milliseconds(prediction.device_ms)}, of it ${formatPercent(prediction.compute_share)} compute, ${formatPercent(prediction.exchange_share)} exchange, ${formatPercent(prediction.superstep_share)} supersteps`,
          "Host path": `${milliseconds(prediction.protocol_ms)}, protocol ${prediction.protocol}`,
          "Batch of a chip": prediction.micro_batch_size,
          Power: power !== null && `≈ ${formatFigure(power, 3)} W, ± 10 % and not validated`,
          Calibration: inCode(prediction.calibration_id),
        }}
      />
    </div>
  );
}

function formatPercent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
