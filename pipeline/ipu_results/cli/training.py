"""The options of `predict --training`, and what it prints."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ipu_results.emulator.pipeline import Head, Recompute
    from ipu_results.emulator.settings import Protocol
    from ipu_results.emulator.target import Target
    from ipu_results.emulator.training import TrainingPrediction

LARGEST_COUNT = 1_000_000
COUNT = click.IntRange(1, LARGEST_COUNT)


class NumberList(click.ParamType[tuple[float, ...]]):
    """Numbers with commas between them, such as 3,7,7,7."""

    name = "A,B,…"

    def __init__(self, kind: type[int] | type[float], maximum: float) -> None:
        self._kind, self._maximum = kind, maximum

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        try:
            numbers = tuple(self._kind(part) for part in str(value).split(","))
        except ValueError:
            numbers = ()
        if not numbers or not all(0 <= number <= self._maximum for number in numbers):
            self.fail(
                f"{value!r} is not a list of numbers from 0 to {self._maximum:g}, such as 1,2.",
                param,
                ctx,
            )
        return numbers


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What the command line says of training; None and empty where it says nothing."""

    training: bool = False
    micro_batch: int | None = None
    replicas: int | None = None
    accumulation: int | None = None
    stages: int | None = None
    layers_per_ipu: tuple[int, ...] | None = None
    head: Head | None = None
    cut_after: tuple[str, ...] = ()
    recompute: Recompute | None = None
    available_memory: tuple[float, ...] | None = None
    offchip: bool = False
    instances: int | None = None
    sequence: int | None = None

    def refuse_without_training(self) -> None:
        names = [
            each.name
            for each in fields(self)
            if each.name != "training" and getattr(self, each.name)
        ]
        if names and not self.training:
            raise click.UsageError(f"--{names[0].replace('_', '-')} needs --training.")


def training_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of training to a command, which receives them as one argument, `training`."""

    @functools.wraps(command)
    def run(*args: Any, **values: Any) -> None:
        options = {each.name: values.pop(each.name) for each in fields(TrainingOptions)}
        command(*args, training=TrainingOptions(**options), **values)

    for option in reversed(_OPTIONS):
        run = option(run)
    return run


_OPTIONS = (
    click.option(
        "--training",
        is_flag=True,
        help="Predict a training step; the options that follow describe it.",
    ),
    click.option(
        "--micro-batch", type=COUNT, help="Samples that a replica takes at once.  [default: 1]"
    ),
    click.option(
        "--replicas",
        type=COUNT,
        help="Copies of the network.  [default: as many as the machine has room for]",
    ),
    click.option(
        "--accumulation", type=COUNT, help="Micro-batches of a replica in a step.  [default: 1]"
    ),
    click.option(
        "--stages",
        type=COUNT,
        help="Chips of a replica, with about the same MACs each.  [default: 1]",
    ),
    click.option(
        "--layers-per-ipu",
        type=NumberList(int, 1000),
        help="Layers on each chip of a built-in transformer.",
    ),
    click.option(
        "--head",
        type=click.Choice(("first", "last")),
        help="Chip of what follows the last layer.  [default: last]",
    ),
    click.option(
        "--cut-after",
        multiple=True,
        metavar="NAME",
        help="Operator that ends a chip's part; repeat for more.",
    ),
    click.option(
        "--recompute",
        type=click.Choice(("layer", "stage")),
        help="Compute activations again from inputs of each.",
    ),
    click.option(
        "--available-memory",
        type=NumberList(float, 1),
        help="availableMemoryProportion of all chips, or one each.  [default: 0.6]",
    ),
    click.option(
        "--offchip", is_flag=True, help="Keep the optimizer's state in the machine's memory."
    ),
    click.option(
        "--instances",
        type=COUNT,
        help="Host processes that feed the replicas.  [default: the machine's]",
    ),
    click.option(
        "--sequence",
        type=COUNT,
        help="Tokens of a sequence of a built-in transformer.  [default: 128]",
    ),
)


def predict_step(
    options: TrainingOptions, network: str, machine: Target, path: Protocol
) -> tuple[TrainingPrediction, str]:
    """Predict a step. Return it and the name of the network."""
    from ipu_results.emulator.network import load_sized_network
    from ipu_results.emulator.split import open_plan_cache
    from ipu_results.emulator.training import TrainingSetup, predict_training
    from ipu_results.networks import SEQUENCE, TEXTS

    if options.sequence and network not in TEXTS:
        raise click.UsageError(
            f"--sequence is for {', '.join(TEXTS)}; other networks have sizes of their own."
        )
    loaded = load_sized_network(network, options.sequence or SEQUENCE)
    setup = TrainingSetup(
        options.micro_batch or 1,
        accumulation=options.accumulation or 1,
        recompute=options.recompute,
        proportions=options.available_memory or (),
        offchip=options.offchip,
        instances=options.instances,
        input_bits=path.input_bits,
        io_tiles=path.io_tiles if path.overlapped else 0,
        layers=options.layers_per_ipu or (),
        head=options.head or "last",
        cut_after=options.cut_after,
        stages=options.stages or 1,
    )
    chips = len(setup.layers) or options.stages or setup.chips
    setup = replace(setup, replicas=options.replicas or max(1, machine.chips // chips))
    with open_plan_cache() as planner:
        return predict_training(loaded, machine, setup, planner), loaded.name
