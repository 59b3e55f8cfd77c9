"""Name the machines of local runs for what they are: a virtual machine sees virtual processors, not
a chip.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from ipu_results.errors import VocabularyError
from ipu_results.link.machines import LocalMachine, parse_machine
from ipu_results.mlperf.rules import round_key
from ipu_results.normalise import NormalisedDocument
from ipu_results.normalise.by_source import get_run_id
from ipu_results.schema import table
from ipu_results.schema.frames import build_frame
from ipu_results.schema.vocabulary import Vocabulary


def describe_machine(run_id: str, machine: LocalMachine) -> dict[str, Any]:
    """Return its row of `platforms`; chip and count stay null, since it has a share of some."""
    return {
        "platform": machine.name,
        "form": "virtual machine",
        "nodes": 1,
        "host_processor": machine.processor,
        "virtual_cpus": machine.virtual_cpus,
        "source": f"environment of the run {run_id}: {machine.evidence}",
    }


def collect_machines(documents: Sequence[NormalisedDocument]) -> dict[str, LocalMachine]:
    """Return the virtual machines of the runs by run id; of two runs of one machine, each names its
    own.
    """
    machines = {}
    for document in documents:
        if document.document.reader == "sweep-record":
            run_id = get_run_id(document.document)
            for row in document.passthrough.to_pylist():
                machine = parse_machine(json.loads(row["environment"]))
                if machine is not None:
                    machines[run_id] = machine
    return machines


Record = Mapping[str, Any]
NOT_IN_VOCABULARY = "printed name, not in the vocabulary"
VOCABULARY_FILE = "schema/vocabulary/platforms.toml"
HOST = ("nodes", "host_processor", "host_processors_per_node")
TITLES = {
    "family": "vendor",
    "chip": "chip",
    "chip_count": "chip count",
    "form": "form",
    "nodes": "number of nodes",
    "host_processor": "host processor",
    "host_processors_per_node": "host processors per node",
}
MAX_NAMED = 3
"""Descriptions and differing values that `source` names; the others are counted."""


def build_platform_frame(
    results: pd.DataFrame,
    entries: pd.DataFrame,
    machines: Mapping[str, LocalMachine],
    vocabulary: Vocabulary,
) -> pd.DataFrame:
    """Build the table from the results, the official entries and the machines of local runs.

    Raises VocabularyError for an entry of the vocabulary that a description contradicts.
    """
    described = collect_descriptions(results, entries, vocabulary)
    known = vocabulary.list_entries("platform")
    check_platforms(known, described)
    names = {entry["platform"]: entry for entry in known}
    local = {
        machine.name: (run_id, machine) for run_id, machine in reversed(list(machines.items()))
    }
    rows = [_complete_entry(entry, names, described) for entry in known]
    for name in sorted(set(results["platform"].dropna()) - names.keys()):
        if name in described:
            rows.append({"platform": name, **summarise(described[name], vocabulary)})
        elif name in local:
            rows.append(describe_machine(*local[name]))
        else:
            rows.append({"platform": name, "source": NOT_IN_VOCABULARY})
    columns = table("platforms").names
    kept = [
        {column: row.get(column) for column in columns}
        for row in sorted(rows, key=lambda row: row["platform"])
    ]
    return build_frame(table("platforms"), kept)


def collect_descriptions(
    results: pd.DataFrame, entries: pd.DataFrame, vocabulary: Vocabulary
) -> dict[str, list[dict[str, Any]]]:
    """Return the distinct system descriptions by platform, oldest round first; an entry without a
    score has one too.
    """
    platforms = dict(zip(results["result_id"], results["platform"], strict=True))
    named = entries[["platform_printed", "result_id"]].dropna()
    by_name = {row.platform_printed: platforms.get(row.result_id) for row in named.itertuples()}
    same = {
        name: entry["platform"]
        for entry in vocabulary.list_entries("platform")
        for name in entry.get("described_as", ())
    }
    described: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for entry in pa.Table.from_pandas(entries, preserve_index=False).to_pylist():
        name = entry["platform_printed"]
        for platform in {by_name.get(name), same.get(name)} - {None}:
            described.setdefault(str(platform), {}).setdefault(
                (entry["round"], entry["system_path"]), entry
            )
    return {
        platform: [
            records[key] for key in sorted(records, key=lambda key: (round_key(key[0]), key[1]))
        ]
        for platform, records in described.items()
    }


def check_platforms(entries: Iterable[Record], described: Mapping[str, Sequence[Record]]) -> None:
    """Compare chip and count of the vocabulary with every description.

    Raises VocabularyError where one differs.
    """
    for entry in entries:
        for record in described.get(entry["platform"], ()):
            for column in ("chip", "chip_count"):
                if record[column] not in (None, entry[column]):
                    message = (
                        f"{column} is {entry[column]!r}, but the MLPerf v{record['round']}"
                        f" description {record['system_path']} has {record[column]!r}: correct one"
                        " of the two"
                    )
                    raise VocabularyError(
                        message, document=VOCABULARY_FILE, place=f"platform {entry['platform']!r}"
                    )


def _complete_entry(
    entry: Record, names: Mapping[str, Record], described: Mapping[str, Sequence[Record]]
) -> Record:
    """Add what the descriptions say of nodes and host processors to an entry of the vocabulary."""
    whole = names[entry.get("part_of", entry["platform"])]
    records = described.get(whole["platform"], ())
    if not records:
        return entry
    values, differences = agree(records, HOST)
    source = _join_source(f"nodes and host processors: {name_descriptions(records)}", differences)
    return {**entry, **values, "source": _join_source(entry.get("source", ""), [source])}


def summarise(records: Sequence[Record], vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the facts that all descriptions of one platform agree on; `source` names them and what
    differs.
    """
    families = {entry["chip"]: entry["family"] for entry in vocabulary.list_entries("platform")}
    is_one_chip = len({record["chip"] for record in records}) == 1
    completed = []
    for record in records:
        count = record["chip_count"]
        chip = record["chip"] if count != 0 else None
        vendor = find_vendor(record["chip_printed"], vocabulary)
        # chips of several generations, of which the vocabulary may not know all, share the vendor
        family = families.get(chip, vendor) if is_one_chip else vendor
        form = find_form(record)
        completed.append(
            {**record, "chip": chip, "chip_count": count or None, "family": family, "form": form}
        )
    values, differences = agree(completed, TITLES)
    source = f"MLPerf system descriptions: {name_descriptions(records)}"
    if {record["chip_count"] for record in records} == {0}:
        source += "; no accelerator: the host processors compute"
    return {**values, "source": _join_source(source, differences)}


