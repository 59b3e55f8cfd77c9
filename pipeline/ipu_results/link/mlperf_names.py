"""Name company, machine and chip of entries in one spelling, and find measurements that were
entered again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipu_results.link.mlperf_speed import RunsByEntry, get_key
from ipu_results.mlperf.rules import Rules, round_key
from ipu_results.schema.vocabulary import Vocabulary


def add_names(
    entries: Sequence[dict[str, Any]], runs: RunsByEntry, known: Rules, vocabulary: Vocabulary
) -> None:
    """Add company, machine, chip and the first entry of the same measurement to each entry, and
    whether it may be ranked in its round.

    Entries of one benchmark whose counted runs take the same minutes, to the millisecond, are one
    measurement: some submitters hand in the same logs with other bytes.
    """
    rounds = {entry["result_id"]: entry["round"] for entry in entries}
    first: dict[tuple[Any, ...], str] = {}
    for entry in sorted(entries, key=lambda entry: (round_key(entry["round"]), entry["path"])):
        entry["company"] = known.companies.get(entry["submitter"], entry["submitter"])
        entry["platform"] = vocabulary.name_platform(entry["platform_printed"])
        entry["chip"] = vocabulary.name_chip(entry["chip_printed"])
        if entry["result_id"] is not None:
            measured = (
                entry["benchmark"],
                *sorted(run.minutes for run in runs.get(get_key(entry), ()) if run.counted),
            )
            original = first.setdefault(measured, entry["result_id"])
            entry["same_as"] = original if original != entry["result_id"] else None
        repeats = entry.get("same_as") is not None and rounds[entry["same_as"]] == entry["round"]
        entry["usable"] = entry["result_id"] is not None and not repeats
