"""Switch each correction of the training model off alone, and print what that does to the sets of
training rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from statistics import mean, median
from unittest.mock import patch

import duckdb
from ipu_results.emulator import check, pipeline, schedule, training
from ipu_results.emulator.check import TrainingRow
from ipu_results.emulator.check.validation import score_training
from ipu_results.emulator.network import Network, load_sized_network
from ipu_results.emulator.split import open_plan_cache
from ipu_results.store.query import open_warehouse

from benchmarks.emulator import scores
from benchmarks.emulator.scores import Score
from benchmarks.processes import ROOT

SETS = ("train", "train-large", "tamu one chip", "tamu pods", "caraml resnet50", "caraml gpt-117m")
HEADER = ("switched off", *(f"{name}: median (max) %" for name in SETS))


@contextmanager
def _set(**constants: float) -> Iterator[None]:
    """Give constants of training other values, by name with `_` for the point."""
    values = {name.replace("_", "."): value for name, value in constants.items()}
    known = training.load_training_constants()
    changed = tuple(
        (name, replace(each, value=values.get(name, each.value))) for name, each in known
    )
    with patch.object(training, "load_training_constants", lambda: changed):
        yield


@contextmanager
def _recompute_all_but_last() -> Iterator[None]:
    def is_computed_again(stage: pipeline.Stage, stages: tuple[pipeline.Stage, ...]) -> bool:
        return stage is not stages[-1]

    with patch.object(pipeline, "is_computed_again", is_computed_again):
        yield


@contextmanager
def _overlap_chips() -> Iterator[None]:
    with patch.object(training, "sum_slowest", lambda loads: max(load.seconds for load in loads)):
        yield


@contextmanager
def _merge_products() -> Iterator[None]:
    """Take one product for Q, K and V, but for pre-training by PopART, which has three."""
    load = check.load_training_rows

    def load_merged(connection: duckdb.DuckDBPyConnection) -> list[TrainingRow]:
        return [_merge(row) for row in load(connection)]

    def load_one_product(name: str, sequence: int) -> Network:
        return load_sized_network(name.removesuffix("-split"), sequence)

    with (
        patch.object(check, "load_training_rows", load_merged),
        patch.object(scores, "load_sized_network", load_one_product),
    ):
        yield


def _merge(row: TrainingRow) -> TrainingRow:
    if not row.name.endswith("-split") or (row.framework == "PopART" and "pretraining" in row.name):
        return row
    sequence = row.network(1).inputs[0].shape[-1]
    return replace(row, network=load_sized_network(row.name.removesuffix("-split"), sequence))


@contextmanager
def _copy_nothing() -> Iterator[None]:
    with patch.object(schedule, "estimate_copy", lambda *_: 0.0):
        schedule.schedule.cache_clear()
        yield
    schedule.schedule.cache_clear()


@contextmanager
def _nothing() -> Iterator[None]:
    yield


STEPS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "nothing": _nothing,
    "one chip recomputes all stages": _recompute_all_but_last,
    "batch-norm statistics over a span": lambda: _set(norm_span=0.0),
    "chips exchange together": _overlap_chips,
    "Q, K and V as three products": _merge_products,
    "copies between layouts": _copy_nothing,
    "step constant, PyTorch": lambda: _set(step_pytorch=0.0),
    "step constant, TensorFlow": lambda: _set(step_tensorflow=0.0),
    "group norm": lambda: _set(norm_group=0.0),
}


def tabulate_steps() -> list[tuple[str, ...]]:
    """Return a row for each correction that is off."""
    return [(name, *_summarise(change)) for name, change in STEPS.items()]


def _summarise(change: Callable[[], AbstractContextManager[None]]) -> Iterator[str]:
    members: dict[str, list[Score]] = {}
    with change(), open_warehouse(ROOT / "warehouse") as connection, open_plan_cache() as plans:
        steps = map(scores.score_step, score_training(check.load_training_rows(connection)))
        for each in (*steps, *scores.score_tamu(plans), *scores.score_caraml(plans)):
            members.setdefault(each.set, []).append(each)
    for name in SETS:
        errors = [100 * each.error for each in members[name]]
        sizes = [abs(error) for error in errors]
        yield f"{median(sizes):.1f} ({max(sizes):.0f}), {mean(errors):+.1f}"
