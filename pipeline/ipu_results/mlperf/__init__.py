"""Score MLPerf Training rounds from their official logs, by the official rule.

How a round is scored: entries (which files make an entry) → log (read one log) → score (one entry,
with rules and system) → summary (an entry among the others) → records. The first three are done by
round for a path, which is read by tree (a folder) or archive (a tar archive). `python -m
ipu_results.mlperf` needs msgspec and numpy alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ipu_results.kit.extras import explain_missing

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import pandas as pd


def score_mlperf(
    path: str | os.PathLike[str],
    *,
    round: str | None = None,
    ruleset: str | None = None,
    executor: Executor | None = None,
) -> pd.DataFrame:
    """Score every entry of official MLPerf Training results, as `ipu-results mlperf PATH --format
    json` does.

    `path` is a checkout of one round or a folder of several, a tar archive of either, or a part:
    a submitter's folder, a system's, a benchmark's or a log. `round`, such as "2.0", is needed
    where no folder names it, `ruleset` scores by the rules of another round. `executor` reads the
    logs, an entry a task: `ProcessPoolExecutor(4)`, in a script under `if __name__ == "__main__":`,
    or a cluster that sees `path`, `dask.distributed.Client(…).get_executor()`. Without one, this
    process does. An archive is one stream, and read here.

    One row per entry, with the dtypes of the table `mlperf_entries`: minutes are unrounded, and
    null without a score, and their interval rests on the entries that are scored together. Files
    that are broken, missing or not counted are listed in `df.attrs["findings"]`, as "path:
    message".

    Raises IpuResultsError for a path that cannot be read or has no entry, ValueError for a round
    that is not a version.
    """
    # Imported here: a worker process imports this module too, and must not load pandas.
    try:
        from ipu_results.mlperf.records import build_score_frame, entry_records  # noqa: PLC0415
        from ipu_results.mlperf.round import score_path  # noqa: PLC0415
        from ipu_results.mlperf.rules import parse_round  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise explain_missing(error, "ingest") from error

    def parse(given: str | None) -> str | None:
        if given is None:
            return None
        version = parse_round(given)
        if version is None:
            raise ValueError(f"round {given!r} is not a version such as 2.0")
        return version

    round_ = parse(round)
    ruleset = parse(ruleset)
    scored = score_path(os.fspath(path), executor, round_=round_, ruleset=ruleset)
    frame = build_score_frame("mlperf_entries", entry_records(scored.entries, ruleset))
    frame.attrs["findings"] = [str(finding) for finding in scored.findings]
    return frame
