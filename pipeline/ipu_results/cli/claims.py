"""The command that prints the claims."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ipu_results.cli.common import Command, echo_text, warehouse_option


def _check_verdict(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from ipu_results.schema import table

    verdicts = table("claims").choices("verdict")
    if value not in (None, *verdicts):
        raise click.BadParameter(f"{value!r} is not one of {', '.join(verdicts)}", param=param)
    return value


@click.command(cls=Command)
@click.argument("claim_id", nargs=-1)
@warehouse_option
@click.option("--document", help="Only the claims of this document.")
@click.option("--verdict", callback=_check_verdict, help="Only the claims with this verdict, such as not-supported.")
@click.option("--format", "output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
def claims(claim_id: tuple[str, ...], warehouse: Path, document: str | None, verdict: str | None, output: str) -> None:
    """Print what the documents claim and what the dataset gives for it.

    With CLAIM_ID the claim is printed in full, with its arithmetic. Contradictions between documents are in the table
    `contradictions`, all recomputed values in the table `recomputations`, the rows that they used in
    `recomputation_inputs`. The gap is that of the nearest value that counts, in percent of the claimed figure.

    \b
    Example:
      ipu-results claims --verdict not-supported
      ipu-results claims blog2020-resnext101-inference-throughput
    """
    from ipu_results._util.text import format_json, format_records
    from ipu_results.recompute.claims import RECORD_COLUMNS, format_gap, format_range, format_record, load_claims
    from ipu_results.recompute.page import format_claim
    from ipu_results.store.query import open_warehouse

    with open_warehouse(warehouse) as connection:
        rows = load_claims(connection).claims
    known = {claim["claim_id"] for claim in rows}
    if unknown := [name for name in claim_id if name not in known]:
        raise click.BadParameter(f"there is no claim {unknown[0]!r}", param_hint="CLAIM_ID")
    documents = sorted({claim["document_id"] for claim in rows})
    if document not in (None, *documents):
        message = f"no claims of {document!r}; choose from: {', '.join(documents)}"
        raise click.BadParameter(message, param_hint="--document")
    selected = [
        claim
        for claim in rows
        if (not claim_id or claim["claim_id"] in claim_id)
        and document in (None, claim["document_id"])
        and verdict in (None, claim["verdict"])
    ]
    if output == "json":
        click.echo(format_json([format_record(claim) for claim in selected]))
    elif output == "csv":
        records = [format_record(claim) for claim in selected]
        texts = [[json.dumps(v, ensure_ascii=False) if isinstance(v, list) else v for v in r.values()] for r in records]
        click.echo(format_records(output, RECORD_COLUMNS, texts))
    elif claim_id:
        echo_text("\n\n".join("\n".join(format_claim(claim)) for claim in selected))
    else:
        header = ("claim_id", "figure", "verdict", "recomputed", "gap")
        brief = [
            (claim["claim_id"], claim["figure"], claim["verdict"], format_range(claim), format_gap(claim))
            for claim in selected
        ]
        click.echo(format_records(output, header, brief))
        click.echo(f"{len(brief)} claims", err=True)
