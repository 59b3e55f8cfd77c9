"""Two numbers are fitted to six rows: known numbers come out again."""

from __future__ import annotations

import tomllib

import pytest
from ipu_results.emulator.target import Calibration, Fit, load_calibration, load_target

from benchmarks.emulator.calibration import (
    Observation,
    calibrate,
    fit_observations,
)
from benchmarks.emulator.freezing import format_calibration

MK1 = load_target("c2")
KAPPA = MK1["superstep.cycles"]
SUPERSTEPS = (937, 885, 880, 890, 883, 870)


def predict_seconds(row: Observation, fit: Fit) -> float:
    return row.fixed + row.supersteps * fit.superstep + fit.per_batch + row.images * fit.per_image


def observe(start: float, host: float, noise: float = 0.0) -> list[Observation]:
    rows = []
    for images, count in enumerate(SUPERSTEPS, start=1):
        fixed = 4e-4 + 3e-4 * images
        time = fixed + count / 1.6e9 * KAPPA + start + images * host
        rows.append(Observation(fixed, count / 1.6e9, images, time * (1 + noise * (-1) ** images)))
    return rows


def test_two_rows_are_solved_by_hand() -> None:
    rows = [
        Observation(1e-3, 1e-6, 1, 1e-3 + 700e-6 + 8e-4),
        Observation(2e-3, 2e-6, 4, 2e-3 + 1400e-6 + 17e-4),
    ]
    fit = fit_observations(rows, 700)
    assert (fit.superstep, fit.per_batch, fit.per_image) == pytest.approx(
        (700, 5e-4, 3e-4), rel=1e-9
    )
    assert [predict_seconds(row, fit) for row in rows] == pytest.approx(
        [row.seconds for row in rows], rel=1e-12
    )


def test_fit_minimises_relative_errors_and_each_variant_is_fitted_again() -> None:
    rows = observe(5e-5, 3e-4, noise=0.02)
    calibration = calibrate(rows, MK1)

    def sum_squares(fit: Fit) -> float:
        return sum((predict_seconds(row, fit) / row.seconds - 1) ** 2 for row in rows)

    start, host = calibration.fit.per_batch, calibration.fit.per_image
    moved = [(start * 1.1, host), (start * 0.9, host), (start, host * 1.02), (start, host * 0.98)]
    assert all(sum_squares(calibration.fit) < sum_squares(Fit(KAPPA, *fit)) for fit in moved)
    expected = tuple(
        fit_observations([row for row in rows if row is not excluded], KAPPA) for excluded in rows
    )
    assert calibration.jackknife == expected
    assert calibration.ends == tuple(fit_observations(rows, end) for end in (400, 770))
    assert len({calibration.fit, *expected, *calibration.ends}) == 9


def test_id_depends_on_fit_and_constants() -> None:
    rows = observe(5e-5, 3e-4)
    usual = calibrate(rows, MK1).id
    other_constants = calibrate(rows, MK1.with_constants({"reduce.rest": 9})).id
    other_fit = calibrate(observe(6e-5, 3e-4), MK1).id
    assert len({usual, other_constants, other_fit}) == 3
    assert calibrate(rows, load_target("c2")).id == usual


def test_committed_calibration_is_of_the_present_constants() -> None:
    calibration = load_calibration()
    assert (calibration.id, calibration.constants) == ("c2-14669b24bb44", MK1.digest)
    assert (len(calibration.jackknife), [fit.superstep for fit in calibration.ends]) == (
        6,
        [400, 770],
    )
    for name in ("per_batch", "per_image"):
        values = [getattr(fit, name) for fit in calibration.jackknife]
        assert min(values) <= getattr(calibration.fit, name) <= max(values)


def test_formatted_calibration_is_read_back_to_the_last_digit() -> None:
    calibration = calibrate(observe(1 / 30000, 1 / 3000, noise=0.01), MK1)
    data = tomllib.loads(format_calibration(calibration))
    jackknife, ends = (tuple(Fit(**fit) for fit in data[name]) for name in ("jackknife", "ends"))
    read = Calibration(Fit(**data["fit"]), jackknife, data["constants"], ends)
    assert read == calibration
