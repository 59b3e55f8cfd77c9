"""Headers: how names are compared, what a unit is, and how a header that nearly fits is explained."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.record.read.text import clean, lift_footnote
from ipu_results.schema.vocabulary import (
    TableHeader,
    explain_mismatch,
    find_headers,
    normalise_header,
    parse_unit,
)

from tests.cases import every_case
from tests.record.read.reading_support import (
    INFERENCE,
    LAYOUTS,
    TRAINING,
    WORDS,
)


def names(header: list[str]) -> list[str]:
    return [match.table for match in find_headers(header, LAYOUTS)]


@every_case(__file__, "name_and_unit")
def test_name_and_unit_of_a_header(header: str, normalised: str, unit: str | None) -> None:
    assert (normalise_header(header), parse_unit(header)) == (normalised, unit)


@given(st.permutations(INFERENCE))
def test_order_of_the_names_does_not_matter(header: list[str]) -> None:
    assert names(header) == ["bow_inference", "pod_inference"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (TRAINING[1:], "the header lacks 'Model'"),
        ([*TRAINING, "Power"], "the header has unknown 'Power'"),
        ([*TRAINING[:-1], "Speed"], "the header lacks 'Throughput' and has unknown 'Speed'"),
        ([*TRAINING, "Model"], "the header repeats 'Model'"),
        ([*TRAINING, ""], "the header has a column without a name"),
    ],
)
def test_nearly_known_header_is_explained(header: list[str], message: str) -> None:
    assert names(header) == []
    assert explain_mismatch(header, LAYOUTS) == message


@pytest.mark.parametrize("header", [[], [""] * 9, ["Model", "Platform"], ["a", "b", "c"]])
def test_other_header_is_not_explained(header: list[str]) -> None:
    assert names(header) == []
    assert explain_mismatch(header, LAYOUTS) is None


@given(st.lists(st.sampled_from([*INFERENCE, "Other", ""]), max_size=12))
def test_header_with_three_known_names_fits_or_is_explained(header: list[str]) -> None:
    known = set(map(normalise_header, header)) & set(map(normalise_header, INFERENCE))
    if len(known) >= 3:
        assert bool(names(header)) != bool(explain_mismatch(header, LAYOUTS))


def test_every_header_has_each_field_once() -> None:
    for header in WORDS.table_headers:
        fields = [field for _, field in header.fields]
        once = [field for field in fields if field not in ("condition", "not_read")]
        if header.required is None:
            assert len(set(once)) == len(once), header.table
        assert [header.field_of(name.upper()) for name in header.names] == fields


def test_name_with_its_unit_wins_over_the_name_alone() -> None:
    fields = (("Rate", "throughput"), ("Rate (J)", "run_energy_j"), ("Seen (tok/s)", "place"))
    header = TableHeader("performance-csv", "table", fields, "inference")
    printed = ["rate (items/s)", "Rate (j)", "Seen (tok/s)", "seen"]
    expected = ["throughput", "run_energy_j", "place", "place"]
    assert list(map(header.field_of, printed)) == expected


# --- text of a cell


@given(st.text())
def test_cleaning_is_idempotent(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text("ab1,.*†²¹0⁶- ", max_size=12))
def test_footnote_mark_is_the_end_of_the_text_and_not_all_of_it(text: str) -> None:
    cell = clean(text)
    left, mark = lift_footnote(cell)
    assert cell.startswith(left)
    assert cell.endswith(mark)
    assert (left == "") == (cell == "")
    assert lift_footnote(left) == (left, "")


@pytest.mark.parametrize("text", ["*" * 50_000 + "x", "x" + " *" * 50_000 + "x", "²" * 50_000])
def test_long_runs_of_marks_end(text: str) -> None:
    assert "".join(lift_footnote(text)).replace(" ", "") == text.replace(" ", "")
