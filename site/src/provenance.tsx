// Where a figure came from: the cell it was printed in, what is flagged, and what rests on it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Boundary } from "./boundary";
import type { Dataset } from "./dataset";
import { figure, TITLES, UNITS } from "./format";
import { allRows, type Row, rowsWhere, text } from "./frame";
import { address, change } from "./hash";
import { useData } from "./hooks";
import type { Data, Severity } from "./load";
import { FlagMark, Origin, Verdict } from "./marks";
import { Official } from "./official";

const DIGITS = 7; // of a figure that the emulator calculated

export function Provenance({ data, show }: { data: Dataset; show: string | null }) {
  const [id = "", name = "throughput"] = show?.split(".") ?? [];
  const row = id ? data.place(id) : -1;
  if (!show) return null;
  return <Panel key={show} data={data} row={row} id={id} name={name} />;
}

function Panel({ data, row, id, name }: { data: Dataset; row: number; id: string; name: string }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = box.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  const off = (event?: Event) => {
    event?.preventDefault();
    box.current?.close(); // before the page forgets it, so that the focus goes back to the figure
    change("show", null);
  };
  const beside = (event: MouseEvent) => event.target === box.current && off();
  return (
    <dialog ref={box} class="panel" aria-labelledby="panel-title" onCancel={off} onClick={beside}>
      <div class="panel-inside">
        <button type="button" class="quiet close" onClick={() => off()} aria-label="Close">
          ×
        </button>
        {row < 0 ? (
          <Missing what="result" name={id} />
        ) : !data.has(name) ? (
          <Missing what="column" name={name} />
        ) : (
          <Boundary at={location.hash}>
            <Content data={data} row={row} id={id} name={name} />
          </Boundary>
        )}
      </div>
    </dialog>
  );
}

function Missing({ what, name }: { what: string; name: string }) {
  return (
    <>
      <h2 id="panel-title">No such {what}</h2>
      <p>
        This build holds no {what} <code>{name}</code>. It may come from another release.
      </p>
    </>
  );
}

function Content({ data, row, id, name }: { data: Dataset; row: number; id: string; name: string }) {
  const origin = data.text(row, "origin");
  const value = data.value(row, name);
  const unit = name === "throughput" ? `${data.text(row, "item") || "item"}s/s` : (UNITS[name] ?? "");
  const loaded = useData("provenance");
  return (
    <>
      <p class="over">
        <Origin origin={origin} /> {TITLES[name] ?? name.replaceAll("_", " ")}
      </p>
      <h2 id="panel-title">
        {data.emulated(row, name) && "≈ "}
        {data.figure(row, name, DIGITS) || "blank"} <small>{value === null ? "" : unit}</small>
      </h2>
      <p class="what">
        {["model", "variant", "task", "platform", "framework"].map((one) => data.text(row, one)).filter(Boolean).join(" · ")}
        {data.text(row, "sdk_version") && ` · SDK ${data.text(row, "sdk_version")}`}
        {data.precision(row) && ` · ${data.precision(row)}`}
        {data.text(row, "batch_size") && ` · batch ${data.text(row, "batch_size")}`}
      </p>
      {origin === "emulated" && <p class="warning">Emulated, not measured: calculated from the architecture by a model.</p>}
      {data.text(row, "suspect") && <p class="warning">Suspect: {data.text(row, "suspect")}</p>}
      {loaded.state === "waiting" && <p role="status">Loading where it came from …</p>}
      {loaded.state === "failed" && <p role="alert">{loaded.why}</p>}
      {loaded.state === "there" && <Sources data={data} row={row} id={id} name={name} held={loaded.data} />}
      <Official data={data} row={row} id={id} />
      <Uses data={data} row={row} id={id} />
      <Section title="This result">
        <dl>
          <Told name="Result id" value={id} code />
          <Told name="Table" value={data.text(row, "table_name")} />
          <Told name="Row of that table" value={data.text(row, "row_number")} />
          <Told name="Latency counts" value={data.text(row, "latency_basis") || data.text(row, "latency_kind")} />
          <Told name="Band or interval" value={band(data, row)} />
          <Told name="Calibration" value={data.text(row, "calibration_id")} />
        </dl>
      </Section>
    </>
  );
}

