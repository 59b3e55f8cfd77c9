"""What holds for the whole record: columns with values, ids, digits, names of chips, usable rows."""

from __future__ import annotations

import hashlib

import pytest
from ipu_results.kit.physics import DERIVED_DIGITS
from ipu_results.schema import TABLES, VIEWS, Relation, table
from ipu_results.schema.vocabulary import load_vocabulary

from tests.conftest import HISTORIES, Query

RELATIONS: list[Relation] = [*TABLES, *VIEWS]
EMPTY = {"quarantine", "detail.energy_ipu_gpu"}
OFFICIAL_CHIPS = 45
IDS = ("result_id", "same_as", "microbenchmark_id", "ipu_id", "other_id")
# sha256 of the sorted ids, one a line, without their first letter: bring it up to date with new rows
ID_DIGESTS = {
    "results.result_id": "cd1dd5f253160d9cbb86d9a1f1f3bc6ac7d5104d713b30aa1ecf26e71e2fa170",
    "microbenchmarks.microbenchmark_id": (
        "b6b64fbd168e4bfb19f7d42ee045866b3dce31df7602da297d2d44243facba15"
    ),
}
NOT_USABLE = """
    origin = 'emulated' OR relationship IS NOT DISTINCT FROM 'submitted' OR same_as IS NOT NULL
    OR result_id IN (SELECT result_id FROM flags WHERE severity = 'error' OR rule = 'R47')
    OR result_id IN (SELECT result_id FROM mlperf_entries WHERE same_as IS NOT NULL)
    OR printed_until IS NOT NULL
    OR document_id IN (SELECT document_id FROM documents WHERE figures_are IS NOT NULL)
"""


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_every_column_has_a_value(relation: Relation, query: Query) -> None:
    counts = ", ".join(f"count({name})" for name in relation.names)
    [(rows, *filled)] = query(f"SELECT count(*), {counts} FROM {relation.source}")
    assert (rows == 0) == (relation.sql_name in EMPTY)
    if rows:
        counted = dict(zip(relation.names, filled, strict=True))
        assert [name for name, count in counted.items() if not count] == []


def test_metrics_are_the_figures_that_few_rows_have() -> None:
    kept = [column for column in table("results").kept if column.kind == "double"]
    assert tuple(column.name for column in kept) == table("figures").choices("metric")


def test_usable_rows_are_those_that_nothing_speaks_against(query: Query) -> None:
    assert query(f"SELECT count(*) FROM results WHERE usable = ({NOT_USABLE})") == [(0,)]
    assert query("SELECT DISTINCT usable FROM results ORDER BY 1") == [(False,), (True,)]


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_computed_doubles_have_no_noise(relation: Relation, query: Query) -> None:
    """Published rows print more digits, and what is exact has those of its source."""
    names = [column.name for column in relation.columns if column.is_rounded]
    source = relation.source
    if relation.sql_name == "results":
        source += " WHERE origin <> 'published'"
        names += [column.name for column in relation.columns if column.figure]
    noisy = [
        f"count(*) FILTER (CAST(printf('%.{DERIVED_DIGITS}g', {name}) AS DOUBLE) <> {name})"
        for name in names
    ]
    if noisy:
        assert query(f"SELECT {', '.join(noisy)} FROM {source}") == [(0,) * len(noisy)]


def test_ids_begin_with_a_letter_and_are_those_of_before(query: Query) -> None:
    for relation in RELATIONS:
        for name in relation.names:
            if name.endswith(IDS):
                wrong = f"NOT regexp_full_match({name}, 'r[0-9a-f]{{16}}')"
                rows = query(f"SELECT count(*) FROM {relation.source} WHERE {wrong}")
                assert rows == [(0,)], (relation.sql_name, name)
    for column, expected in ID_DIGESTS.items():
        source, _, name = column.partition(".")
        # the page histories came later
        older = f"WHERE document_id NOT IN {HISTORIES}"
        ids = query(f"SELECT {name} FROM {source} {older} ORDER BY 1")
        text = "\n".join(value.removeprefix("r") for (value,) in ids)
        assert hashlib.sha256(text.encode()).hexdigest() == expected, column


def test_inputs_of_recomputations_name_rows(query: Query) -> None:
    for source, column in (("results", "result_id"), ("microbenchmarks", "microbenchmark_id")):
        named = f"FROM detail.recomputation_inputs WHERE table_name = '{source}'"
        known = f"key IN (SELECT {column} FROM {source})"
        assert query(f"SELECT count(*) > 0, bool_and({known}) {named}") == [(True, True)]


def test_chip_has_one_name(query: Query) -> None:
    vocabulary = load_vocabulary()
    for name in ("results", "mlperf_entries", "platforms", "microbenchmarks"):
        chips = [chip for (chip,) in query(f"SELECT DISTINCT chip FROM {name}") if chip]
        assert [chip for chip in chips if vocabulary.name_chip(chip) != chip] == [], name
    official = query("SELECT DISTINCT chip FROM results WHERE origin = 'official'")
    chips = [chip for (chip,) in official if chip]
    assert len(chips) == OFFICIAL_CHIPS
    assert set(chips) <= set(vocabulary.chips.values())
    differing = "mlperf_entries e JOIN results r USING (result_id) WHERE e.chip <> r.chip"
    assert query(f"SELECT count(*) FROM {differing}") == [(0,)]
