"""Companies and accelerators in one spelling, and measurements that were entered again."""

from __future__ import annotations

from typing import Any

import pytest
from ipu_results.schema.vocabulary import load_vocabulary

from tests.conftest import Query
from tests.mlperf.link_support import link_mlperf


def entry(round_: str, path: str, benchmark: str = "bert", **changed: Any) -> dict[str, Any]:
    name = f"{round_}-{path}"
    return {"round": round_, "path": path, "benchmark": benchmark, "result_id": name, **changed}


def test_the_first_entry_with_the_same_minutes_is_the_measurement() -> None:
    entries = [
        entry("10.0", "c"),
        entry("3.0", "b"),
        entry("2.1", "d"),
        entry("3.0", "a"),
        entry("3.0", "e", "ssd"),
        entry("2.0", "f", result_id=None),  # without a score there is no result to name
    ]
    minutes = {
        "a": [1.0, 2.0, 3.0],
        "b": [3.0, 1.0, 2.0],
        "c": [2.0, 3.0, 1.0],
        "d": [1.0, 2.0],
        "e": [1.0, 2.0, 3.0],
        "f": [1.0, 2.0, 3.0],
    }
    runs = []
    for number, own in enumerate(entries):
        place = {"round": own["round"], "path": own["path"]}
        runs += [{**place, "minutes": value} for value in minutes[own["path"]]]
        runs.append({**place, "minutes": 7.0 + number, "counted": False})
    with link_mlperf(entries, runs) as connection:
        rows = connection.sql("SELECT path, same_as, usable FROM mlperf_entries ORDER BY 1")
        assert rows.fetchall() == [
            ("a", None, True),
            ("b", "3.0-a", False),
            ("c", "3.0-a", False),
            ("d", None, True),
            ("e", None, True),
            ("f", None, False),
        ]


def test_a_company_has_one_name() -> None:
    companies = {
        "SUPERMICRO": "Supermicro",
        "Supermicro": "Supermicro",
        "GigaComputing": "GIGABYTE",
        "GIGABYTE": "GIGABYTE",
        "RedHat-Supermicro": "Supermicro + Red Hat",
        "Wiwynn": "Wiwynn",
    }
    entries = [{"path": submitter, "submitter": submitter} for submitter in companies]
    with link_mlperf(entries, []) as connection:
        named = connection.sql("SELECT submitter, company FROM mlperf_entries").fetchall()
    assert dict(named) == companies


def test_no_spelling_stands_for_two_names() -> None:
    names = {
        "NVIDIA A100-SXM4-80GB(400W)": "A100-SXM-80GB",
        "A100-SXM4-80GB": "A100-SXM-80GB",
        "NVIDIA A100-PCIE-80GB (300W)": "A100-PCIe-80GB",
        "N/A": None,
    }
    vocabulary = load_vocabulary()
    assert {text: vocabulary.name_chip(text) for text in names} == names


FACTS = {
    # by the name of the system, and by the memory that another field has
    "SELECT chip, count(*) FROM mlperf_entries WHERE chip_printed IN ('TPU', 'NVIDIA H100-PCIe', 'Nvidia Tesla V100', 'NVIDIA V100') GROUP BY 1 ORDER BY 1": [
        ("H100-PCIe-80GB", 4),
        ("TPU v4", 36),
        ("V100", 2),
        ("V100-32GB", 6),
    ],
    "SELECT count(*) FROM mlperf_entries e JOIN results r USING (result_id) WHERE e.chip IS DISTINCT FROM r.chip": [
        (0,)
    ],
    "SELECT DISTINCT chip_printed FROM mlperf_entries WHERE chip IS NULL ORDER BY 1": [
        ("N/A",),
        (None,),
    ],
    "SELECT chip, count(DISTINCT chip_printed) FROM mlperf_entries WHERE chip LIKE 'A100%' GROUP BY 1 ORDER BY 1": [
        ("A100-40GB", 1),
        ("A100-PCIe-40GB", 5),
        ("A100-PCIe-80GB", 5),
        ("A100-SXM-40GB", 5),
        ("A100-SXM-80GB", 9),
    ],
    "SELECT count(same_as), count(*) FILTER (shared_logs = 0 AND same_as IS NOT NULL) FROM mlperf_entries": [
        (225, 48)
    ],
    # CoreWeave's ResNet-50 is one measurement of three rounds, and so is the BERT of NVIDIA's Eos.
    "SELECT min(e.round), count(*) FROM mlperf_entries e WHERE path LIKE '%coreweave_hgxh100_n448%/resnet' OR path LIKE '%/eos_n434_ngc23.09_pytorch/bert' GROUP BY coalesce(same_as, result_id) ORDER BY 1": [
        ("3.0", 3),
        ("3.1", 3),
    ],
    "SELECT count(*) FROM mlperf_entries e JOIN mlperf_entries f ON f.result_id = e.same_as WHERE f.same_as IS NOT NULL OR f.benchmark <> e.benchmark": [
        (0,)
    ],
}


@pytest.mark.parametrize(("sql", "rows"), FACTS.items())
def test_names_of_the_record(query: Query, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert query(sql) == rows
