"""Validate the emulator: calibration, predictions, errors and baselines recomputed from the
warehouse.

Training predictions are scored next to those of inference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from ipu_results.emulator.prediction import MS
from ipu_results.emulator.settings import Protocol
from ipu_results.emulator.split import DIMENSIONS, ConvolutionShape, SplitPlan
from ipu_results.emulator.target import Calibration, Target, load_calibration, load_target
from ipu_results.emulator.training import TrainingPrediction, extend_target, predict_training

from benchmarks.emulator import scoring
from benchmarks.emulator.rows import (
    BLIND,
    DEVELOPMENT,
    SETS,
    TRAINING_SETS,
    PublishedRow,
    TrainingRow,
)

PASSES = 3  # of training: forward, and twice as much backward
FIT, EXCLUDED = "c2 in sample", "c2 leave one out"
SECOND = "honest, second reading"  # doubtful rows by the batch that their figures suggest
LATENCY, LATENCY_SECOND = "latency", "latency, second reading"  # every row but those of the fit


class ErrorLimits(NamedTuple):
    """The target of a set's mean and maximum error on time per batch, as shares."""

    mean: float
    max: float | None = None

    def check(self, errors: scoring.ErrorSummary) -> tuple[bool, bool]:
        """Return whether the mean and the maximum meet their targets."""
        return errors.mean <= self.mean, self.max is None or errors.max <= self.max


# The targets of the design. A target that is missed is reported and changes no exit status.
LIMITS: Mapping[str, ErrorLimits] = {
    FIT: ErrorLimits(0.03),
    EXCLUDED: ErrorLimits(0.05),
    "resnext": ErrorLimits(0.03, 0.07),
    "ten": ErrorLimits(0.04, 0.10),
    "honest": ErrorLimits(0.08, 0.26),
    SECOND: ErrorLimits(0.08, 0.26),
    LATENCY: ErrorLimits(0.08, 0.30),
    LATENCY_SECOND: ErrorLimits(0.08, 0.30),
}


class BaselineRatio(NamedTuple):
    """How many times the emulator's mean error a simpler model has, on the development sets and on
    the blind set.
    """

    against: str
    development: float
    blind: float
    target: float

    @property
    def met(self) -> bool:
        return self.development >= self.target


@dataclass(frozen=True)
class Validation:
    """Everything recomputed from the warehouse.

    Errors are signed shares of the published time, row by row.

    `fit_errors` and `excluded_errors` are those of the calibration rows, `line_errors` the same of
    a straight line, and `baselines` those of each simpler model on all rows.
    """

    calibration: Calibration
    recomputed: Calibration
    scored: Sequence[scoring.ScoredRow]
    fit_errors: Sequence[float]
    excluded_errors: Sequence[float]
    line_errors: tuple[Sequence[float], Sequence[float]]
    baselines: Mapping[str, Sequence[float]]

    @property
    def calibration_differs(self) -> bool:
        return scoring.calibrations_differ(self.recomputed, self.calibration)

    @property
    def changed_predictions(self) -> list[scoring.ScoredRow]:
        return scoring.list_changed_predictions(
            [each for each in self.scored if each.row.set == BLIND]
        )

    def score(self, *sets: str) -> scoring.ErrorSummary:
        """Summarise the emulator's errors on these sets, or on one of the keys of LIMITS."""
        return scoring.summarise_errors(self._list_errors(*sets))

    def _list_errors(self, *sets: str) -> Sequence[float]:
        if sets == (FIT,):
            return self.fit_errors
        if sets == (EXCLUDED,):
            return self.excluded_errors
        if sets == (SECOND,):
            return [(each.second or each).error for each in self.scored if each.row.set == BLIND]
        if sets in ((LATENCY,), (LATENCY_SECOND,)):
            rows = [each for each in self.scored if each.row.set != "calibration"]
            readings = rows if sets == (LATENCY,) else [each.second or each for each in rows]
            return [each.latency_error for each in readings if each.latency_error is not None]
        return [each.error for each in self.scored if each.row.set in sets]

    def score_baseline(self, name: str, *sets: str) -> scoring.ErrorSummary:
        pairs = zip(self.scored, self.baselines[name], strict=True)
        return scoring.summarise_errors([error for each, error in pairs if each.row.set in sets])

    def compute_ratio(self, names: Iterable[str], *sets: str) -> float:
        """Divide the mean error of the best of these baselines by the emulator's."""
        return min(self.score_baseline(name, *sets).mean for name in names) / self.score(*sets).mean

    def compute_ratios(self) -> list[BaselineRatio]:
        """Return the two comparisons that the emulator must win on the 19 rows of the development
        sets.
        """
        return [
            BaselineRatio(
                name,
                self.compute_ratio(models, *DEVELOPMENT),
                self.compute_ratio(models, BLIND),
                target,
            )
            for name, models, target in (
                ("best scaled-C2 line", scoring.SCALED, 4.0),
                (scoring.GRID, [scoring.GRID], 1.3),
            )
        ]


