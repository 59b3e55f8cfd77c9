"""The emulator against the published rows: which rows, the frozen calibration, the errors, and nothing typed in."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, run_cli
from emulator_support import percent, report, rows
from ipu_results.emulator import freezing
from ipu_results.emulator.baselines import GRID, PERFECT, SCALED, grid, mac_rate, perfect
from ipu_results.emulator.calibration import Calibration, Fit, frozen
from ipu_results.emulator.published import SETS, Row, published, selectors
from ipu_results.emulator.report import HELD_OUT, OVER_GRID, OVER_LINE, misses, ratios, shares, tables, validate
from ipu_results.emulator.report_json import as_json
from ipu_results.emulator.scatter import draw
from ipu_results.emulator.split import Shape
from ipu_results.emulator.target import load_target
from ipu_results.emulator.validation import COLUMNS, TARGETS, committed, departed, differing, recalibrated, score
from ipu_results.errors import WarehouseError

COVERED = ("ResNet-50 v1.5", "ResNeXt101", "EfficientNet-B0", "EfficientNet-B4", "EfficientNet-B7")
COVERED_TEXT = ("BERT-Large", "BERT-Base")
PLATFORMS = ("IPU-M2000", "Bow-2000")
RESULTS = ROOT / "warehouse" / "results.parquet"

Edit = Callable[[str], duckdb.DuckDBPyConnection]


@pytest.fixture
def edited() -> Iterator[Edit]:
    """The results after an SQL statement, as a warehouse to read."""
    connection = duckdb.connect()

    def edit(statement: str) -> duckdb.DuckDBPyConnection:
        connection.execute("CREATE TABLE results AS SELECT * FROM read_parquet(?)", [str(RESULTS)])
        connection.execute(statement)
        return connection

    yield edit
    connection.close()


def test_each_set_has_its_rows() -> None:
    assert Counter(row.how.set for row in rows()) == {"calibration": 6, "resnext": 9, "ten": 10, "honest": 57}
    assert len({row.result_id for row in rows()}) == len(rows())


def test_every_row_of_the_page_that_is_covered_is_in_one_set() -> None:
    names = {row.result_id for row in rows() if row.how.set != "calibration"}
    with duckdb.connect() as connection:
        found = connection.execute(
            "SELECT result_id FROM read_parquet(?) WHERE task = 'inference' AND list_contains(?, model) "
            "AND list_contains(?, platform) AND document_id = 'graphcore-performance-2023-07-04'",
            [str(RESULTS), [*COVERED, *COVERED_TEXT], [*PLATFORMS]],
        ).fetchall()
    assert names == {result_id for (result_id,) in found}


def test_the_ten_are_those_of_the_design() -> None:
    found = [(row.how.network, row.how.target, row.batch) for row in rows() if row.how.set == "ten"]
    lowest = [(network, "m2000", 4) for network in ("resnet50", "efficientnet-b0", "efficientnet-b4")]
    prefetched = [("efficientnet-b4", "m2000", batch) for batch in (16, 24, 32, 40)]
    assert found == [*lowest, *prefetched, *((network, "bow-2000", 4) for network, _, _ in lowest)]


def test_the_calibration_is_that_of_the_warehouse() -> None:
    assert not report().differs
    assert report().remade.fit.superstep == pytest.approx(682, abs=1)
    assert report().remade.fit.per_image == pytest.approx(0.322e-3, abs=1e-6)


def test_the_predictions_were_committed_before_the_scores() -> None:
    honest = [one for one in report().scored if one.row.how.set == "honest"]
    assert report().departed == []
    assert set(committed()) == {one.row.result_id for one in honest}
    held = [one for one in report().scored if one.row.how.set == "ten"]
    with pytest.raises(WarehouseError, match="no committed prediction"):
        departed(held)


def test_met_targets_stay_met() -> None:
    assert score(report().inside).mean <= 0.03
    assert score(report().outside).mean <= 0.05
    assert report().score("resnext").meets(TARGETS["resnext"]) == (True, True)
    assert report().score("ten").meets(TARGETS["ten"]) == (False, True)
    assert report().score("honest").meets(TARGETS["honest"]) == (False, False)


def test_missed_targets_are_told() -> None:
    ten, mean, most = misses(report())
    assert ten.endswith(f"MAPE {percent(report().score('ten').mean)} % against a target of 4.5 %")
    assert mean.endswith(f"MAPE {percent(report().score('honest').mean)} % against a target of 12 %")
    assert most.endswith(f"maximum {percent(report().score('honest').most)} % against a target of 25 %")


def test_simpler_models_are_further_off() -> None:
    line, simple = ratios(report())
    assert line.watched >= line.target == OVER_LINE
    assert simple.watched >= simple.target == OVER_GRID
    for one, model in ((line, "C2 line, scaled by peak"), (simple, "broadcast-grid BSP")):
        expected = report().other(model, "honest").mean / report().score("honest").mean
        assert one.honest == pytest.approx(expected)
        assert 1 < one.honest < one.watched
    for name in SETS[1:]:
        assert report().score(name).mean < min(report().other(one, name).mean for one in report().others)


def test_a_straight_line_is_as_good_on_the_c2() -> None:
    inside, outside = report().line
    assert score(inside).mean < score(report().inside).mean
    assert score(outside).mean < score(report().outside).mean
    assert all(report().other(name, "calibration").mean == score(inside).mean for name in SCALED)


def test_peak_rates_are_those_of_the_chips() -> None:
    assert [mac_rate(load_target(name)) for name in ("c2", "m2000", "bow-2000")] == [32, 64, 64]


def test_simple_splits_by_hand() -> None:
    """A matrix product of 1472 × 64 × 1: a row to each tile, 64 cycles' worth of weights at 64 a cycle."""
    shape, target = Shape(1, 1, 64, 1, 1472, 1, in_rows=1472, in_columns=1), load_target("m2000")
    assert grid(shape, target) == 64 / 64 + (64 + 64) * 2 / 4
    assert perfect(shape, target) == pytest.approx(64 / 64 + (64 + 64 / 1472) * 2 / 4)
    assert report().other(GRID, *HELD_OUT).mean < report().other(PERFECT, *HELD_OUT).mean


