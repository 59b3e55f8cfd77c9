"""The table `platforms`: what the MLPerf descriptions add to the vocabulary, and how local machines
are named.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from ipu_results.record.link.machines import parse_machine

from tests.conftest import Query, check_raw, copy_documents, edit, find_error
from tests.runner.runs_support import put_run

V2 = tuple(f"mlperf/training-v2.0-{name}.csv" for name in ("entries", "runs"))
VIRTUAL = {"cpu": "Some CPU @ 2.00GHz", "logical_cores": 2, "virtual_machine": "hypervisor flag"}


def test_every_machine_has_its_facts_or_the_reason_why_not(query: Query) -> None:
    assert query("SELECT count(*) FROM platforms WHERE source IS NULL") == [(0,)]
    reasons = {
        "chip": "chip",
        "chip_count": "chip count",
        "family": "vendor",
        "nodes": "number of nodes",
    }
    for column, title in reasons.items():
        silent = f"""
            SELECT p.platform
            FROM platforms p
            JOIN results r USING (platform)
            JOIN mlperf_entries e USING (result_id)
            WHERE p.{column} IS NULL AND NOT contains(p.source, '{title} differs')
            GROUP BY 1
            HAVING min(e.chip_count) > 0
                AND bool_and(e.nodes IS NOT NULL AND e.chip_printed IS NOT NULL)
        """
        assert query(silent) == [], column


def test_facts_are_those_of_every_description(query: Query) -> None:
    differing = """
        SELECT p.platform
        FROM platforms p
        JOIN results r USING (platform)
        JOIN mlperf_entries e USING (result_id)
        WHERE p.chip_count <> e.chip_count
            OR p.nodes <> e.nodes
            OR p.host_processor <> e.host_processor
            OR p.host_processors_per_node <> e.host_processors_per_node
    """
    assert query(differing) == []
    [(chip, count, source)] = query(
        "SELECT chip, chip_count, source FROM platforms WHERE platform = 'SMC-H100'"
    )
    assert (chip, count) == ("H100-SXM-80GB", None)
    assert "chip count differs: 8, 64, 72 and 1 more" in source
    [row] = query(
        "SELECT nodes, host_processor, host_processors_per_node FROM platforms"
        " WHERE platform = 'Bow Pod256'"
    )
    assert row == (4, "AMD EPYC 7742", None)  # the descriptions say 2 and 8


def test_own_machine_is_named_as_virtual_cpus(query: Query) -> None:
    assert query(
        "SELECT DISTINCT platform, chip FROM results WHERE origin = 'measured' ORDER BY ALL"
    ) == [
        ("1x H100-SXM-80GB", "H100-SXM-80GB"),  # by the name that the driver prints of it
        ("2 virtual CPUs (AMD EPYC host)", None),
    ]
    [row] = query(
        "SELECT chip, form, host_processor, virtual_cpus FROM platforms"
        " WHERE virtual_cpus IS NOT NULL"
    )
    assert row == (None, "virtual machine", "AMD EPYC", 2)


def test_future_runs_are_named_from_their_environment(tmp_path: Path) -> None:
    put_run(tmp_path / "raw")
    ids = _name_platforms(tmp_path / "raw")
    shutil.rmtree(tmp_path / "raw")
    put_run(tmp_path / "raw", environment=VIRTUAL)
    assert set(ids.values()) == {"Some CPU @ 2.00GHz"}
    assert _name_platforms(tmp_path / "raw") == dict.fromkeys(
        ids, "2 virtual CPUs (Some CPU @ 2.00GHz host)"
    )


def _name_platforms(raw: Path) -> dict[str, str]:
    results = check_raw(raw)["results"]
    return dict(zip(results["result_id"], results["platform"], strict=True))


@pytest.mark.parametrize("missing", VIRTUAL)
def test_incomplete_environment_names_nothing(missing: str) -> None:
    assert parse_machine(VIRTUAL) is not None
    assert parse_machine({**VIRTUAL, "logical_cores": 1}) is not None
    assert parse_machine({**VIRTUAL, "logical_cores": 0}) is None
    assert parse_machine({**VIRTUAL, missing: None}) is None


@pytest.mark.parametrize(
    ("new", "printed", "named"),
    [
        (",17,Graphcore Bow IPU,", "chip_count is 16", "has 17"),
        (",16,Graphcore IPU GC200,", "chip is 'Bow'", "has 'GC200'"),
    ],
)
def test_vocabulary_that_contradicts_a_description_stops_the_build(
    tmp_path: Path, new: str, printed: str, named: str
) -> None:
    raw = copy_documents(tmp_path / "raw", *V2)
    edit(raw, V2[0], ",16,Graphcore Bow IPU,", new)
    error = find_error(raw)
    for text in ("platforms.toml: platform 'Bow Pod", printed, named, "MLPerf v2.0 description"):
        assert text in error
