"""The emulator against the published rows: which rows, the committed calibration and predictions,
and the errors.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from ipu_results.emulator.target import Fit, load_calibration
from ipu_results.errors import TooFewRowsError, WarehouseError
from ipu_results.record.store.files import get_parquet_name

from benchmarks.emulator import freezing
from benchmarks.emulator.__main__ import refuse_changes
from benchmarks.emulator.rows import (
    BLIND,
    DATA,
    load_published_rows,
    load_rows,
    load_selectors,
)
from benchmarks.emulator.scoring import (
    calibrations_differ,
    list_changed_predictions,
    load_predictions,
    predict_rows,
    recalibrate,
)
from benchmarks.emulator.validation import Validation, load_validation
from tests.conftest import ROOT

COVERED = ("ResNet-50 v1.5", "ResNeXt101", "EfficientNet-B0", "EfficientNet-B4", "EfficientNet-B7")
COVERED += ("BERT-Large", "BERT-Base")
RESULTS = ROOT / "warehouse" / "results.parquet"

Edit = Callable[[str], duckdb.DuckDBPyConnection]


@pytest.fixture
def edited() -> Iterator[Edit]:
    """Return the results after an SQL statement, as a warehouse to read."""
    connection = duckdb.connect()

    def edit(statement: str) -> duckdb.DuckDBPyConnection:
        connection.execute("CREATE SCHEMA detail")
        for name in ("results", "detail.configurations", "flags"):
            path = str(RESULTS.parent / get_parquet_name(name))
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet(?)", [path])
        connection.execute(statement)
        return connection

    yield edit
    connection.close()


@pytest.fixture(scope="module")
def validation() -> Validation:
    """Validate all rows: every split is searched, some 20 s."""
    return load_validation()


# Rows


def test_rows_of_each_set() -> None:
    rows = load_rows()
    counts = Counter(row.set for row in rows)
    assert counts == {"calibration": 6, "resnext": 9, "ten": 10, "honest": 57}
    assert len({row.result_id for row in rows}) == len(rows)
    assert len(rows) == sum(selector.rows for selector in load_selectors())
    assert all(selector.source for selector in load_selectors())


def test_every_covered_row_of_the_page_is_in_a_set() -> None:
    ids = {row.result_id for row in load_rows() if row.set != "calibration"}
    with duckdb.connect() as connection:
        covered = connection.execute(
            "SELECT result_id FROM read_parquet(?)"
            " WHERE task = 'inference' AND list_contains(?, model_printed)"
            " AND platform IN ('IPU-M2000', 'Bow-2000')"
            " AND document_id = 'graphcore-performance-2023-07-04'",
            [str(RESULTS), [*COVERED]],
        ).fetchall()
    assert ids == {result_id for (result_id,) in covered}


def test_host_path_of_a_row_is_its_public_configuration() -> None:
    """Bits, host processes, replicas, I/O tiles and prefetch, as the configurations of the page
    state them.
    """
    expected = {
        ("resnext101-32x4d", "c2", 2, ""): (16, None, None, 0, False),
        ("resnext101-32x8d", "m2000", 64, ""): (8, 4, 4, 32, True),
        ("resnet50", "m2000", 4, "lowest latency config"): (8, 4, 4, 64, False),
        ("efficientnet-b4", "bow-2000", 48, ""): (8, 2, 4, 32, True),
        ("efficientnet-b4", "bow-2000", 4, "lowest latency config"): (8, 2, 4, 0, False),
        ("bert-base", "m2000", 4, "SL128"): (32, 4, 4, 0, False),
    }
    found = {}
    for row in load_rows():
        key = (row.selector.network, row.selector.target, row.batch_size, row.variant)
        path = row.protocol
        processes = (path.instances, path.replicas)
        found[key] = (path.input_bits, *processes, path.io_tiles, path.prefetch)
    assert found.items() >= expected.items()


def test_changed_configuration_changes_the_host_path(edited: Edit) -> None:
    changes = "instances = 1, precision_flags = '16.16', note = '16 I/O tiles'"
    for row in load_published_rows(edited(f"UPDATE detail.configurations SET {changes}")):
        path = row.protocol
        if row.selector.target == "bow-2000" and path.overlapped:
            assert (path.instances, path.input_bits, path.io_tiles) == (1, 16, 16)
            break
    else:
        pytest.fail("no row overlaps")


def test_doubtful_batches_have_a_second_reading(edited: Edit) -> None:
    """Rule R24 finds half as many batches in flight as in the other rows of ResNet-50."""
    batches = {}
    for row in load_rows():
        second = row.second_reading
        if second is not None:
            batches[row.batch_size] = second.batch_size
            assert second.seconds == pytest.approx(row.seconds / 2)
            assert (second.latency, second.protocol) == (row.latency, row.protocol)
    assert batches == {16: 8, 32: 16}
    without = load_published_rows(edited("DELETE FROM flags WHERE rule = 'R24'"))
    assert not any(row.second_reading for row in without)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM detail.configurations", "has no public configuration"),
        ("DELETE FROM results", "ResNeXt101, PopART, C2, .*: .* holds 5 of the 6 rows"),
        ("UPDATE results SET throughput = NULL", "lacks its batch size or its"),
    ],
)
def test_incomplete_row_is_an_error(edited: Edit, statement: str, message: str) -> None:
    row = load_rows()[0 if statement == "DELETE FROM results" else 6]
    with pytest.raises(WarehouseError, match=message):
        load_published_rows(edited(f"{statement} WHERE result_id = '{row.result_id}'"))


def test_too_many_rows_are_not_too_few(edited: Edit) -> None:
    again = "INSERT INTO results SELECT * REPLACE ('again' AS result_id) FROM results"
    twice = f"{again} WHERE result_id = '{load_rows()[0].result_id}'"
    with pytest.raises(WarehouseError, match="selects 7 rows, and 6 are stated") as error:
        load_published_rows(edited(twice))
    assert not isinstance(error.value, TooFewRowsError)


def test_emulated_results_are_not_published_ones(edited: Edit) -> None:
    copy = "INSERT INTO results SELECT * REPLACE ('emulated' AS origin) FROM read_parquet"
    assert load_published_rows(edited(f"{copy}('{RESULTS}')")) == load_rows()


# Calibration and predictions


def test_calibration_is_recomputed_from_the_six_rows(edited: Edit) -> None:
    recomputed = recalibrate(load_rows())
    assert not calibrations_differ(recomputed, load_calibration())
    assert recomputed.fit.superstep == 600
    assert recomputed.fit.per_batch == pytest.approx(3.285932934580251e-05, rel=1e-6)
    assert recomputed.fit.per_image == pytest.approx(0.00033578878387664556, rel=1e-6)
    first = load_rows()[0].result_id
    changed = edited(f"UPDATE results SET latency_ms = 1.5 WHERE result_id = '{first}'")
    assert calibrations_differ(recalibrate(load_published_rows(changed)), load_calibration())


def test_other_calibrations_differ() -> None:
    known = load_calibration()
    moved = Fit(known.fit.superstep, known.fit.per_batch * 1.001, known.fit.per_image)
    assert not calibrations_differ(known, known)
    changes = ({"fit": moved}, {"jackknife": ()}, {"ends": ()}, {"constants": "other"})
    for change in changes:
        assert calibrations_differ(replace(known, **change), known)


def test_quickest_predictions_are_the_committed_ones() -> None:
    """The rows whose splits are searched in a second; the others are slow."""
    rows = [row for row in load_rows() if row.set == BLIND and row.selector.network == "bert-base"]
    scored = predict_rows(rows[:4], load_calibration())
    assert list_changed_predictions(scored) == []
    text = DATA.joinpath("predictions.csv").read_text(encoding="utf-8")
    assert set(freezing.format_predictions(scored).splitlines()) <= set(text.splitlines())
    row = next(row for row in load_rows() if row.set == "ten")
    held = predict_rows([row], load_calibration())
    with pytest.raises(WarehouseError, match="no committed prediction"):
        list_changed_predictions(held)


def list_numbers(path: Path) -> list[float]:
    text = path.read_text(encoding="utf-8").partition("\n")[2]
    return list(map(float, re.findall(r"(?<![\w.])\d+\.\d+", text)))


@pytest.mark.slow
def test_all_predictions_are_the_committed_ones(validation: Validation, tmp_path: Path) -> None:
    assert validation.changed_predictions == []
    blind = set()
    for scored in validation.scored:
        assert scored.prediction.memory_verdict in ("FITS", "UNCERTAIN")
        if scored.row.set == BLIND:
            blind.add(scored.row.result_id)
    assert set(load_predictions()) == blind
    for path in freezing.freeze(load_rows(), tmp_path, tmp_path):
        folder = DATA if path.name == "predictions.csv" else freezing.PACKAGE_DATA
        assert list_numbers(path) == pytest.approx(list_numbers(folder / path.name), rel=1e-5)


# The command


@pytest.mark.slow
def test_other_calibration_and_predictions_are_refused(
    validation: Validation, capsys: pytest.CaptureFixture[str]
) -> None:
    known = validation.calibration
    moved = replace(known, fit=replace(known.fit, per_batch=known.fit.per_batch * 1.001))
    assert refuse_changes(validation) == 0
    assert refuse_changes(replace(validation, calibration=moved)) == 1
    message = "error: the warehouse gives another calibration than calibration.toml\n"
    assert capsys.readouterr().err == message
