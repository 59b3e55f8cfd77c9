"""The commands that read the dataset: by SQL, its claims, the questions that it answers, and for
programs by MCP.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ipu_results.doors.cli import common


@click.command(cls=common.Command)
@click.argument("sql")
@common.warehouse_option
@common.format_option("table", "record", "csv", "json")
@click.option(
    "--cite", "is_cited", is_flag=True, help="Add the source of each row, one footnote per source."
)
def query(sql: str, warehouse: Path, output: str, is_cited: bool) -> None:
    """Run one read-only SQL statement over the warehouse.

    It reads the DuckDB file, or the committed Parquet files if none was built. The table `relations`
    describes every table and view, `columns` their columns. A ranking of rows that are not `usable`
    is warned of. `--format record` prints one line per value; a table
    that is wider than the terminal is printed in the same way. With `--cite` the statement selects
    `result_id`, or of pairs the id of each side, and each row names its source. The footnotes have
    what must be disclosed; `csv` and `json` have them in the column `source`.

    \b
    Examples:
      ipu-results query "FROM results WHERE model = 'ResNet-50 v1.5' AND usable LIMIT 1" --format record
      ipu-results query "SELECT model, platform, batch_size, latency_ms FROM inference
        WHERE latency_basis = 'per-batch' AND usable ORDER BY latency_ms LIMIT 3"
      ipu-results query --cite "SELECT result_id, batch_size, throughput FROM results
        WHERE publisher = 'Qwant' AND usable"
    """
    from ipu_results.doors.cite.remarks import remark_on_answer
    from ipu_results.kit.sql import run_query
    from ipu_results.kit.text import format_records
    from ipu_results.record.store.query import open_warehouse

    is_for_people = output in ("table", "record")
    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    remarks: Sequence[str] = ()
    if is_cited:
        from ipu_results.doors.cite import cite_rows

        cited = cite_rows(sql, warehouse, in_cells=not is_for_people)
        names = cited.columns
        rows = cited.rows
        notes = cited.notes
    else:
        with open_warehouse(warehouse, sql) as connection:
            result = run_query(connection, sql)
            names = result.column_names
            columns = [column.to_pylist() for column in result.columns]
            rows = list(zip(*columns, strict=True))
            remarks = remark_on_answer(connection, sql, names, rows)
    text = format_records(output, names, rows)
    if output == "table" and common.is_wider_than_terminal(text):
        text = format_records("record", names, rows)
    click.echo(text)
    for note in notes:
        common.echo_text(f"\n{note}", err=not is_for_people)
    for remark in remarks:
        common.echo_labelled("warning", remark)
    if is_for_people:
        click.echo(f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}", err=True)


def _check_verdict(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from ipu_results.schema import table

    verdicts = table("claims").choices("verdict")
    if value not in (None, *verdicts):
        raise click.BadParameter(f"{value!r} is not one of {', '.join(verdicts)}", param=param)
    return value


@click.command(cls=common.Command)
@click.argument("claim_id", nargs=-1)
@common.warehouse_option
@click.option("--document", help="Only the claims of this document.")
@click.option(
    "--verdict",
    callback=_check_verdict,
    help="Only the claims with this verdict, such as not-supported.",
)
@common.format_option("table", "csv", "json")
def claims(
    claim_id: tuple[str, ...],
    warehouse: Path,
    document: str | None,
    verdict: str | None,
    output: str,
) -> None:
    """Print what the documents claim and what the dataset gives for it.

    With CLAIM_ID the claim is printed in full, with its arithmetic. Contradictions between
    documents are in the table `contradictions`, all recomputed values in the table
    `recomputations`, the rows that they used in `detail.recomputation_inputs`. The gap is that of the
    nearest value that counts, in percent of the claimed figure.

    \b
    Example:
      ipu-results claims --verdict not-supported
      ipu-results claims blog2020-resnext101-inference-throughput
    """
    from ipu_results.kit.text import format_json, format_records
    from ipu_results.record.recompute import claims as page
    from ipu_results.record.store.query import open_warehouse

    with open_warehouse(warehouse) as connection:
        rows = page.load_claims(connection)
    known = {claim["claim_id"] for claim in rows}
    if unknown := [name for name in claim_id if name not in known]:
        raise click.BadParameter(f"there is no claim {unknown[0]!r}", param_hint="CLAIM_ID")
    documents = sorted({claim["document_id"] for claim in rows})
    if document not in (None, *documents):
        message = f"no claims of {document!r}; choose from: {', '.join(documents)}"
        raise click.BadParameter(message, param_hint="--document")
    selected = []
    for claim in rows:
        is_named = not claim_id or claim["claim_id"] in claim_id
        is_of_document = document in (None, claim["document_id"])
        if is_named and is_of_document and verdict in (None, claim["verdict"]):
            selected.append(claim)
    if output == "json":
        click.echo(format_json([page.format_record(claim) for claim in selected]))
    elif output == "csv":
        cells = []
        for claim in selected:
            record = page.format_record(claim)
            cells.append([_format_cell(value) for value in record.values()])
        click.echo(format_records(output, page.RECORD_COLUMNS, cells))
    elif claim_id:
        common.echo_text("\n\n".join("\n".join(page.format_claim(claim)) for claim in selected))
    else:
        brief = []
        for claim in selected:
            printed = [claim["claim_id"], claim["figure"], claim["verdict"]]
            brief.append([*printed, page.format_range(claim), page.format_gap(claim)])
        columns = ("claim_id", "figure", "verdict", "recomputed", "gap")
        click.echo(format_records(output, columns, brief))
        click.echo(f"{len(selected)} claims", err=True)


def _format_cell(value: Any) -> Any:
    """Return a list as JSON, any other value as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value


