"""All rules together: over the whole real page with its comparators, and over no row at all."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from ipu_results import schema
from ipu_results.check.rules import RULES, Dataset, Rule, find_flags
from ipu_results.schema.pandera_model import pandera_model

from tests.rules_support import (
    BERT_LARGE,
    DINO,
    EFFICIENTNET_B4,
    FASTPITCH,
    FASTSPEECH,
    GPT2,
    PAGE_TEXT,
    RESNET_256,
    TGN,
    YOLO_BOW,
    YOLO_POD,
    Printed,
    comparator_results,
    dataset,
    history_results,
    page_rows,
)

FLAGS = schema.table("flags")
SOME_ROWS = [*FASTSPEECH, *YOLO_BOW, *YOLO_POD, *RESNET_256, *DINO, *GPT2, *TGN, *FASTPITCH, *EFFICIENTNET_B4]
# The text stands alone here: no official record beside it, so R12 finds none for each of the eleven MLPerf ids.
real_page = pytest.mark.skipif(not PAGE_TEXT.exists(), reason="the page's text is not on this machine")

ON_THE_PAGE = {
    ("R01", "error"): 6,
    ("R02", "error"): 3,
    ("R03", "warn"): 2,
    ("R04", "error"): 2,
    ("R05", "warn"): 5,
    ("R06", "warn"): 5,
    ("R07", "info"): 8,
    ("R08", "warn"): 1,
    ("R09", "info"): 91,
    ("R09", "warn"): 13,
    ("R10", "error"): 1,
    ("R10", "warn"): 8,
    ("R11", "warn"): 3,
    ("R12", "warn"): 11,
    ("R14", "info"): 10,
    ("R16", "info"): 77,
    ("R17", "info"): 49,
    ("R18", "info"): 6,
    ("R19", "info"): 7,
    ("R20", "info"): 8,
    ("R20", "warn"): 4,
}


@pytest.fixture(scope="module")
def page() -> Dataset:
    return dataset(page_rows())


@pytest.fixture(scope="module")
def page_flags(page: Dataset) -> pd.DataFrame:
    return find_flags(page)


def shuffled(data: Dataset, seed: int) -> Dataset:
    order = np.random.default_rng(seed)
    frames = {
        name: getattr(data, name).sample(frac=1, random_state=order)
        for name in ("results", "cells", "platforms", "models", "official", "configurations")
    }
    return replace(data, **frames)


@real_page
def test_flags_of_the_real_page(page_flags: pd.DataFrame) -> None:
    counts = page_flags.groupby(["rule", "severity"]).size()
    assert counts.to_dict() == ON_THE_PAGE


@real_page
def test_flags_of_the_comparators_and_the_history() -> None:
    others = pd.concat([comparator_results(), history_results()], ignore_index=True)
    data = replace(dataset([]), results=others)
    flags = find_flags(data)
    counts = flags[flags["severity"] != "info"].groupby(["rule", "severity"]).size()
    assert counts.to_dict() == {("R02", "warn"): 4, ("R03", "warn"): 2, ("R08", "warn"): 1}


@real_page
@pytest.mark.parametrize(
    ("column", "model", "text"),
    [
        ("batch_size", "Swin-Large (224)", "8,196"),
        ("variant", "Yolo v4", "image 416, bps 10, max det 100"),
        ("batch_size", "EfficientNet-B0", "196"),
        ("batch_size", "ResNet-50 v1.5", "360"),
    ],
)
def test_cells_that_look_wrong_and_are_right(
    page: Dataset, page_flags: pd.DataFrame, column: str, model: str, text: str
) -> None:
    cells = page.cells[(page.cells["column_name"] == column) & (page.cells["raw_text"] == text)]
    models = page.results.set_index("result_id")["model"]
    ids = [result_id for result_id in cells["result_id"] if models[result_id] == model]
    assert ids
    about = page_flags[page_flags["result_id"].isin(ids) & (page_flags["column_name"] == column)]
    assert set(about["severity"]) <= {"info"}


@real_page
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_real_rows_does_not_matter(page: Dataset, page_flags: pd.DataFrame, seed: int) -> None:
    pd.testing.assert_frame_equal(find_flags(shuffled(page, seed)), page_flags)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    data = dataset(SOME_ROWS)
    pd.testing.assert_frame_equal(find_flags(shuffled(data, seed)), find_flags(data))


def test_flags_fit_their_table_and_stand_in_order() -> None:
    flags = find_flags(dataset(SOME_ROWS))
    pandera_model(FLAGS).validate(flags)
    keys = list(flags[list(FLAGS.key)].itertuples(index=False, name=None))
    assert keys == sorted(set(keys))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_each_rule_finds_one_flag_per_cell_and_nothing_in_nothing(rule: Rule) -> None:
    flags = rule.find(dataset(SOME_ROWS))
    assert not flags.duplicated(list(FLAGS.key)).any()
    nothing = rule.find(dataset([]))
    assert len(nothing) == 0
    assert list(nothing) == list(FLAGS.names)


def test_no_rows_give_an_empty_table_of_flags() -> None:
    flags = find_flags(dataset([]))
    pandera_model(FLAGS).validate(flags)
    assert len(flags) == 0


@pytest.mark.parametrize("row", SOME_ROWS[::4], ids=lambda row: f"{row.table}-{row.number}")
def test_a_row_alone_is_compared_with_nothing(row: Printed) -> None:
    found = set(find_flags(dataset([row]))["rule"])
    assert found <= {"R01", "R09", "R10", "R11"}


def test_only_published_rows_are_looked_at() -> None:
    data = dataset([*FASTSPEECH, *BERT_LARGE])
    emulated = data.results.assign(origin="emulated")
    assert len(find_flags(replace(data, results=emulated))) == 0


def test_rules_have_distinct_ids_in_order() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))
    assert len(ids) == 22
    assert all(rule.find.__doc__ for rule in RULES)
