// Who else measured the work of a result, and who prints the same measurement again.
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatFigure, formatUnit } from "./format";
import { getRows, getText, type Row } from "./frame";
import { join, Section } from "./parts";
import { formatHash } from "./route";

export function Others({ data, row, id }: { data: Dataset; row: number; id: string }) {
  return (
    <WithData name="replications" loading="Looking for others who measured this">
      {(replications) => {
        const pairs = getRows(replications).filter((pair) => pair.first_result_id === id || pair.second_result_id === id);
        const original = data.getText(row, "same_as");
        const repeats = Array.from({ length: data.rows }, (_, other) => other).filter(
          (other) => other !== row && (data.getText(other, "same_as") === (original || id) || (original && data.getText(other, "result_id") === original)),
        );
        return (
          <Section title="Others who measured this">
            {pairs.length === 0 && <p>No other party published this work on the same chip and number of chips.</p>}
            <ul class="others">
              {pairs.map((pair) => (
                <Other key={getText(pair, "first_result_id") + getText(pair, "second_result_id")} data={data} pair={pair} id={id} />
              ))}
            </ul>
            {repeats.length > 0 && (
              <p>
                Prints the same measurement:{" "}
                {repeats.map((other) => (
                  <a key={other} class="result" href={link(data, other)}>
                    {data.getText(other, "publisher")}, {data.getText(other, "document_id")}
                  </a>
                ))}
              </p>
            )}
            {pairs.length > 0 && (
              <p>
                <a href="replications.html">How well the figures replicate</a>
              </p>
            )}
          </Section>
        );
      }}
    </WithData>
  );
}

function link(data: Dataset, row: number): string {
  const id = data.getText(row, "result_id");
  return formatHash("results", "", { q: id, show: id });
}

function Other({ data, pair, id }: { data: Dataset; pair: Row; id: string }) {
  const isFirst = pair.first_result_id === id;
  const side = isFirst ? "second" : "first";
  const other = data.findRow(getText(pair, `${side}_result_id`));
  const ratio = Number(pair.ratio) ** (isFirst ? 1 : -1); // performance of the other over that of this
  const measure = pair.measure === "throughput" ? "throughput" : "minutes";
  const unit = formatUnit(measure, other < 0 ? "" : data.getText(other, "item"));
  const figure = `${formatFigure(pair[`${side}_figure`] ?? null, 5)} ${unit}`;
  const notes = [
    pair.counts === "true" ? "" : `does not count: ${getText(pair, "reason")}`,
    pair.differs && `differs: ${getText(pair, "differs")}`,
    pair.unstated && `not stated: ${getText(pair, "unstated")}`,
    pair.vendor_part && `part of the maker of the chip: ${getText(pair, "vendor_part")}`,
  ];
  return (
    <li>
      <strong>{formatFigure(ratio, 3)}×</strong> {getText(pair, `${side}_publisher`)}: {other < 0 ? figure : <a href={link(data, other)}>{figure}</a>}
      <br />
      <small>{join(notes, "; ")}</small>
    </li>
  );
}
