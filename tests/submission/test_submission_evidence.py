"""What a bundle is held against: figures of the record under other names, power that no chip draws,
wrong orders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ipu_results.comparison.statements import load_rows
from ipu_results.comparison.words import KnownWords, load_known_words
from ipu_results.store.query import open_warehouse
from ipu_results.submission.record import (
    FIGURES,
    FigureIndex,
    PowerEvidence,
    find_copied_table,
    find_copies,
    find_wrong_power,
    is_energy_unchecked,
)
from ipu_results.submission.refusals import Row, count_digits, find_inconsistencies

from tests.submission.submission_support import (
    POD,
    Check,
    figure,
    latency,
    make_files,
    put_folder,
    throughput,
)

POWER_COLUMNS = ("power_w", "efficiency", "energy_per_item_j", "run_energy_j")
RENAMED = {"model": "TinyNet-9", "platform": "My box", "chip": None}


@dataclass(frozen=True)
class Record:
    """The rows of the warehouse, and what the checks need of it."""

    rows: list[dict[str, Any]]
    words: KnownWords
    evidence: PowerEvidence

    @property
    def originals(self) -> list[dict[str, Any]]:
        """The rows that repeat no other one."""
        return [row for row in self.rows if row["same_as"] is None]

    def list_documents(self) -> dict[str, list[dict[str, Any]]]:
        documents = defaultdict(list)
        for row in self.rows:
            documents[row["document_id"]].append(row)
        return documents


@pytest.fixture(scope="module")
def record(warehouse: Path) -> Record:
    with open_warehouse(warehouse) as connection:
        words = load_known_words(connection)
        return Record(load_rows(connection), words, PowerEvidence(words))


def is_copied(row: Row, index: FigureIndex) -> bool:
    return bool(list(find_copies(row, list(index.find(row)), "row")))


def is_copied_table(rows: Sequence[Row], index: FigureIndex) -> bool:
    return bool(list(find_copied_table([(row, list(index.find(row))) for row in rows])))


def make_row(figure: str, **values: Any) -> dict[str, Any]:
    """Make a row of the record with a throughput of these digits."""
    row = {
        **dict.fromkeys(FIGURES),
        "throughput": float(figure),
        "task": "inference",
        "model": "Net",
        "batch_size": 4,
    }
    named = {
        "platform": "Box",
        "publisher": "P",
        "document_id": "page",
        "result_id": "r",
        "origin": "published",
    }
    return {**row, **named, "chip_count": 1, "same_as": None, **values}


@pytest.mark.parametrize(
    ("digits", "scale", "values"),
    [
        (5, 1, {}),
        (6, 1, {"platform": "Other"}),
        (7, 1, {"platform": "Other", "model": "Else"}),
        (8, 1000, {"platform": "Other", "model": "Else"}),
    ],
)
def test_row_is_copied_from_its_number_of_digits_on(
    digits: int, scale: int, values: dict[str, Any]
) -> None:
    for count in (digits - 1, digits):
        theirs = make_row("1234567891"[:count])
        own = {**theirs, **values, "throughput": theirs["throughput"] * scale}
        assert is_copied(own, FigureIndex([theirs])) == (count == digits)


@pytest.mark.parametrize(("digits", "batch"), [(4, 4), (5, 8)])
def test_table_is_copied_from_its_number_of_digits_on(digits: int, batch: int) -> None:
    for count in (digits - 1, digits):
        index = FigureIndex([make_row(figure[:count]) for figure in ("12345", "23456", "34567")])
        own = [
            make_row(figure[:count], model="Else", batch_size=batch)
            for figure in ("12345", "23456", "34567")
        ]
        assert is_copied_table(own, index) == (count == digits)


def round_figure(value: float, digits: int) -> float:
    return float(f"{value:.{digits - 1}e}")


@pytest.mark.slow
def test_no_document_counts_as_copied_from_another_publisher(record: Record) -> None:
    checked = 0
    for publisher in {row["publisher"] for row in record.rows}:
        index = FigureIndex([row for row in record.originals if row["publisher"] != publisher])
        for rows in record.list_documents().values():
            if rows[0]["publisher"] == publisher:
                checked += len(rows)
                assert [row["result_id"] for row in rows if is_copied(row, index)] == []
                assert not is_copied_table(rows, index)
    assert checked == len(record.rows)


VARIANTS: Mapping[str, Callable[[Row], dict[str, Any]]] = {
    "as printed": lambda _: {},
    "another batch size": lambda row: {"batch_size": row["batch_size"] and 3 * row["batch_size"]},
    "latencies in another unit": lambda row: {
        name: row[name] and row[name] / 1000 for name in FIGURES if name.startswith("latency")
    },
    "five digits": lambda row: {name: row[name] and round_figure(row[name], 5) for name in FIGURES},
    "per chip": lambda row: {
        "throughput": (
            row["throughput"]
            and round_figure(
                row["throughput"] / (row["chip_count"] or 1), count_digits(row["throughput"])
            )
        )
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_document_under_other_names_is_recognised(name: str, record: Record) -> None:
    index = FigureIndex(record.originals)
    missed = []
    for document, rows in record.list_documents().items():
        renamed = [{**row, **VARIANTS[name](row), **RENAMED} for row in rows]
        if not is_copied_table(renamed, index) and not any(
            is_copied(row, index) for row in renamed
        ):
            missed.append(document)
    # Pages with one figure of few digits a row: with other batch sizes, too, nothing tells them
    # from figures of others.
    few = {
        "graphcore-performance-2022-03",
        "graphcore-performance-2022-h2",
        "graphcore-performance-2023-h1",
    }
    assert set(missed) <= (few if name == "another batch size" else set())


def test_one_figure_of_few_digits_is_no_evidence() -> None:
    theirs = make_row("14321", latency_ms=2.69)
    renamed = {**theirs, **RENAMED}
    assert is_copied(renamed, FigureIndex([theirs]))
    assert not is_copied({**renamed, "latency_ms": None}, FigureIndex([theirs]))


def test_throughput_that_follows_from_the_latency_is_one_figure() -> None:
    own = make_row("6401.5", batch_size=16, latency_ms=2.4994)  # one batch in 2.4994 ms
    assert [shared.digits for shared in FigureIndex([own]).find(own)] == [5]


def test_figures_of_one_digit_are_no_evidence() -> None:
    own = make_row("1", latency_min_ms=1.0, latency_max_ms=2.0, latency_ms=1.374)
    assert not is_copied(own, FigureIndex([own]))
    own["latency_std_ms"] = 0.19
    assert is_copied(own, FigureIndex([own]))


def test_power_of_the_record_is_refused_only_where_a_rule_finds_an_error(record: Record) -> None:
    rows = [row for row in record.rows if any(row[name] for name in POWER_COLUMNS)]
    refused = [row for row in rows if list(find_wrong_power(row, record.evidence, "row"))]
    assert len(rows) > 100
    assert all(row["errors"] for row in refused)
    for hidden in ({"platform": "My box"}, {"platform": "My box", "chip": None}):
        renamed = [{**row, **hidden} for row in rows if not row["errors"]]
        assert [
            row["result_id"]
            for row in renamed
            if list(find_wrong_power(row, record.evidence, "row"))
        ] == []


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1e3, 1e6])
def test_every_power_of_the_record_off_by_thousands_is_refused(
    factor: float, record: Record
) -> None:
    accepted = []
    for row in record.rows:
        if row["errors"] or is_energy_unchecked(row):
            continue
        for name in filter(row.get, POWER_COLUMNS):
            wrong = {**row, name: row[name] * factor}
            faults = list(find_wrong_power(wrong, record.evidence, "row"))
            if [fault.reason for fault in faults] != ["unit"]:
                accepted.append((row["result_id"], name))
    assert accepted == []


def test_no_row_of_the_record_contradicts_itself(record: Record) -> None:
    assert [
        fault for row in record.rows for fault in find_inconsistencies(row, record.words, "row")
    ] == []


MACHINE = {"power_scope": "machine"}
MY_BOX = {"platform": "My box", "chip": "MyChip"}
BOW = {"platform": "Bow-2000", "chip": "Bow"}
POD256 = {**POD, "platform": "IPU-POD256", "chip": "GC200", "chip_count": "256"}
T = throughput("14377.25")


def power(watts: str, **changes: str) -> dict[str, str]:
    return figure("power", watts, "W", **{**MACHINE, **changes})


def energy(value: str, unit: str, **changes: str) -> dict[str, str]:
    return figure("energy per item", value, unit, **MACHINE, **changes)


WRONG_POWER: Mapping[str, tuple[list[dict[str, str]], str]] = {
    "W for kW": ([T, power("0.9125")], "unit"),
    "W for kW of chips": ([T, power("0.9125", power_scope="device")], "unit"),
    "W for kW of a pod": ([throughput("311135.5", **POD256), power("52", **POD256)], "unit"),
    "chip without a rating": ([throughput("14377.25", **BOW), power("1.1", **BOW)], "unit"),
    "items per kJ": ([T, figure("efficiency", "15756", "images/s/W", **MACHINE)], "unit"),
    "kWh for Wh": (
        [
            figure("time to train", "31.37", "min", **POD),
            figure("energy", "3100.5", "kWh", **POD, **MACHINE),
        ],
        "unit",
    ),
    "power of a new machine": (
        [throughput("14377.25", **MY_BOX), power("912500", **MY_BOX)],
        "unit",
    ),
    "power and energy of a new machine": (
        [
            throughput("14377.25", **MY_BOX),
            power("912.5", **MY_BOX),
            energy("63.5", "J/image", **MY_BOX),
        ],
        "unit",
    ),
    "power and energy that differ": ([T, power("912.5"), energy("635", "mJ/image")], "implausible"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG_POWER)
def test_wrong_power_is_refused(name: str, tmp_path: Path, check: Check) -> None:
    rows, reason = WRONG_POWER[name]
    words = [word for word in MY_BOX.values() if word in rows[0].values()]
    checked = check(put_folder(tmp_path / "bundle", make_files(rows, new_words=words)))
    assert reason in {fault.reason for fault in checked.faults}


@pytest.mark.parametrize("metric", ["energy", "energy per item"])
def test_energy_without_a_rate_is_flagged(metric: str, tmp_path: Path, check: Check) -> None:
    rows = [latency("2.7113"), figure(metric, "63.5", "J", **MACHINE)]
    checked = check(put_folder(tmp_path / "bundle", make_files(rows)))
    assert checked.faults == ()
    assert any("whether the unit of the energy is right" in flag for flag in checked.flags)