def validate(rows: Sequence[PublishedRow], calibration: Calibration | None = None) -> Validation:
    """Predict all rows with the committed calibration, and compare with simpler models fitted on
    the same six rows.
    """
    known = calibration or load_calibration()
    fitted = [row for row in rows if row.set == "calibration"]
    recomputed = scoring.recalibrate(rows)
    observed = [scoring.observe(row, load_target("c2")) for row in fitted]
    scored = scoring.predict_rows(rows, known)
    # Predictions use the committed calibration, so that a changed row shows as a difference and not
    # as another model.
    return Validation(
        known,
        recomputed,
        scored,
        scoring.compute_errors(observed, [recomputed.fit] * len(observed)),
        scoring.compute_errors(observed, recomputed.jackknife),
        scoring.compute_line_errors(fitted),
        {
            name: [model(row) / row.seconds - 1 for row in rows]
            for name, model in scoring.fit_baselines(fitted).items()
        },
    )


def to_json(validation: Validation) -> dict[str, Any]:
    """Return the JSON of `python -m benchmarks.emulator validate`: errors as fractions, times in ms."""
    return {
        "origin": "emulated",
        "calibration_id": validation.calibration.id,
        "calibration_agrees": not validation.calibration_differs,
        "predictions_departed": [each.row.result_id for each in validation.changed_predictions],
        "scores": list(_scores_to_json(validation)),
        "ratios": [
            {
                "against": ratio.against,
                "ratio": ratio.development,
                "honest": ratio.blind,
                "target": ratio.target,
            }
            for ratio in validation.compute_ratios()
        ],
        "baselines": {
            name: {set_: _summary_to_json(validation.score_baseline(name, set_)) for set_ in SETS}
            for name in validation.baselines
        },
        "rows": [_row_to_json(each) for each in validation.scored],
    }


def _scores_to_json(validation: Validation) -> Iterator[dict[str, Any]]:
    for name, limits in LIMITS.items():
        errors = validation.score(name)
        targets = {"mean_target": limits.mean, "max_target": limits.max}
        yield {"set": name, **_summary_to_json(errors), **targets, "met": all(limits.check(errors))}


def _summary_to_json(errors: scoring.ErrorSummary) -> dict[str, float]:
    return {"rows": errors.rows, "mean": errors.mean, "max": errors.max}


# What is stated of a doubtful row with the batch that its figures suggest.
READING = (
    *("batch_size", "published_ms", "emulated_ms", "error"),
    *("published_latency_ms", "emulated_latency_ms", "latency_error"),
)


def _row_to_json(scored: scoring.ScoredRow) -> dict[str, Any]:
    row, selector, prediction = scored.row, scored.row.selector, scored.prediction
    second = None if scored.second is None else _row_to_json(scored.second)
    return {
        **_label(row, selector.network, selector.target, selector.framework, row.protocol.name),
        "published_ms": row.seconds * MS,
        "emulated_ms": scored.seconds * MS,
        "emulated_device_ms": prediction.device_ms,
        "emulated_protocol_ms": prediction.protocol_ms,
        "error": scored.error,
        "published_latency_ms": None if row.latency is None else row.latency * MS,
        "emulated_latency_ms": prediction.latency_ms,
        "latency_error": scored.latency_error,
        "second_reading": second and {name: second[name] for name in READING},
        "settings": _settings_to_json(row.protocol, load_target(selector.target)),
    }


def _label(
    row: PublishedRow | TrainingRow, network: str, target: str, framework: str, protocol: str
) -> dict[str, Any]:
    labels = {
        "result_id": row.result_id,
        "set": row.set,
        "network": network,
        "target": target,
        "framework": framework,
    }
    return {
        **labels,
        "variant": row.variant or None,
        "protocol": protocol,
        "batch_size": row.batch_size,
    }


def _settings_to_json(protocol: Protocol, target: Target) -> dict[str, Any]:
    """Return the host path of a row, as its public configuration states it."""
    names = ("input_bits", "instances", "replicas", "io_tiles", "prefetch", "in_flight")
    usual = {"instances": int(target["host.processes"]), "replicas": target.chips}
    return {
        name: getattr(protocol, name) or usual.get(name, getattr(protocol, name)) for name in names
    }


# the design's aim for one machine and pods of up to 64 chips, set `train`
MEDIAN_LIMIT, MAX_LIMIT = 0.12, 0.30
AIMED = "train"


