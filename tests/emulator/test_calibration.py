"""Two numbers are fitted to six rows: known numbers come out again."""

from __future__ import annotations

import tomllib

import msgspec
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
    first = Observation(1e-3, 1e-6, 1, 1e-3 + 700e-6 + 8e-4)
    second = Observation(2e-3, 2e-6, 4, 2e-3 + 1400e-6 + 17e-4)
    fit = fit_observations([first, second], 700)
    assert (fit.per_batch, fit.per_image) == pytest.approx((5e-4, 3e-4), rel=1e-9)
    for row in (first, second):
        assert predict_seconds(row, fit) == pytest.approx(row.seconds, rel=1e-12)


def test_fit_minimises_relative_errors_and_each_variant_is_fitted_again() -> None:
    rows = observe(5e-5, 3e-4, noise=0.02)
    calibration = calibrate(rows, MK1)

    def sum_squares(fit: Fit) -> float:
        return sum((predict_seconds(row, fit) / row.seconds - 1) ** 2 for row in rows)

    start = calibration.fit.per_batch
    host = calibration.fit.per_image
    for moved in ((1.1, 1), (0.9, 1), (1, 1.02), (1, 0.98)):
        other = Fit(KAPPA, start * moved[0], host * moved[1])
        assert sum_squares(calibration.fit) < sum_squares(other)
    for left_out, fit in enumerate(calibration.jackknife):
        assert fit == fit_observations(rows[:left_out] + rows[left_out + 1 :], KAPPA)
    assert len(calibration.jackknife) == len(rows)
    assert calibration.ends == (fit_observations(rows, 400), fit_observations(rows, 770))


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
    assert len(calibration.jackknife) == 6
    assert [fit.superstep for fit in calibration.ends] == [400, 770]
    for name in ("per_batch", "per_image"):
        values = [getattr(fit, name) for fit in calibration.jackknife]
        assert min(values) <= getattr(calibration.fit, name) <= max(values)


def test_formatted_calibration_is_read_back_to_the_last_digit() -> None:
    calibration = calibrate(observe(1 / 30000, 1 / 3000, noise=0.01), MK1)
    data = tomllib.loads(format_calibration(calibration))
    assert msgspec.convert(data, Calibration) == calibration
