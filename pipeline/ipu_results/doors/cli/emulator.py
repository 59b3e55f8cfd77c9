"""The command that predicts what an IPU would take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results.doors.cli.common import (
    FILE,
    Command,
    batch_sizes_option,
    format_option,
    report_findings,
    show_progress,
)
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, DEFAULT_NETWORK, TARGETS
from ipu_results.errors import HostBoundError
from ipu_results.kit.text import escape_unprintable

if TYPE_CHECKING:
    from ipu_results.emulator.network import Network
    from ipu_results.emulator.prediction import EmulatedFigures
    from ipu_results.emulator.settings import Protocol
    from ipu_results.emulator.target import Target
    from ipu_results.emulator.training import TrainingPrediction


TARGET_SUFFIX = ".toml"
DESIGNS_PER_WORKER = 100  # with fewer, starting another process does not pay


class TargetName(click.ParamType[str]):
    """A machine by name, or the path of a TOML file."""

    name = "TARGET"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in TARGETS and not value.endswith(TARGET_SUFFIX):
            self.fail(
                f"{value!r} is not one of {', '.join(map(repr, TARGETS))} or a {TARGET_SUFFIX}"
                " file.",
                param,
                ctx,
            )
        return value


@click.command(cls=Command, extra="emulator")
@click.option(
    "--target",
    type=TargetName(),
    help="c2, m2000, bow-2000, c600, or a TOML file that extends one.  [required]",
)
@batch_sizes_option(
    "Batch sizes over all chips.  [default: 2,4,6,8,10,12 on c2, else 4,8,16,32,64]"
)
@click.option(
    "--model",
    default=DEFAULT_NETWORK,
    show_default=True,
    metavar="FILE",
    help="ONNX file or built-in network.",
)
@click.option(
    "--protocol", metavar="NAME", help="Host path.  [default: paper on c2, else tensorflow]"
)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a constant of the machine, the host path or training; repeat for more.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=SIZES",
    help=(
        "Sizes of an input with free dimensions, such as ids=N,128, or of one free dimension;"
        " repeat for more."
    ),
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="KEY=A,B,…",
    help=(
        "Predict with each value of a key of --set; repeat for all combinations. Needs --out"
        " FILE.csv."
    ),
)
@click.option(
    "--layers",
    is_flag=True,
    help="One record per operator of the first batch size, with its split.",
)
@click.option("--training", is_flag=True, help="Predict a training step, described by --set.")
@click.option("--strict", is_flag=True, help="Exit 1 if the network does not fit.")
@format_option("table", "csv", "json")
@click.option("--out", type=FILE, help="Write to FILE instead of stdout.")
def predict(
    target: str | None,
    batch_sizes: tuple[int, ...] | None,
    model: str,
    protocol: str | None,
    pairs: tuple[str, ...],
    shapes: tuple[str, ...],
    sweeps: tuple[str, ...],
    layers: bool,
    strict: bool,
    output: str,
    out: Path | None,
    training: bool,
) -> None:
    """Predict inference time, or a training step, on an IPU. Needs no IPU; nothing is executed.

    Every figure is emulated: calculated from the architecture with two numbers fitted on the C2
    rows of one paper. The band of a latency holds 80 % of measured ones, by the errors on other
    programs. Figures are also printed where the verdict is DOES-NOT-FIT; stderr then has the bytes
    of a tile that are needed. Power is for c2 alone, ± 10 % and not validated. On c2 a straight
    line does as well as this model.

    FILE may be the name of a built-in network. Protocols: paper, tensorflow, pytorch,
    lowest-latency, io-tiles. Refused as host-bound: poptorch-call.

    Keys of --set: input_bits, instances, replicas, io_tiles, prefetch, threads, and every constant
    of the machine, for example clock, tiles, sram or exchange.bytes.
    docs/reference/emulator-settings.md lists them and describes the TOML file.

    The first dimension of a model's inputs is the batch: --batch-sizes decides it, and --shape has
    1 or N there.
    docs/how-to/predict-your-own-network.md shows all of this.

    --training predicts one step: forward and backward passes of each micro-batch, pipeline, sum
    over replicas and update, on m2000 or bow-2000 and pods of them. A step of less than a second
    that one process drives is refused: its time is the host's. docs/explanation/emulator.md has the
    errors, which are larger.

    \b
    Keys of --set with --training:
      micro_batch       samples that a replica takes at once; 1
      accumulation      micro-batches of a replica in a step; 1
      replicas          copies of the network; as many as the machine has room for
      instances         host processes that feed the replicas; one drives, the machine's feed
      stages            chips of a replica, with about the same MACs each; 1
      layers_per_ipu    layers on each chip of a built-in transformer, such as 3,7,7,7
      head              chip of what follows the last layer: first or last; last
      cut_after         operators that end a chip's part, with commas between them
      recompute         compute activations again from the inputs of each layer or stage
      available_memory  availableMemoryProportion of all chips, or one each: 0.6,0.3; 0.6
      offchip           keep the optimizer's state in the machine's memory: on or off; off
      sequence          tokens of a sequence of a built-in transformer; 128

    \b
    Example:
      ipu-results predict --target c2
      ipu-results predict --target m2000 --batch-sizes 4,16,64 --model resnet50 --format json
      ipu-results predict --target bow-2000 --batch-sizes 4 --model network.onnx --layers
      ipu-results predict --target m2000 --set clock=1.85e9 --set io_tiles=64 --set instances=2
      ipu-results predict --target my-machine.toml --batch-sizes 8
      ipu-results predict --target m2000 --model bert.onnx --shape input_ids=N,128
      ipu-results predict --target m2000 --sweep tiles=1000,1472 --sweep clock=1.33e9,1.85e9 --out designs.csv
      ipu-results predict --target m2000 --training --model resnet50 --set micro_batch=8 --set accumulation=8 \\
        --set instances=4
      ipu-results predict --target bow-2000 --training --model bert-large-pretraining --set micro_batch=8 \\
        --set layers_per_ipu=3,7,7,7 --set head=first --set recompute=layer --set replicas=4 --set offchip=on
    """
    from ipu_results.emulator.frontend import parse_shapes
    from ipu_results.emulator.network import load_shaped_network
    from ipu_results.emulator.prediction import format_predictions, list_layers
    from ipu_results.emulator.prediction import predict as predict_batches
    from ipu_results.emulator.settings import apply_settings

    if target is None:
        raise click.UsageError(
            "Missing option '--target'. Choose c2, m2000, bow-2000 or c600, or name a TOML file."
        )
    if training:
        if batch_sizes or shapes or sweeps or layers:
            others = "--batch-sizes, --shape, --sweep or --layers"
            raise click.UsageError(f"--training predicts one step: not with {others}.")
        step, name = _predict_step(model, target, protocol, pairs)
        _write(format_predictions([step], name, output), out)
        _report_memory([step], strict)
        return
    machine, path = _load_machine(target, protocol)
    if pairs:
        machine, path = apply_settings(machine, path, _parse_host_pairs(pairs))
    network = load_shaped_network(model, parse_shapes(shapes))
    sizes = batch_sizes or DEFAULT_BATCH_SIZES[machine.base]
    if sweeps:
        if out is None or out.suffix.lower() != ".csv" or layers:
            raise click.UsageError("--sweep needs --out FILE.csv, and no --layers.")
        _run_sweep(network, machine, path, sizes, sweeps, out)
        return
    needed = sizes[:1] if layers else sizes
    predictions = predict_batches(network, machine, needed, path)
    operators = None
    if layers:
        program = network(predictions[0].micro_batch_size)
        operators = list_layers(predictions[0], network.name, program, machine, path)
    _write(format_predictions(predictions, network.name, output, operators), out)
    _report_memory(predictions, strict)


def _report_memory(predictions: Sequence[EmulatedFigures], strict: bool) -> None:
    """Name on stderr each batch that does not fit, with the bytes of a tile that it needs and has."""
    lines = [each.describe_memory() for each in predictions]
    report_findings(list(filter(None, lines)), strict)


def _load_machine(target: str, protocol: str | None) -> tuple[Target, Protocol]:
    from ipu_results.emulator.settings import load_target_file, select_protocol
    from ipu_results.emulator.target import load_target

    machine = load_target(target) if target in TARGETS else load_target_file(Path(target))
    return machine, select_protocol(protocol, machine)


def _parse_host_pairs(pairs: tuple[str, ...]) -> dict[str, str]:
    """Read what --set changes of a machine and its host path; refuse what is for training alone."""
    from ipu_results.emulator.settings import HOST_KEYS, parse_pairs, refuse
    from ipu_results.emulator.training import KEYS

    settings = parse_pairs(pairs)
    for key in settings:
        if key in KEYS and key not in HOST_KEYS:
            raise refuse(key, "describes a training step: add --training")
    return settings


def _predict_step(
    model: str, target: str, protocol: str | None, pairs: tuple[str, ...]
) -> tuple[TrainingPrediction, str]:
    """Predict a training step. Return it and the name of the network."""
    from ipu_results.emulator.network import load_sized_network
    from ipu_results.emulator.networks import SEQUENCE, TEXTS
    from ipu_results.emulator.settings import apply_settings, parse_pairs, refuse
    from ipu_results.emulator.training import (
        KEYS,
        build_setup,
        extend_target,
        is_host_bound,
        predict_training,
    )

    machine, path = _load_machine(target, protocol)
    machine = extend_target(machine)
    values = {}
    others = {}
    for key, text in parse_pairs(pairs).items():
        if key in KEYS:
            values[key] = KEYS[key].read(key, text)
        else:
            others[key] = text
    if others:
        machine, path = apply_settings(machine, path, others, KEYS)
    if "sequence" in values and model not in TEXTS:
        raise refuse("sequence", f"is for {', '.join(TEXTS)}; others have sizes of their own")
    network = load_sized_network(model, values.get("sequence", SEQUENCE))
    setup = build_setup(values, machine, path)
    step = predict_training(network, machine, setup)
    if is_host_bound(step, setup):
        message = (
            f"host-bound: not predicted, as one process drives steps of {1000 * step.step_s:.3g} ms;"
            " --set instances=N says that N processes do"
        )
        raise HostBoundError(message, document=network.name)
    return step, network.name


def _write(text: str, out: Path | None) -> None:
    from ipu_results.kit.files import write_atomically

    if out is None:
        click.echo(escape_unprintable(text, keep="\n"), nl=False)
    else:
        write_atomically(out, text.encode())


def _run_sweep(
    network: Network,
    machine: Target,
    path: Protocol,
    sizes: tuple[int, ...],
    sweeps: tuple[str, ...],
    out: Path,
) -> None:
    from ipu_results.emulator.sweep import Sweep, parse_sweeps, run_sweep
    from ipu_results.kit.parallel import choose_workers, open_processes

    sweep = Sweep(network, machine, path, sizes, parse_sweeps(sweeps))
    workers = choose_workers(len(sweep.designs), DESIGNS_PER_WORKER)
    with open_processes(workers) as executor, show_progress("designs") as progress:
        run_sweep(sweep, out, executor, progress)
