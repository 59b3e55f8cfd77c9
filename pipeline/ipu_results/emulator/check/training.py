"""Select the published training rows that training predictions are compared with, by `data/training_rows.toml`.

The setup of each row is from its public configuration in the warehouse. No row is in any fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import duckdb

from ipu_results.emulator.cache import open_plan_cache
from ipu_results.emulator.check.baselines import GRID, ROOFLINE, compute_peak, estimate_grid, fit_bsp
from ipu_results.emulator.check.published import PublishedRow
from ipu_results.emulator.check.scoring import ErrorSummary, summarise_errors
from ipu_results.emulator.data import read_toml
from ipu_results.emulator.network import Network, load_network
from ipu_results.emulator.operators import Program
from ipu_results.emulator.pipeline import Head, Recompute, Stage, cut_at_layers, cut_at_operators, cut_evenly
from ipu_results.emulator.prediction import MS
from ipu_results.emulator.schedule import Planner
from ipu_results.emulator.split import DIMENSIONS, ConvolutionShape, SplitPlan
from ipu_results.emulator.target import Target
from ipu_results.emulator.training import TrainingPrediction, TrainingSetup, load_training_target, predict_training
from ipu_results.errors import WarehouseError
from ipu_results.ground.physics import TRAINING_PASSES
from ipu_results.ground.sql import run_query
from ipu_results.networks import SEQUENCE, TEXTS, build

ROWS_FILE = "training_rows.toml"
MAX_CHIPS = 64  # of one pod; more are in a set of their own
LARGE = "train-large"
SETS = ("train", "train-host-fed", "train-weak", LARGE)
BOW = "Bow"
BY_VARIANT: Mapping[str, str] = {"GPT2-Small": "gpt2", "GPT2-Medium": "gpt2-medium", "GPT2-Large": "gpt2-large"}
RECOMPUTE: Mapping[str | None, Recompute | None] = {
    None: None,
    "layer": "layer",
    "stage": "stage",
    "checkpoint": "stage",  # `cut_after` begins a stage at each
}

LISTS = ("frameworks", "variants", "platforms", "cut_after")
SQL = """
    SELECT r.result_id, r.document_id, r.table_name, r.row_number, r.model, r.variant, r.sequence_length, r.platform,
        r.framework, r.batch_size, r.throughput, c.micro_batch_size, c.replicas, c.gradient_accumulation, c.instances,
        c.layers_per_ipu, c.recompute, c.available_memory_proportion, c.optimizer_state_offchip
    FROM results r JOIN configurations c USING (result_id)
    WHERE r.task = 'training' AND r.origin = 'published' AND r.throughput IS NOT NULL
    ORDER BY r.table_name, r.row_number
"""


@dataclass(frozen=True, slots=True)
class TrainingSelector:
    """Rows that are predicted alike. None in `variants` or `platforms` matches any; `rows` is how many there are."""

    rows: int
    model: str
    frameworks: tuple[str, ...]
    network: str
    source: str
    set: str = SETS[0]
    variants: tuple[str, ...] | None = None
    platforms: tuple[str, ...] | None = None
    head: Head = "last"
    items: float = 1.0
    input_bits: int = 16
    io_tiles: int = 0
    cut_after: tuple[str, ...] = ()
    one_chip: bool = False

    def matches(self, record: Mapping[str, Any]) -> bool:
        limits = ((self.variants, "variant"), (self.platforms, "platform"), (self.frameworks, "framework"))
        return record["model"] == self.model and all(
            names is None or record[column] in names for names, column in limits
        )


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A published training row: `throughput` in items per second, and the setup behind it."""

    result_id: str
    set: str
    name: str
    network: Network
    target: str
    framework: str
    variant: str
    batch_size: int
    throughput: float
    setup: TrainingSetup
    layers: tuple[int, ...]
    selector: TrainingSelector

    @property
    def seconds(self) -> float:
        """Return the time that the figures give the configured step."""
        setup = self.setup
        return setup.micro_batch * setup.replicas * setup.accumulation * setup.items / self.throughput

    def cut(self, program: Program) -> tuple[Stage, ...]:
        """Cut the program as the configuration does."""
        if self.layers:
            return cut_at_layers(program, self.layers, self.selector.head)
        if self.selector.cut_after:
            return cut_at_operators(program, self.selector.cut_after, one_chip=self.selector.one_chip)
        return cut_evenly(program, 1)


@cache
def load_training_selectors() -> tuple[TrainingSelector, ...]:
    return tuple(_parse_selector(entry) for entry in read_toml(ROWS_FILE)["rows"])


def _parse_selector(entry: Mapping[str, Any]) -> TrainingSelector:
    values: dict[str, Any] = {key: tuple(value) if key in LISTS else value for key, value in entry.items()}
    return TrainingSelector(**values)


def load_training_rows(connection: duckdb.DuckDBPyConnection) -> list[TrainingRow]:
    """Read all rows. Raises WarehouseError where a selector matches more or fewer rows than it states."""
    document = read_toml(ROWS_FILE)["document"]["id"]
    records = [each for each in run_query(connection, SQL).to_pylist() if each["document_id"] == document]
    return [row for selector in load_training_selectors() for row in _select(selector, records)]


def _select(selector: TrainingSelector, records: Sequence[Mapping[str, Any]]) -> list[TrainingRow]:
    matches = [record for record in records if selector.matches(record)]
    if len(matches) != selector.rows:
        message = f"the warehouse holds {len(matches)} of the {selector.rows} training rows to validate against"
        raise WarehouseError(message, place=f"{selector.model}, {', '.join(selector.variants or selector.frameworks)}")
    return [_parse_row(selector, record) for record in matches]


def _parse_row(selector: TrainingSelector, record: Mapping[str, Any]) -> TrainingRow:
    missing = [key for key in ("micro_batch_size", "replicas", "gradient_accumulation") if not record[key]]
    if missing:
        raise WarehouseError(f"row {record['result_id']} has no {missing[0]} in its configuration")
    layers = tuple(int(count) for count in (record["layers_per_ipu"] or "").split())
    proportions = tuple(float(share) for share in (record["available_memory_proportion"] or "").split())
    setup = TrainingSetup(
        record["micro_batch_size"],
        record["replicas"],
        record["gradient_accumulation"],
        RECOMPUTE[record["recompute"]],
        proportions,
        bool(record["optimizer_state_offchip"]),
        record["instances"],
        selector.items,
        selector.input_bits,
        selector.io_tiles,
    )
    name = BY_VARIANT.get((record["variant"] or "").split(" ")[0], selector.network)
    chips = len(layers) or (1 if selector.one_chip else len(selector.cut_after) + 1)
    return TrainingRow(
        record["result_id"],
        LARGE if chips * setup.replicas > MAX_CHIPS else selector.set,
        name,
        load_sized_network(name, record["sequence_length"] or SEQUENCE),
        "bow-2000" if record["platform"].startswith(BOW) else "m2000",
        record["framework"],
        record["variant"] or "",
        int(record["batch_size"]),
        record["throughput"],
        setup,
        layers,
        selector,
    )


@cache
def load_sized_network(name: str, sequence: int) -> Network:
    """Load a built-in network at a length of sequences, where it has one."""
    return load_network(build(name, sequence=sequence) if name in TEXTS else name)


MEDIAN_LIMIT, MAX_LIMIT = 0.12, 0.30  # the design's aim for one machine and pods of up to 64 chips, set `train`
AIMED = "train"


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
    macs = TRAINING_PASSES * row.network(setup.micro_batch).macs * setup.replicas * setup.accumulation
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
