// The start page: what this is, what was found, and where to go with a question.
import { Front } from "./front";
import type { Bars, Finding, StartData } from "./load";
import { LeftOut, type Link, Links } from "./parts";
import { formatHash, navigate } from "./route";

const QUESTIONS: Link[] = [
  ["Which machine is fastest on ResNet-50 within 2 ms?", "#/results?model=ResNet-50+v1.5&task=inference&ms=2&sort=-throughput"],
  ["And within 5 ms, per chip?", "#/results?model=ResNet-50+v1.5&task=inference&ms=5&per=chip&sort=-throughput_per_chip"],
  ["What is doubtful about Yolo v4?", "#/results?model=Yolo+v4&all=1&sort=-flags"],
  ["How does a Bow Pod16 compare with an IPU-POD16?", "#/compare?a=Bow+Pod16&b=IPU-POD16"],
  ["What do the NVIDIA A100 rows say?", "#/results?q=A100+NVIDIA"],
  ["Is my own run plausible next to these?", "#/run"],
  ["Which claims hold?", "#/claims"],
  ["Ask anything else in SQL", "#/sql"],
];

/** Pages of the documentation, which are read at the source code. */
const DOCS: Link[] = [
  ["Methodology: how a figure gets here, and when to trust it", "explanation/methodology.md"],
  ["Glossary: the words on this page", "explanation/glossary.md"],
  ["Findings, with query and caveats", "explanation/findings.md"],
];

const PAIRS: Link[] = [
  ["Bow-2000 against A100, BERT-Large", "#/compare?a=Bow-2000&b=1x+A100-40GB&model=BERT-Large"],
  ["Bow Pod16 against eight A100", "#/compare?a=Bow+Pod16&b=8x+A100-40GB+%28DGX+A100%29"],
  ["Bow-2000 against IPU-M2000", "#/compare?a=Bow-2000&b=IPU-M2000"],
  ["Choose two machines", "#/compare"],
];

/** Static pages on what others measured, each figure with its page and table. */
const EVIDENCE: Link[] = [
  ["How well do the vendor's figures replicate?", "replications.html"],
  ["Joules per image and per token, IPU next to GPU", "energy.html"],
  ["What share of its peak does each chip reach?", "peak.html"],
  ["Microbenchmarks by operation", "microbenchmarks.html"],
];

export function Start({ data }: { data: StartData }) {
  const { build, counts, repository } = data;
  const offers: Link[] = [
    ["Download", "downloads.html"],
    ["Cite", linkDocs(data, "how-to/cite.md")],
    ["Source code and documents", repository],
    ["Report a wrong figure", `${repository}/issues/new`],
  ];
  return (
    <div class="start">
      <section class="hero">
        <div>
          <h2>How fast are AI processors really?</h2>
          <p class="lead">
            The open record of Graphcore's <abbr title="Intelligence Processing Unit, a chip that runs neural networks, as GPUs do">IPU</abbr>s next
            to GPUs and all of MLPerf Training: {counts.results.toLocaleString("en")} results, each with the place where it was printed, and{" "}
            {counts.claims} claims, checked against them.
          </p>
          <form
            class="check"
            role="search"
            onSubmit={(event) => {
              event.preventDefault();
              const figure = new FormData(event.currentTarget).get("figure");
              navigate(formatHash("results", "", { q: String(figure ?? "").trim() }));
            }}
          >
            <label for="figure">Find a figure, a model or a machine</label>
            <input id="figure" name="figure" type="search" placeholder="46,174 or 0.58 ms or bow-2000" required />
            <button type="submit" class="main">
              Find it
            </button>
          </form>
          <ul class="offers">
            <li>
              As of <time dateTime={build.as_of}>{build.as_of}</time>, {build.version ? `release ${build.version}` : "unreleased"}
            </li>
            {offers.map(([title, address]) => (
              <li key={address}>
                <a href={address}>{title}</a>
              </li>
            ))}
          </ul>
        </div>
        {data.front.machines.length > 0 && <Front front={data.front} />}
      </section>
      <section aria-labelledby="found">
        <h2 id="found">What it found</h2>
        <div class="findings">
          {data.findings.map((finding) => (
            <FindingCard key={finding.name} finding={finding} />
          ))}
          <article class="finding">
            <h3>Is a Bow-2000 faster than an A100?</h3>
            <p>Any two machines on the tests that both ran, with batch sizes, ratio and what differs, or the condition that is missing.</p>
            <Links to={PAIRS} />
          </article>
        </div>
      </section>
      <div class="columns">
        <section>
          <h3>Ask</h3>
          <LeftOut count={counts.left_out} />
          <Links to={QUESTIONS} />
        </section>
        <section>
          <h3>Read</h3>
          <Links to={[...EVIDENCE, ...DOCS.map(([title, path]): Link => [title, linkDocs(data, path)])]} />
        </section>
      </div>
    </div>
  );
}

const linkDocs = ({ repository }: StartData, path: string) => `${repository}/blob/main/docs/${path}`;

function FindingCard({ finding }: { finding: Finding }) {
  return (
    <article class="finding">
      <h3>{finding.title}</h3>
      <p class="big">{finding.figure}</p>
      <p>{finding.text}</p>
      <p>Best objection: {finding.objection}</p>
      <small>{finding.reading}</small>
      <BarChart {...finding} />
      <p>
        <a href={finding.link}>{finding.link_text}</a>
      </p>
    </article>
  );
}

/** A bar for each value, and one of another colour for what they are compared with. */
function BarChart({ bars, unit, rule }: Bars) {
  const longest = Math.max(...bars.map(({ value }) => value), rule?.value ?? 0);
  const show = (label: string, value: number, name: string) => (
    <tr key={label} class={name}>
      <th scope="row">{label}</th>
      <td>
        <span style={{ width: `${(70 * value) / longest}%` }} /> {formatValue(value)}
        {unit.length < 3 && unit}
      </td>
    </tr>
  );
  return (
    <table class="bars">
      <tbody>
        {bars.map(({ label, value }) => show(label, value, ""))}
        {rule && show(rule.label, rule.value, "rule")}
      </tbody>
    </table>
  );
}

/** Two decimals, or three digits of a fraction of one. */
function formatValue(value: number): string {
  return value.toLocaleString("en", value < 1 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 2 });
}