@dataclass(frozen=True, slots=True)
class TrainingScore:
    """A published training row and its prediction.

    `baselines` are the seconds of a step by simpler models.
    """

    row: TrainingRow
    prediction: TrainingPrediction
    baselines: Mapping[str, float] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """Return the signed share of the published time of a step."""
        return self.prediction.step_s / self.row.seconds - 1

    def get_baseline_error(self, name: str) -> float:
        return self.baselines[name] / self.row.seconds - 1


def score_training(
    rows: Sequence[TrainingRow], fitted: Sequence[PublishedRow] = ()
) -> list[TrainingScore]:
    """Predict each row.

    `fitted` are the C2 rows that the broadcast-grid model is fitted on; none leaves it out.
    """
    grid = scoring.fit_bsp(scoring.estimate_grid, fitted) if fitted else None
    return [_score(row, None if grid is None else grid.superstep) for row in rows]


def _score(row: TrainingRow, superstep: float | None) -> TrainingScore:
    target = extend_target(load_target(row.target))
    prediction = predict_training(row.network, target, row.setup)
    setup = row.setup
    macs = PASSES * row.network(setup.micro_batch).macs * setup.replicas * setup.accumulation
    baselines = {scoring.ROOFLINE: macs / (prediction.chips * scoring.compute_peak(target))}
    if superstep is not None:
        slower = target.with_constants({"superstep.cycles": superstep})
        baselines[scoring.GRID] = predict_training(row.network, slower, setup, plan_on_grid).step_s
    return TrainingScore(row, prediction, baselines)


def plan_on_grid(shape: ConvolutionShape, target: Target) -> SplitPlan:
    """Return the broadcast-grid model's cycles as a plan: one superstep, nothing searched, no
    temporary memory.
    """
    undivided = (1,) * len(DIMENSIONS)
    share = shape.batch * shape.groups * shape.outs * shape.rows * shape.columns / target.tiles
    return SplitPlan(
        "grid", undivided, scoring.estimate_grid(shape, target), 0.0, 0.0, 1, 0.0, share
    )


def check_aim(summary: scoring.ErrorSummary) -> tuple[bool, bool]:
    """Return whether the median and the maximum meet the aim."""
    return summary.median <= MEDIAN_LIMIT, summary.max <= MAX_LIMIT


def iterate_sets(scores: Sequence[TrainingScore]) -> list[tuple[str, list[TrainingScore]]]:
    """Return the scores by set, in the order of TRAINING_SETS."""
    grouped = [(name, [each for each in scores if each.row.set == name]) for name in TRAINING_SETS]
    return [(name, members) for name, members in grouped if members]


def add_training_json(record: dict[str, Any], scores: Sequence[TrainingScore]) -> dict[str, Any]:
    """Add the rows, sets and baselines of training to the JSON of `python -m benchmarks.emulator validate`."""
    training: dict[str, Any] = {"held_out": True, "blind": False, "sets": [], "baselines": {}}
    for name, members in iterate_sets(scores):
        summary = scoring.summarise_errors([each.error for each in members])
        aims = {
            "median_target": MEDIAN_LIMIT,
            "max_target": MAX_LIMIT,
            "met": all(check_aim(summary)),
        }
        training["sets"].append({"set": name, **asdict(summary), **(aims if name == AIMED else {})})
        for model in members[0].baselines:
            errors = scoring.summarise_errors([each.get_baseline_error(model) for each in members])
            training["baselines"].setdefault(model, {})[name] = asdict(errors)
    return {
        **record,
        "training": training,
        "rows": [*record["rows"], *(_training_row_to_json(each) for each in scores)],
    }


def _training_row_to_json(score: TrainingScore) -> dict[str, Any]:
    row, prediction, setup = score.row, score.prediction, score.row.setup
    return {
        **_label(row, row.name, row.target, row.framework, "training"),
        "published_ms": row.seconds * MS,
        "emulated_ms": prediction.step_s * MS,
        "published_throughput": row.throughput,
        "emulated_throughput": prediction.throughput,
        "error": score.error,
        **dict.fromkeys(
            ("published_latency_ms", "emulated_latency_ms", "latency_error", "second_reading")
        ),
        "settings": {
            "chips": prediction.chips,
            "stages": prediction.stages,
            "micro_batch": setup.micro_batch,
            "replicas": setup.replicas,
            "accumulation": setup.accumulation,
            "recompute": setup.recompute,
            "available_memory_proportion": list(setup.proportions),
            "optimizer_state_offchip": setup.offchip,
        },
        "parts_ms": {
            "round": prediction.round_s * MS,
            "all_reduce": prediction.all_reduce_s * MS,
            "update": prediction.update_s * MS,
            "offload": prediction.offload_s * MS,
        },
        "bubble_share": prediction.bubble_share,
        "memory_verdict": prediction.memory_verdict,
    }