function band(data: Dataset, row: number): string {
  const ends = ["latency_ms_low", "latency_ms_high"].map((name) => data.figure(row, name, DIGITS));
  return ends.every(Boolean) ? `${ends.join(" to ")} ms` : "";
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

export function Told({ name, value, code = false }: { name: string; value: string; code?: boolean }) {
  if (!value) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{code ? <code>{value}</code> : value}</dd>
    </>
  );
}

/** An address out of the data: a link only where it is a plain web address. */
export function Web({ to, children }: { to: string; children?: ComponentChildren }) {
  if (!/^https?:\/\//.test(to)) return <>{children ?? to}</>;
  return (
    <a href={to} rel="noreferrer noopener" target="_blank">
      {children ?? to}
    </a>
  );
}

interface Held {
  data: Dataset;
  row: number;
  id: string;
  name: string;
  held: Data["provenance"];
}

function Sources({ data, row, id, name, held }: Held) {
  const cells = rowsWhere(held.cells, "result_id", id);
  const documents = new Map(allRows(held.documents).map((one) => [text(one, "document_id"), one]));
  const own = cells.filter((cell) => cell["column_name"] === name);
  const flags = rowsWhere(held.flags, "result_id", id);
  const runs = rowsWhere(held.runs, "run_id", data.text(row, "run_id"));
  const configured = rowsWhere(held.configurations, "result_id", id);
  return (
    <>
      <Section title="Where it stands">
        {own.map((cell, index) => (
          <Cell key={index} cell={cell} filled={data.figure(row, name, DIGITS)} document={documents.get(text(cell, "document_id"))} />
        ))}
        {own.length === 0 && (
          <>
            <p>No cell of a source holds this figure by itself; the row comes from the document below.</p>
            <Document document={documents.get(data.text(row, "document_id"))} />
          </>
        )}
      </Section>
      <Flags data={data} flags={flags} name={name} />
      {runs.map((run) => (
        <Section key={text(run, "run_id")} title="The run of this project that made it">
          <dl>
            <Told name="Run" value={text(run, "run_id")} code />
            <Told name="Backend" value={text(run, "backend")} />
            <Told name="Device" value={text(run, "device")} />
            <Told name="Started" value={text(run, "started_at")} />
          </dl>
        </Section>
      ))}
      {configured.map((one, index) => (
        <Configuration key={index} row={one} />
      ))}
      <details>
        <summary>All {cells.length} cells of this row as printed</summary>
        <div class="wide-content" tabIndex={0} role="region" aria-label="Cells of this row">
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">Header</th>
                <th scope="col">As printed</th>
                <th scope="col">Fills</th>
                <th scope="col">Where</th>
              </tr>
            </thead>
            <tbody>
              {cells.map((cell, index) => (
                <tr key={index} class={cell["column_name"] === name ? "own" : ""}>
                  <td>{text(cell, "header")}</td>
                  <td>{text(cell, "raw_text")}</td>
                  <td>{text(cell, "column_name")}</td>
                  <td>{text(cell, "locator")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}

function Cell({ cell, filled, document }: { cell: Row; filled: string; document: Row | undefined }) {
  const factor = cell["factor"];
  const conversion =
    typeof factor !== "number" || typeof cell["value"] !== "number"
      ? ""
      : factor === 1
        ? "none (factor 1)"
        : `${cell["value"]} × ${figure(factor)} = ${filled}`;
  return (
    <>
      <blockquote class="printed">
        {text(cell, "raw_text")}
        <small>
          {" "}
          {document?.["kind"] === "transcription" ? "as printed" : "as in the file"}
          {text(cell, "marks") && `, footnote ${text(cell, "marks")}`}
        </small>
      </blockquote>
      <dl>
        <Told name="Column" value={text(cell, "header")} />
        <Told name="Place" value={text(cell, "locator")} />
        <Told name="Unit as printed" value={text(cell, "unit")} />
        <Told name="Conversion" value={conversion} />
      </dl>
      <Document document={document} />
    </>
  );
}

function Document({ document }: { document: Row | undefined }) {
  if (!document) return null;
  return (
    <dl>
      <dt>Document</dt>
      <dd>
        <cite>{text(document, "title")}</cite>
      </dd>
      <Told name="Publisher" value={text(document, "publisher")} />
      <Told name="Published" value={text(document, "published_on")} />
      {text(document, "url") && (
        <>
          <dt>Address</dt>
          <dd class="address">
            <Web to={text(document, "url")} />
          </dd>
        </>
      )}
      <Told name="Licence" value={text(document, "licence")} />
      <Told name="Our file" value={`${text(document, "kind")}: raw/${text(document, "file")}`} />
    </dl>
  );
}

function Flags({ data, flags, name }: { data: Dataset; flags: Row[]; name: string }) {
  if (flags.length === 0) return null;
  const order = [...flags].sort((one, other) => Number(other["column_name"] === name) - Number(one["column_name"] === name));
  return (
    <Section title="Flags on this row">
      <ul class="flags">
        {order.map((flag, index) => (
          <li key={index}>
            <FlagMark
              flag={{ rule: text(flag, "rule"), severity: text(flag, "severity") as Severity }}
              title={data.data.rules[text(flag, "rule")] ?? ""}
            />{" "}
            <strong>{data.data.rules[text(flag, "rule")]?.replaceAll("-", " ")}</strong>, {text(flag, "severity")}, on{" "}
            {text(flag, "column_name").replaceAll("_", " ")}
            <br />
            {text(flag, "message")}
            {text(flag, "suggested") && (
              <>
                <br />
                Suggested, not applied: <strong>{text(flag, "suggested")}</strong>
              </>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Configuration({ row }: { row: Row }) {
  const repository = text(row, "repository");
  const tag = text(row, "tag");
  const path = text(row, "path");
  return (
    <Section title={`Public configuration (${text(row, "match_confidence")} match)`}>
      <dl>
        <dt>File</dt>
        <dd class="address">
          <Web to={`https://github.com/${repository}/blob/${tag || "HEAD"}/${path}`}>
            {repository} {tag}, {path}
          </Web>
        </dd>
        <Told name="Benchmark" value={text(row, "benchmark")} />
        <Told name="Micro-batch" value={text(row, "micro_batch_size")} />
        <Told name="Replicas" value={text(row, "replicas")} />
        <Told name="Batch from it" value={text(row, "global_batch_from_config")} />
        <Told name="Data fed" value={text(row, "data_fed")} />
        <Told name="Latency" value={text(row, "latency_definition")} />
        <Told name="Note" value={text(row, "note")} />
      </dl>
    </Section>
  );
}

const HOW: Record<string, string> = {
  id: "names this entry",
  figure: "its arithmetic holds this row's figure",
};

function Uses({ data, row, id }: { data: Dataset; row: number; id: string }) {
  const loaded = useData("claims");
  if (loaded.state === "failed") return <p role="alert">{loaded.why}</p>;
  if (loaded.state === "waiting") return <p role="status">Loading the claims …</p>;
  const uses = new Map(loaded.data.uses.filter((use) => use.result_id === id).map((use) => [use.claim_id, use.how]));
  const model = data.text(row, "model");
  const claims = allRows(loaded.data.claims);
  const used = claims.filter((claim) => uses.has(text(claim, "claim_id")));
  const near = claims.filter((claim) => text(claim, "model") === model && !uses.has(text(claim, "claim_id")));
  return (
    <Section title="Claims that use it">
      {used.length === 0 && <p>No claim is known to use this row.</p>}
      <ClaimLinks claims={used} how={(claim) => HOW[uses.get(text(claim, "claim_id")) ?? ""] ?? ""} />
      {near.length > 0 && (
        <details>
          <summary>{near.length} more about {model}, not known to use this row</summary>
          <ClaimLinks claims={near} how={() => ""} />
        </details>
      )}
    </Section>
  );
}

function ClaimLinks({ claims, how }: { claims: Row[]; how: (claim: Row) => string }) {
  return (
    <ul class="claim-links">
      {claims.map((claim) => (
        <li key={text(claim, "claim_id")}>
          <Verdict verdict={text(claim, "verdict")} />{" "}
          <a href={address("claims", text(claim, "claim_id"))}>{text(claim, "claim")}</a>
          {how(claim) && <small> ({how(claim)})</small>}
        </li>
      ))}
    </ul>
  );
}