WIDTH = 100  # of a summary, as of the help


def _parse_settings(
    context: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, float]:
    settings = {}
    for name, text in common.parse_settings(context, param, values).items():
        try:
            settings[name] = float(text)
        except ValueError as error:
            message = f"{name}={text} is not {param.metavar}"
            raise click.BadParameter(message, param=param) from error
        if not 0 < settings[name] < float("inf"):
            raise click.BadParameter(f"{name}={text} is not a number above 0", param=param)
    return settings


@click.command(cls=common.Command)
@click.argument("name", required=False)
@common.warehouse_option
@common.format_option("table", "csv", "json")
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_parse_settings,
    metavar="NAME=NUMBER",
    help="Set a parameter of it.",
)
@common.plot_option("Draw it to FILE, .svg or .png.")
def analyse(
    name: str | None, warehouse: Path, output: str, settings: dict[str, float], plot: Path | None
) -> None:
    """Answer one question from the warehouse: print its rows, and a summary of them on stderr.

    Without NAME the questions are listed.

    \b
    Example:
      ipu-results analyse generations
      ipu-results analyse per_dollar --set ipu_price=120000 --plot per-dollar.svg
    """
    from ipu_results.doors.analyses import ANALYSES, answer_question, build_specification, read_rows
    from ipu_results.doors.charts import render_specification
    from ipu_results.kit.files import write_atomically
    from ipu_results.kit.text import format_records
    from ipu_results.record.store.query import open_warehouse

    by_name = {analysis.name: analysis for analysis in ANALYSES}
    if name is None:
        questions = [(analysis.name, analysis.question) for analysis in ANALYSES]
        click.echo(format_records(output, ("name", "question"), questions))
        return
    if name not in by_name:
        raise click.BadParameter(f"{name!r} is not one of {', '.join(by_name)}", param_hint="NAME")
    analysis = by_name[name]
    known = analysis.parameters
    if unknown := sorted(settings.keys() - set(known)):
        choices = f"it has {', '.join(known)}" if known else "it has none"
        raise click.BadParameter(
            f"{analysis.name} has no parameter {unknown[0]!r}; {choices}", param_hint="--set"
        )
    with open_warehouse(warehouse) as connection:
        answer = answer_question(connection, analysis, settings)
        rows = read_rows(connection, analysis, settings)
        if plot is not None:
            specification = build_specification(connection, analysis, answer)
            write_atomically(plot, render_specification(specification, plot.suffix.lower()))
    values = zip(*rows.to_pydict().values(), strict=True)
    click.echo(format_records(output, rows.column_names, list(values)))
    for paragraph in answer.summary.split("\n\n"):
        common.echo_text("\n" + textwrap.fill(paragraph, WIDTH, break_on_hyphens=False), err=True)


@click.command(cls=common.Command, extra="mcp")
@common.warehouse_option
def mcp(warehouse: Path) -> None:
    """Answer questions of an agent or a program over the Model Context Protocol (MCP), on stdin and stdout.

    A client such as an assistant starts this command and calls its tools: overview, find,
    provenance, compare, compare_run, claims, check_claimed_figure, expect and sql. Nothing is
    written, and no file but the dataset is read. What may not be compared is refused with a reason.
    It ends when stdin does.

    \b
    Example:
      ipu-results mcp --warehouse warehouse
    """
    from ipu_results.kit.extras import import_extra

    import_extra("mcp")
    from ipu_results.doors.mcp.server import serve

    if sys.stdin.isatty():
        common.echo_text(
            "serving MCP on stdin and stdout, for a client that starts this command; Ctrl-D"
            " ends it",
            err=True,
        )
    serve(warehouse)
