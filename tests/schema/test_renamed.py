"""Names of 1.x: each is unchanged, or schema/renamed.toml says what it is since 2.0."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
from ipu_results.kit.renamed import GONE, find_new_name, load_renamed
from ipu_results.schema import TABLES, VIEWS, table

from tests.conftest import ROOT

NEW = {
    relation.name: {column.name for column in relation.columns} for relation in (*TABLES, *VIEWS)
}
WORDS = {"where", "and", "value", "rule", "severity"}  # of expressions


def load_old() -> dict[str, list[str]]:
    """Return the columns of each relation of 1.x."""
    old = defaultdict(list)
    for line in (ROOT / "tests/data/names-1.x.txt").read_text(encoding="utf-8").splitlines():
        relation, column = line.split()
        old[relation].append(column)
    return old


OLD = load_old()


def exists(new: str, relation: str) -> bool:
    """Return whether a new name is one of this relation, of `results`, or of another relation."""
    if new.startswith(GONE):
        return True
    if new.isidentifier():
        return new in NEW[relation] or new in NEW["results"]
    if " " not in new:
        place, _, column = new.rpartition(".")
        return column in NEW[place.removeprefix("detail.")]
    names = re.findall(r"[a-z_]+", re.sub("'[^']*'", "", new))
    return all(name in NEW or name in WORDS or name in NEW["results"] for name in names)


@pytest.mark.parametrize("relation", OLD)
def test_every_name_of_1x_is_unchanged_or_has_a_new_one(relation: str) -> None:
    new_place = load_renamed()["relations"].get(relation, relation)
    if new_place.startswith(GONE):
        return
    now = new_place.split()[0]
    assert now in NEW
    for name in OLD[relation]:
        new = find_new_name(relation, name)
        if new is not None and name not in NEW[now]:
            assert exists(new, now), name
        elif name not in NEW[now] and now == relation:
            assert name in NEW["results"], name
            assert any(own.endswith("result_id") for own in NEW[now]), name


def test_no_name_in_the_map_is_new() -> None:
    renamed = load_renamed()
    old = {name for names in OLD.values() for name in names}
    assert set(renamed["relations"]) == set(OLD) - set(NEW)
    assert set(renamed["columns"]) <= old
    for relation, names in renamed["relation"].items():
        assert set(names) <= set(OLD[relation]) - NEW[relation]


def test_figures_of_the_map_are_its_metrics() -> None:
    figures = {name for name, new in load_renamed()["columns"].items() if new == "figures.value"}
    assert figures <= set(table("figures").choices("metric"))  # the others are younger
