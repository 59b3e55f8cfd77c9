"""The command that scores official MLPerf Training results."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from ipu_results.cli.common import Command, report_findings, show_progress

ENTRIES_PER_WORKER = 500  # a round has at most 262, on which two workers are hardly faster than one


def _parse_round(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from ipu_results.mlperf.entries import parse_round

    version = parse_round(value) if value else None
    if value and version is None:
        raise click.BadParameter(f"{value!r} is not a round such as 2.0", param=param)
    return version


@click.command(cls=Command)
@click.argument("path")
@click.option(
    "--format",
    "output",
    type=click.Choice(("table", "csv", "json", "parquet")),
    default="table",
    show_default=True,
    help="Parquet needs --out.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to FILE instead of stdout.")
@click.option("--runs", is_flag=True, help="One record per log file, with its sha256, instead of one per entry.")
@click.option(
    "--round", "round_", callback=_parse_round, help="Round of a checkout whose folder names none, such as 2.0."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Processes that read logs; an archive is read by one.  [default: one per core and 500 entries]",
)
@click.option("--dask", metavar="ADDRESS", help="Read logs on the dask cluster of this scheduler, tcp://HOST:PORT.")
@click.option(
    "--retrieved",
    type=click.DateTime(("%Y-%m-%d",)),
    help="Day on which PATH was downloaded, for the attribution.",
)
@click.option("--strict", is_flag=True, help="Exit 1 when there is any finding.")
def mlperf(
    path: str,
    output: str,
    out: Path | None,
    runs: bool,
    round_: str | None,
    workers: int | None,
    dask: str | None,
    retrieved: datetime | None,
    strict: bool,
) -> None:
    """Score every entry of the official MLPerf Training results under PATH, by the official rule.

    PATH is a checkout of one round (v0.7 to v5.1), or a folder of several. It is never written to. Logs that do not
    count, missing logs and files that cannot be read are listed on stderr and leave exit status 0.

    PATH may also be an archive of such a folder (.tar, .tar.gz, .tar.xz), which is read in one pass and not unpacked,
    or any URL that fsspec knows. With --dask the workers of the cluster read the logs. PATH must then be a URL or a
    folder that they see.

    \b
    Extras:
      URLs:   pip install 'ipu-results[remote]'
      --dask: pip install 'ipu-results[distributed]'

    \b
    Example:
      ipu-results mlperf training_results_v2.0
      ipu-results mlperf training_results_v2.0 --format csv --out scores.csv
      ipu-results mlperf training_v2.0_results.tar.xz --format json
      ipu-results mlperf s3://bucket/training_results_v2.0
      ipu-results mlperf /shared/training_results_v2.0 --dask tcp://10.0.0.1:8786
    """
    from ipu_results.ground.files import is_inside, write_atomically
    from ipu_results.ground.parallel import DaskCluster, ProcessPool
    from ipu_results.mlperf.records import entry_record, format_scores, run_records
    from ipu_results.mlperf.round import is_single_archive, local_root, score_path

    if output == "parquet" and out is None:
        raise click.UsageError("--format parquet needs --out FILE")
    if dask is not None and is_single_archive(path):
        raise click.UsageError("--dask cannot read an archive, which is one stream; unpack it where the workers see it")
    if dask is not None and workers is not None:
        raise click.UsageError("--workers counts local processes and --dask has its own; pass only one of them")
    if out is not None and (root := local_root(path)) is not None and is_inside(out, root):
        raise click.UsageError("--out is inside PATH, which is never written to; choose another file")
    pool = ProcessPool(workers, ENTRIES_PER_WORKER) if dask is None else DaskCluster(dask)
    with show_progress("MB" if is_single_archive(path) else "entries") as progress:
        scored = score_path(path, pool, digests=True, round_=round_, progress=progress)
    day = retrieved.date() if retrieved else None
    if runs:
        records = [record for entry in scored.entries for record in run_records(entry)]
    else:
        records = [entry_record(entry, day) for entry in scored.entries]
    data = format_scores(output, "mlperf_runs" if runs else "mlperf_entries", records)
    if out is None:
        click.echo(data, nl=False)
    else:
        write_atomically(out, data)
    report_findings([str(finding) for finding in scored.findings], strict, limit=None)
