"""The command that prints the claims ledger."""

from __future__ import annotations

from pathlib import Path

import click

from ipu_results.cli.common import FOLDER, Command


def _verdict(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from ipu_results.schema import table

    verdicts = table("claims").choices("verdict")
    if value not in (None, *verdicts):
        raise click.BadParameter(f"{value!r} is none of {', '.join(verdicts)}", param=param)
    return value


@click.command(cls=Command)
@click.argument("claim_id", nargs=-1)
@click.option("--warehouse", type=FOLDER, default="warehouse", show_default=True)
@click.option("--document", help="Only the claims of this document.")
@click.option("--verdict", callback=_verdict, help="Only the claims with this verdict, such as not-supported.")
@click.option("--format", "output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
def claims(claim_id: tuple[str, ...], warehouse: Path, document: str | None, verdict: str | None, output: str) -> None:
    """Print what documents claimed and what it gives when it is computed again.

    With CLAIM_ID the claim is told in full with its arithmetic. Contradictions between documents stand in the table
    contradictions, every recomputed value in the table recomputations.

    \b
    Example:
      ipu-results claims --verdict not-supported
      ipu-results claims blog2020-resnext101-inference-throughput
    """
    from ipu_results._util.text import format_json, format_records
    from ipu_results.claims.ledger import brief, flat, load
    from ipu_results.claims.page import lines
    from ipu_results.store.query import open_warehouse

    with open_warehouse(warehouse) as connection:
        ledger = load(connection)
    known = {claim["claim_id"] for claim in ledger.claims}
    if unknown := [name for name in claim_id if name not in known]:
        raise click.BadParameter(f"there is no claim {unknown[0]!r}", param_hint="CLAIM_ID")
    if document is not None and document not in (there := {claim["document_id"] for claim in ledger.claims}):
        raise click.BadParameter(
            f"no claims of {document!r}; there are: {', '.join(sorted(there))}", param_hint="--document"
        )
    wanted = [
        claim
        for claim in ledger.claims
        if (not claim_id or claim["claim_id"] in claim_id)
        and document in (None, claim["document_id"])
        and verdict in (None, claim["verdict"])
    ]
    if output == "json":
        click.echo(format_json([flat(claim) for claim in wanted]))
    elif output == "csv":
        columns = ("claim_id", "document_id", "figure", "verdict", "recomputed")
        click.echo(format_records(output, columns, [[claim[name] for name in columns] for claim in wanted]))
    elif claim_id:
        click.echo("\n\n".join("\n".join(lines(claim)) for claim in wanted))
    else:
        rows = [(claim["claim_id"], claim["figure"], claim["verdict"], brief(claim)) for claim in wanted]
        click.echo(format_records(output, ("claim_id", "figure", "verdict", "recomputed"), rows))
        click.echo(f"{len(rows)} claims", err=True)