def test_a_changed_figure_changes_the_table(edited: Edit) -> None:
    changed = rows()[10]
    found = published(edited(f"UPDATE results SET throughput = throughput * 2 WHERE result_id = '{changed.result_id}'"))
    errors = {one.row.result_id: one.error for one in validate(found).scored}
    for one in report().scored:
        same = errors[one.row.result_id] == one.error
        assert same == (one.row.result_id != changed.result_id)


def test_a_changed_c2_figure_changes_the_calibration(edited: Edit) -> None:
    found = published(edited(f"UPDATE results SET latency_ms = 1.5 WHERE result_id = '{rows()[0].result_id}'"))
    assert differing(recalibrated(found), frozen())


def test_a_missing_row_is_told(edited: Edit) -> None:
    with pytest.raises(WarehouseError, match=r"ResNeXt101, PopART, C2, .*: holds 5 of the 6 rows"):
        published(edited(f"DELETE FROM results WHERE result_id = '{rows()[0].result_id}'"))


def test_a_row_without_its_figure_is_told(edited: Edit) -> None:
    name = rows()[6].result_id
    with pytest.raises(WarehouseError, match=f"row {name} lacks its batch size or its throughput"):
        published(edited(f"UPDATE results SET throughput = NULL WHERE result_id = '{name}'"))


def test_emulated_results_are_never_taken_for_published_ones(edited: Edit) -> None:
    copy = "INSERT INTO results SELECT * REPLACE ('emulated' AS origin) FROM read_parquet"
    assert published(edited(f"{copy}('{RESULTS}')")) == rows()


def test_selectors_cite_and_type_no_figure() -> None:
    assert all(one.source for one in selectors())
    assert sum(one.rows for one in selectors()) == len(rows())
    assert {row.how.path.io_tiles for row in chosen("bow-2000", "efficientnet-b4", "io-tiles")} == {32}


def chosen(target: str, network: str, protocol: str) -> list[Row]:
    wanted = (target, network, protocol)
    return [row for row in rows() if (row.how.target, row.how.network, row.how.protocol) == wanted]


def test_another_calibration_differs() -> None:
    known = frozen()
    assert not differing(known, known)
    assert differing(Calibration(Fit(known.fit.superstep * 1.001, known.fit.per_image), known.jackknife, "x"), known)
    assert differing(Calibration(known.fit, known.jackknife[1:], known.constants), known)
    assert differing(Calibration(known.fit, known.jackknife, "other"), known)


def test_shares_of_a_row_add_to_one() -> None:
    for one in report().scored:
        assert sum(shares(one, report().calibration).values()) == pytest.approx(1)


def test_freezing_gives_the_committed_files(tmp_path: Path) -> None:
    calibration, predictions = freezing.freeze(rows(), tmp_path)
    folder = ROOT / "pipeline" / "ipu_results" / "emulator"
    assert (
        calibration.read_text(encoding="utf-8").splitlines()[:3]
        == ((folder / calibration.name).read_text(encoding="utf-8").splitlines()[:3])
    )
    new, old = (_records(path) for path in (predictions, folder / predictions.name))
    assert tuple(new[0]) == COLUMNS
    assert [one["result_id"] for one in new] == [one["result_id"] for one in old]


def _records(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def test_the_command_tells_the_table() -> None:
    done = run_cli("validate-emulator", "--warehouse", ROOT / "warehouse")
    assert done.returncode == 0, done.stderr
    for table in tables(report()):
        assert table.told("simple") in done.stdout
    assert f"emulated, not measured; calibration {report().calibration.id}" in done.stdout


def test_the_command_as_json_and_plot(tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    done = run_cli("validate-emulator", "--warehouse", ROOT / "warehouse", "--format", "json", "--plot", plot)
    assert json.loads(done.stdout) == json.loads(json.dumps(as_json(report())))
    assert plot.read_bytes() == draw(report(), ".svg")


def test_the_command_refuses_another_calibration(tmp_path: Path) -> None:
    """One latency of the paper changed, all else as committed."""
    folder = tmp_path / "warehouse"
    folder.mkdir()
    for path in (ROOT / "warehouse").glob("*.parquet"):
        shutil.copy(path, folder)
    table = pq.read_table(RESULTS)
    times = table["latency_ms"].to_pylist()
    times[table["result_id"].to_pylist().index(rows()[0].result_id)] = 1.5
    at = table.schema.get_field_index("latency_ms")
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(times, pa.float64())), folder / RESULTS.name)
    done = run_cli("validate-emulator", "--warehouse", folder)
    assert done.returncode == 1
    assert done.stderr == "error: the warehouse gives another calibration than calibration.toml\n"


def test_the_command_refuses_another_kind_of_plot(tmp_path: Path) -> None:
    done = run_cli("validate-emulator", "--plot", tmp_path / "plot.gif")
    assert done.returncode == 2
    assert "plot.gif ends in neither .svg nor .png" in done.stderr


def test_no_published_row_is_said_not_to_fit() -> None:
    assert {one.prediction.memory_verdict for one in report().scored} <= {"FITS", "UNCERTAIN"}
