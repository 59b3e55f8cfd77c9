"""Companies and accelerators in one spelling, and measurements that were entered again."""

from __future__ import annotations

from typing import Any

from ipu_results.schema.vocabulary import load_vocabulary

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
