// What the page of a result printed for the same row, before and after.
import { WithData } from "./data";
import type { Dataset } from "./dataset";
import { formatFigure, formatUnit } from "./format";
import { filterRows, getText, type Row } from "./frame";
import { join, Section } from "./parts";
import { formatHash } from "./route";

interface Props {
  data: Dataset;
  row: number;
  id: string;
  name: string; // the printed figure that the panel is about
}

export function History({ data, row, id, name }: Props) {
  return (
    <WithData name="history">
      {(history) => {
        const [own] = [...filterRows(history, "result_id", id), ...filterRows(history, "before_result_id", id)];
        if (!own) return null;
        const changes = filterRows(history, "series", getText(own, "series")).filter((change) => change.column_name === name);
        const [first] = changes;
        if (!first) return null;
        const unit = formatUnit(name, data.getText(row, "item"));
        return (
          <Section title="What the page printed over time">
            <ol class="others">
              <li>
                {link(first.before ?? null, unit, getText(first, "before_result_id"))}
                <br />
                <small>{describe(getText(first, "before_published_on"), getText(first, "before_sdk_version"))}</small>
              </li>
              {changes.map((change) => (
                <Change key={getText(change, "result_id")} change={change} unit={unit} />
              ))}
            </ol>
          </Section>
        );
      }}
    </WithData>
  );
}

function Change({ change, unit }: { change: Row; unit: string }) {
  const silent = change.silent === "true" && "the versions of the software stayed the same";
  return (
    <li>
      {link(change.after ?? null, unit, getText(change, "result_id"))}
      <br />
      <small>{join([describe(getText(change, "published_on"), getText(change, "sdk_version")), silent])}</small>
    </li>
  );
}

function link(figure: Row[string], unit: string, id: string) {
  const text = `${formatFigure(figure ?? null)} ${unit}`;
  return <a href={formatHash("results", "", { q: id, show: id })}>{text}</a>;
}

const describe = (day: string, sdk: string) => join([`from ${day}`, sdk && `SDK ${sdk}`]);
