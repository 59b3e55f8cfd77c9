// The panel of a figure: where it was printed, what is flagged, and which claims use it.
import { Fragment } from "preact";
import { Boundary } from "./boundary";
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { Dialog } from "./dialog";
import { Actions } from "./actions";
import { formatFigure, formatUnit, INTERESTS, TITLES } from "./format";
import { getRows, getText, type Row } from "./frame";
import type { StartData } from "./load";
import { Origin, Verdict } from "./marks";
import { Official } from "./official";
import { History } from "./history";
import { Others } from "./others";
import { Fields, inCode, join, Section } from "./parts";
import { closePanel, formatHash, setParameter } from "./route";
import { DIGITS, Sources } from "./sources";

/** The cell of the table that the panel is about. */
export interface Figure {
  data: Dataset;
  row: number;
  id: string;
  name: string;
  start: StartData;
}

export function Provenance({ data, show, start }: { data: Dataset; show: string; start: StartData }) {
  const [id = "", column] = show.split(".");
  const row = id ? data.findRow(id) : -1;
  return <Panel key={show} data={data} row={row} id={id} name={column ?? data.findFigure(row)} start={start} />;
}

function Panel(figure: Figure) {
  const { data, row, id, name } = figure;
  return (
    <Dialog onClose={closePanel}>
      {row < 0 ? (
        <Missing kind="result" name={id} />
      ) : !data.has(name) ? (
        <Missing kind="column" name={name} />
      ) : (
        <Boundary hash={location.hash}>
          <Content {...figure} />
        </Boundary>
      )}
    </Dialog>
  );
}

function Missing({ kind, name }: { kind: string; name: string }) {
  return (
    <>
      <h2 id="panel-title">No such {kind}</h2>
      <p>
        There is no {kind} <code>{name}</code> in this build. It may come from another release.
      </p>
    </>
  );
}

function Content(figure: Figure) {
  const { data, row, id, name } = figure;
  const text = data.readRow(row);
  const unit = formatUnit(name, text("item"));
  const base = data.findSource(row, name);
  const derivation = describeDerivation(data, row, name);
  const printed = (column: string) => (text(`${column}_printed`) === text(column) ? "" : text(`${column}_printed`));
  return (
    <>
      <p class="over">
        <Origin origin={text("origin")} /> {TITLES[name] ?? name.replaceAll("_", " ")}
      </p>
      <h2 id="panel-title">
        {data.isEmulated(row, name) && "≈ "}
        {data.formatFigure(row, name, DIGITS) || "blank"} <small>{data.getValue(row, name) === null ? "" : unit}</small>
      </h2>
      <p class="what">
        {join(["model", "variant", "task", "platform", "framework"].map(text), " · ")}
        {text("sdk_version") && ` · SDK ${text("sdk_version")}`}
        {text("precision") && ` · ${text("precision")}`}
        {text("batch_size") && ` · batch ${text("batch_size")}`}
      </p>
      {derivation && <p class="what">Computed: {derivation}</p>}
      <Actions {...figure} />
      {!data.isUsable(row) && <p class="warning">Not ranked: {data.explainUnusable(row).join(", and ")}.</p>}
      <WithData name="provenance" loading="Loading the source">
        {(tables) => <Sources {...figure} name={base} tables={tables} />}
      </WithData>
      <History data={data} row={row} id={id} name={base} />
      <Others data={data} row={row} id={id} />
      <Official data={data} row={row} id={id} />
      <Claims id={id} model={text("model_printed")} />
      <Section title="This result">
        <Fields
          of={{
            "Result id": inCode(id),
            Table: text("table_name"),
            "Row of that table": text("row_number"),
            "Who measured": join([INTERESTS[text("interest")], text("interest_source")], "; "),
            "Power or energy of": text("power_scope"),
            Conditions: text("conditions"),
            "Latency counts": text("latency_basis"),
            "Printed model": printed("model"),
            Dataset: text("dataset"),
            "Printed dataset": printed("dataset"),
            "Printed precision": printed("precision"),
          }}
        >
          <FewFigures {...figure} />
        </Fields>
      </Section>
    </>
  );
}

/** The figures that few rows have, each with the way to its source. */
function FewFigures({ data, row, id }: Figure) {
  return (
    <>
      {(data.figures.get(row) ?? []).map(({ metric, scope }) => (
        <Fragment key={metric}>
          <dt>
            {TITLES[metric] ?? metric.replaceAll("_", " ")}
            {scope && `, ${scope}`}
          </dt>
          <dd>
            <button class="link" onClick={() => setParameter("show", `${id}.${metric}`, true)}>
              {data.formatFigure(row, metric, DIGITS)} {formatUnit(metric, data.getText(row, "item"))}
            </button>
          </dd>
        </Fragment>
      ))}
    </>
  );
}

/** The arithmetic of a computed figure, with every digit. */
function describeDerivation(data: Dataset, row: number, name: string): string {
  const source = data.findSource(row, name);
  if (source === name || source === "chip_throughput" || data.getValue(row, name) === null) return "";
  const from = `${formatFigure(data.getValue(row, source))} ${formatUnit(source, data.getText(row, "item"))}`;
  if (name === "minutes") return `${from} of training, in minutes`;
  if (name === "throughput_per_chip") return `${from} ÷ ${data.getText(row, "chip_count")} chips`;
  return `${from} ÷ list price of ${formatFigure(data.data.prices[data.getText(row, "platform")] ?? null)} USD × 1,000`;
}

function Claims({ id, model }: { id: string; model: string }) {
  return (
    <WithData name="claims" loading="Loading the claims">
      {(data) => {
        const uses = new Set(data.uses.filter((use) => use.result_id === id).map((use) => use.claim_id));
        const claims = getRows(data.claims);
        const using = claims.filter((claim) => uses.has(getText(claim, "claim_id")));
        const related = claims.filter((claim) => claim.model_printed === model && !using.includes(claim));
        return (
          <Section title="Claims that use it">
            {using.length === 0 && <p>No recomputation of a claim uses this row.</p>}
            <ClaimLinks claims={using} />
            {related.length > 0 && (
              <details>
                <summary>
                  {related.length} more about {model} that do not use this row
                </summary>
                <ClaimLinks claims={related} />
              </details>
            )}
          </Section>
        );
      }}
    </WithData>
  );
}

function ClaimLinks({ claims }: { claims: Row[] }) {
  return (
    <ul class="claim-links">
      {claims.map((claim) => {
        const id = getText(claim, "claim_id");
        return (
          <li key={id}>
            <Verdict verdict={getText(claim, "verdict")} /> <a href={formatHash("claims", id)}>{claim.claim}</a>
          </li>
        );
      })}
    </ul>
  );
}
