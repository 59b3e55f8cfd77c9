// What a reader can do with a figure: copy its link, cite it, report that it is wrong.
import { useState } from "preact/hooks";
import { Copied } from "./copied";
import { More } from "./lazy";
import type { Dataset } from "./dataset";
import { formatFigure, formatUnit } from "./format";
import type { StartData } from "./load";

interface Props {
  data: Dataset;
  row: number;
  id: string;
  name: string;
  start: StartData;
}

export function Actions(props: Props) {
  const [shown, setShown] = useState<"link" | "cite" | null>(null);
  const toggle = (what: "link" | "cite") => setShown(shown === what ? null : what);
  return (
    <>
      <p class="actions">
        <button type="button" aria-expanded={shown === "link"} onClick={() => toggle("link")}>
          Copy link
        </button>
        <button type="button" aria-expanded={shown === "cite"} onClick={() => toggle("cite")}>
          Cite
        </button>
        <a href={formatReport(props)} rel="noreferrer noopener" target="_blank">
          Report a wrong figure
        </a>
      </p>
      {shown === "link" && <Copied label="Link" text={location.href} />}
      {shown === "cite" && <More name="Cite" ids={[props.id]} />}
    </>
  );
}

function describe({ data, row, name }: Props): string {
  const unit = formatUnit(name, data.getText(row, "item"));
  const details = ["model", "variant", "task", "platform", "framework", "sdk_version"].map((column) => data.getText(row, column));
  const figure = `${data.isEmulated(row, name) ? "emulated: " : ""}${formatFigure(data.getValue(row, name))} ${unit}`;
  return `${figure.trim()} (${name}); ${details.filter(Boolean).join(", ")}`;
}

function formatReport(props: Props): string {
  const { data, row, id, name, start } = props;
  const body = [
    `Result ${id}, column ${name}: ${describe(props)}`,
    `Document ${data.getText(row, "document_id")}, table ${data.getText(row, "table_name")}, row ${data.getText(row, "row_number")}`,
    `Build ${start.build.build_id}`,
    "",
    "What is wrong, and where you can see it:",
    "",
  ].join("\n");
  return `${start.repository}/issues/new?${new URLSearchParams({ title: `Wrong figure: ${id}.${name}`, body })}`;
}
