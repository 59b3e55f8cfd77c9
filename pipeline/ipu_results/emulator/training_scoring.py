"""Score training predictions against published rows, next to two simpler models on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ipu_results.emulator.baselines import GRID, ROOFLINE, compute_peak, estimate_grid, fit_bsp
from ipu_results.emulator.cache import open_plan_cache
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.published import PublishedRow
from ipu_results.emulator.schedule import Planner
from ipu_results.emulator.scoring import ErrorSummary, summarise_errors
from ipu_results.emulator.split import DIMENSIONS, ConvolutionShape, SplitPlan
from ipu_results.emulator.target import Target
from ipu_results.emulator.training import TrainingPrediction, load_training_target, predict_training
from ipu_results.emulator.training_rows import SETS, TrainingRow

MEDIAN_LIMIT, MAX_LIMIT = 0.12, 0.30  # the design's aim for one machine and pods of up to 64 chips, set `train`
AIMED = "train"
PASSES = 3  # of a training step: forward, and the gradients of data and weights


@dataclass(frozen=True, slots=True)
class TrainingScore:
    """A published training row and its prediction. `baselines` are the seconds of a step by simpler models."""

    row: TrainingRow
    prediction: TrainingPrediction
    baselines: Mapping[str, float] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """Return the signed share of the published time of a step."""
        return self.prediction.step_s / self.row.seconds - 1

    def get_baseline_error(self, name: str) -> float:
        return self.baselines[name] / self.row.seconds - 1


def score_training(rows: Sequence[TrainingRow], fitted: Sequence[PublishedRow] = ()) -> list[TrainingScore]:
    """Predict each row. `fitted` are the C2 rows that the broadcast-grid model is fitted on; none leaves it out."""
    grid = fit_bsp(estimate_grid, fitted) if fitted else None
    with open_plan_cache() as planner:
        return [_score(row, planner, None if grid is None else grid.superstep) for row in rows]


def _score(row: TrainingRow, planner: Planner, superstep: float | None) -> TrainingScore:
    target = load_training_target(row.target)
    prediction = predict_training(row.network, target, row.setup, row.cut, planner=planner)
    setup = row.setup
    macs = PASSES * row.network(setup.micro_batch).macs * setup.replicas * setup.accumulation
    baselines = {ROOFLINE: macs / (prediction.chips * compute_peak(target))}
    if superstep is not None:
        simple = predict_training(row.network, target, setup, row.cut, planner=plan_on_grid, superstep=superstep)
        baselines[GRID] = simple.step_s
    return TrainingScore(row, prediction, baselines)


def plan_on_grid(shape: ConvolutionShape, target: Target) -> SplitPlan:
    """Return the broadcast-grid model's cycles as a plan: one superstep, nothing searched, no temporary memory."""
    undivided = (1,) * len(DIMENSIONS)
    share = shape.batch * shape.groups * shape.outs * shape.rows * shape.columns / target.tiles
    return SplitPlan("grid", undivided, estimate_grid(shape, target), 0.0, 0.0, 1, 0.0, share)


def check_aim(summary: ErrorSummary) -> tuple[bool, bool]:
    """Return whether the median and the maximum meet the aim."""
    return summary.median <= MEDIAN_LIMIT, summary.max <= MAX_LIMIT


def iterate_sets(scores: Sequence[TrainingScore]) -> list[tuple[str, list[TrainingScore]]]:
    """Return the scores by set, in the order of SETS."""
    grouped = [(name, [each for each in scores if each.row.set == name]) for name in SETS]
    return [(name, members) for name, members in grouped if members]


def add_training_json(record: dict[str, Any], scores: Sequence[TrainingScore]) -> dict[str, Any]:
    """Add the rows, sets and baselines of training to the JSON of `validate-emulator`."""
    training: dict[str, Any] = {"held_out": True, "blind": False, "sets": [], "baselines": {}}
    for name, members in iterate_sets(scores):
        summary = summarise_errors([each.error for each in members])
        aims = {"median_target": MEDIAN_LIMIT, "max_target": MAX_LIMIT, "met": all(check_aim(summary))}
        training["sets"].append({"set": name, **asdict(summary), **(aims if name == AIMED else {})})
        for model in members[0].baselines:
            errors = summarise_errors([each.get_baseline_error(model) for each in members])
            training["baselines"].setdefault(model, {})[name] = asdict(errors)
    return {**record, "training": training, "rows": [*record["rows"], *(_row_to_json(each) for each in scores)]}


def _row_to_json(score: TrainingScore) -> dict[str, Any]:
    row, prediction, setup = score.row, score.prediction, score.row.setup
    return {
        "result_id": row.result_id,
        "set": row.set,
        "network": row.name,
        "target": row.target,
        "framework": row.framework,
        "variant": row.variant or None,
        "protocol": "training",
        "batch_size": row.batch_size,
        "published_ms": row.seconds * MS,
        "emulated_ms": prediction.step_s * MS,
        "published_throughput": row.throughput,
        "emulated_throughput": prediction.throughput,
        "error": score.error,
        "published_latency_ms": None,
        "emulated_latency_ms": None,
        "latency_error": None,
        "second_reading": None,
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