def agree(records: Sequence[Record], columns: Iterable[str]) -> tuple[dict[str, Any], list[str]]:
    """Return each column's value where all records have the same, else None, and in words what
    differs.
    """
    values: dict[str, Any] = {}
    differences = []
    for column in columns:
        present = sorted({record[column] for record in records} - {None})
        blank = any(record[column] is None for record in records)
        values[column] = present[0] if len(present) == 1 and not blank else None
        if len(present) + blank > 1:
            named = [str(value) for value in present[:MAX_NAMED]] + ["not said"] * blank
            more = f" and {len(present) - MAX_NAMED} more" if len(present) > MAX_NAMED else ""
            differences.append(f"{TITLES[column]} differs: {', '.join(named)}{more}")
    return values, differences


def find_vendor(chip: str | None, vocabulary: Vocabulary) -> str | None:
    """Return the vendor whose chips' names begin like this one, None if the vocabulary has none."""
    name = (chip or "").casefold()
    starts = ((vendor, start) for vendor, words in vocabulary.vendors.items() for start in words)
    return next((vendor for vendor, start in starts if name.startswith(start.casefold())), None)


def find_form(record: Record) -> str | None:
    """Return the form of a described system: whether it is rented, and has one node or several."""
    if record["nodes"] is None:
        return None
    several = record["nodes"] > 1
    if record["availability"] == "cloud":
        return "cloud cluster" if several else "cloud instance"
    return "cluster" if several else "server"


def name_descriptions(records: Sequence[Record]) -> str:
    """Name round and path of the first descriptions, and count the others."""
    named = [f"v{record['round']} {record['system_path']}" for record in records[:MAX_NAMED]]
    more = f" and {len(records) - MAX_NAMED} more" if len(records) > MAX_NAMED else ""
    return f"{', '.join(named)}{more}"


def _join_source(text: str, more: Iterable[str]) -> str:
    return "; ".join(part for part in (text, *more) if part)
