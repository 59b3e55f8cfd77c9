"""The commands that predict what an IPU would take, and that compare the emulator with every
published row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results.cli.common import (
    Command,
    batch_sizes_option,
    plot_option,
    report_findings,
    show_progress,
    warehouse_option,
)
from ipu_results.cli.training import TrainingOptions, predict_step, training_options
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, TARGETS
from ipu_results.ground.text import escape_unprintable, format_json

if TYPE_CHECKING:
    from ipu_results.emulator.check.validation import TrainingScore, Validation
    from ipu_results.emulator.network import Network
    from ipu_results.emulator.prediction import EmulatedFigures, OperatorProfile, Prediction
    from ipu_results.emulator.settings import Protocol
    from ipu_results.emulator.target import Target


@click.command("validate-emulator", cls=Command, extra="emulator")
@warehouse_option
@click.option(
    "--format", "output", type=click.Choice(("table", "json")), default="table", show_default=True
)
def validate_emulator(warehouse: Path, output: str) -> None:
    """Recompute calibration, predictions and errors from the warehouse, against published rows and simpler models.

    Training rows are predicted too. They are in no fit, but their figures were known: sets that
    begin with `train`.

    Exits 1 if the calibration or a prediction differs from the committed one. Targets that are
    missed are reported and leave exit status 0. JSON has every row. docs/explanation/emulator.md
    has all tables and what each constant moves.

    \b
    Example:
      ipu-results validate-emulator
      ipu-results validate-emulator --format json
    """
    from ipu_results.emulator.check import load_published_rows, load_training_rows
    from ipu_results.emulator.check.validation import (
        add_training_json,
        score_training,
        to_json,
        validate,
    )
    from ipu_results.store.query import open_warehouse

    with open_warehouse(warehouse) as connection:
        rows, training_rows = load_published_rows(connection), load_training_rows(connection)
    validation = validate(rows)
    training = score_training(training_rows, [row for row in rows if row.set == "calibration"])
    if output == "json":
        click.echo(
            json.dumps(
                add_training_json(to_json(validation), training), indent=2, ensure_ascii=False
            )
        )
    else:
        click.echo(_format_table(validation, training))
    _refuse_changes(validation)


def _format_table(validation: Validation, training: Sequence[TrainingScore]) -> str:
    """Return the scores with their targets, the comparisons with simpler models, and what the
    figures are.
    """
    from ipu_results.emulator.check.validation import LIMITS
    from ipu_results.ground.text import format_table

    rows = []
    for name, limits in LIMITS.items():
        errors = validation.score(name)
        shares = (errors.mean, limits.mean, errors.max, limits.max)
        percent = ["" if share is None else f"{100 * share:.1f}" for share in shares]
        rows.append((name, errors.rows, *percent, "met" if all(limits.check(errors)) else "missed"))
    columns = ("set", "rows", "MAPE %", "target %", "max %", "max target %", "verdict")
    lines = [format_table(columns, rows), ""]
    for ratio in validation.compute_ratios():
        lines.append(
            f"{ratio.development:.1f} times nearer than the {ratio.against} on the development"
            f" sets, resnext and ten (target {ratio.target:g}): {'met' if ratio.met else 'missed'};"
            f" {ratio.blind:.1f} times on the set honest"
        )
    lines += ["", _format_training(training), ""]
    return "\n".join([*lines, f"emulated, not measured; calibration {validation.calibration.id}"])


def _format_training(training: Sequence[TrainingScore]) -> str:
    from ipu_results.emulator.check import validation as scoring
    from ipu_results.emulator.check.scoring import summarise_errors
    from ipu_results.ground.text import format_table

    rows = []
    for name, members in scoring.iterate_sets(training):
        summary = summarise_errors([each.error for each in members])
        simple = [
            summarise_errors([each.get_baseline_error(model) for each in members]).median
            for model in members[0].baselines
        ]
        verdict = (
            ("met" if all(scoring.check_aim(summary)) else "missed")
            if name == scoring.AIMED
            else ""
        )
        shares = (summary.median, summary.mean, summary.max, *simple)
        rows.append((name, summary.rows, *(f"{100 * share:.1f}" for share in shares), verdict))
    models = tuple(f"{name}, median %" for name in training[0].baselines)
    columns = (
        "training set",
        "rows",
        "median %",
        "MAPE %",
        "max %",
        *models,
        "median 12 %, max 30 %",
    )
    return format_table(columns, rows)


def _refuse_changes(validation: Validation) -> None:
    if validation.calibration_differs:
        click.echo("error: the warehouse gives another calibration than calibration.toml", err=True)
    for scored in validation.changed_predictions:
        click.echo(
            f"error: the prediction of {scored.row.result_id} differs from predictions.csv",
            err=True,
        )
    if validation.calibration_differs or validation.changed_predictions:
        raise click.exceptions.Exit(1)


TARGET_SUFFIX = ".toml"


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
    default="resnext101-32x4d",
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
    help="Change a constant of the machine or of the host path; repeat for more.",
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
        " FILE.csv or .parquet."
    ),
)
@click.option(
    "--layers",
    is_flag=True,
    help="One record per operator of the first batch size, with its split.",
)
@click.option(
    "--trace",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the first batch size as a trace for Perfetto, .json.",
)
@click.option(
    "--compare",
    nargs=2,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="A B",
    help="Compare two files that --format json saved. Predicts nothing.",
)
@plot_option("Draw the parts of the time as .svg or .png.")
@training_options
@click.option("--strict", is_flag=True, help="Exit 1 if the network does not fit.")
@click.option(
    "--format",
    "output",
    type=click.Choice(("table", "csv", "json")),
    default="table",
    show_default=True,
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to FILE instead of stdout.",
)
def predict(
    target: str | None,
    batch_sizes: tuple[int, ...] | None,
    model: str,
    protocol: str | None,
    pairs: tuple[str, ...],
    shapes: tuple[str, ...],
    sweeps: tuple[str, ...],
    layers: bool,
    trace: Path | None,
    compare: tuple[Path, Path] | None,
    plot: Path | None,
    strict: bool,
    output: str,
    out: Path | None,
    training: TrainingOptions,
) -> None:
    """Predict inference time, or a training step, on an IPU. Needs no IPU; nothing is executed.

    Every figure is emulated: calculated from the architecture with two numbers fitted on the C2
    rows of one paper. The band of a latency holds 80 % of measured ones, by the errors on other
    networks. Figures are also printed where the verdict is DOES-NOT-FIT; stderr then has the bytes
    of a tile that are needed. Power is for c2 alone, ± 10 % and not validated. On c2 a straight
    line does as well as this model.

    FILE may be the name of a built-in network. Protocols: paper, tensorflow, pytorch,
    lowest-latency, io-tiles, poptorch-call. Split plans are kept in the user's cache folder, or in
    the folder that IPU_RESULTS_CACHE names.

    Keys of --set: input_bits, instances, replicas, io_tiles, prefetch, threads, and every constant
    of the machine, for example clock, tiles, sram or exchange.bytes.
    docs/reference/emulator-settings.md lists them and describes the TOML file.

    The first dimension of a model's inputs is the batch: --batch-sizes decides it, and --shape has
    1 or N there. An interrupted sweep continues where it stopped when it is started again.
    docs/how-to/predict-your-own-network.md shows all of this.

    --training predicts one step: forward and backward passes of each micro-batch, pipeline, sum
    over replicas and update, on m2000 or bow-2000 and pods of them. Its errors are larger:
    docs/explanation/emulator.md has the scores.

    \b
    Extras:
      --plot: pip install 'ipu-results[plots]'

    \b
    Example:
      ipu-results predict --target c2
      ipu-results predict --target m2000 --batch-sizes 4,16,64 --model resnet50 --format json
      ipu-results predict --target bow-2000 --batch-sizes 4 --model network.onnx --layers
      ipu-results predict --target c2 --plot breakdown.svg
      ipu-results predict --target m2000 --set clock=1.85e9 --set io_tiles=64 --set instances=2
      ipu-results predict --target my-machine.toml --batch-sizes 8
      ipu-results predict --target m2000 --model bert.onnx --shape input_ids=N,128
      ipu-results predict --target m2000 --sweep tiles=1000,1472 --sweep clock=1.33e9,1.85e9 --out designs.csv
      ipu-results predict --target m2000 --batch-sizes 4 --model resnet50 --trace trace.json
      ipu-results predict --compare before.json after.json
      ipu-results predict --target m2000 --training --model resnet50 --micro-batch 16 --accumulation 8 --recompute layer
      ipu-results predict --target bow-2000 --training --model bert-large-pretraining --micro-batch 8 \
        --layers-per-ipu 3,7,7,7 --head first --recompute layer --replicas 4 --accumulation 1712 --offchip
    """
    from ipu_results.emulator import show
    from ipu_results.emulator.frontend import parse_shapes
    from ipu_results.emulator.network import load_shaped_network
    from ipu_results.emulator.prediction import format_predictions
    from ipu_results.emulator.prediction import predict as predict_batches
    from ipu_results.emulator.split import open_plan_cache
    from ipu_results.ground.files import write_atomically

    if compare is not None:
        _write(_compare(compare, output), out)
        return
    if target is None:
        raise click.UsageError(
            "Missing option '--target'. Choose c2, m2000, bow-2000 or c600, or name a TOML file."
        )
    training.refuse_without_training()
    machine, path = _load_machine(target, protocol, pairs, training.training)
    if training.training:
        if batch_sizes or shapes or sweeps or layers or trace or plot:
            others = "--batch-sizes, --shape, --sweep, --layers, --trace or --plot"
            raise click.UsageError(f"--training predicts one step: not with {others}.")
        step, name = predict_step(training, model, machine, path)
        _write(format_predictions([step], name, output), out)
        _report_memory([step], strict)
        return
    network = load_shaped_network(model, parse_shapes(shapes))
    sizes = _select_batch_sizes(batch_sizes, network.batch) or DEFAULT_BATCH_SIZES[machine.base]
    if sweeps:
        if out is None or out.suffix.lower() not in (".csv", ".parquet") or layers or trace or plot:
            raise click.UsageError(
                "--sweep needs --out FILE.csv or FILE.parquet, and no --layers, --trace or --plot."
            )
        _run_sweep(network, machine, path, sizes, sweeps, out)
        return
    needed = sizes[:1] if layers and plot is None else sizes
    with open_plan_cache() as planner:
        predictions = predict_batches(network, machine, needed, path, planner=planner)
    profiles = (
        _profile(predictions[0], network, machine, path) if layers or trace is not None else []
    )
    if plot is not None:
        write_atomically(plot, show.render_parts(predictions, network.name, plot.suffix.lower()))
    if trace is not None:
        write_atomically(
            trace, format_json(show.build_trace(predictions[0], profiles, network.name)).encode()
        )
    _write(format_predictions(predictions, network.name, output, profiles if layers else None), out)
    _report_memory(predictions, strict)


def _report_memory(predictions: Sequence[EmulatedFigures], strict: bool) -> None:
    """Name on stderr each batch that does not fit, with the bytes of a tile that it needs and has."""
    report_findings(
        [each.describe_memory() for each in predictions if each.describe_memory()], strict
    )


def _load_machine(
    target: str, protocol: str | None, pairs: tuple[str, ...], training: bool
) -> tuple[Target, Protocol]:
    from ipu_results.emulator.settings import (
        apply_settings,
        load_target_file,
        parse_pairs,
        select_protocol,
    )
    from ipu_results.emulator.target import load_target
    from ipu_results.emulator.training import extend_target

    machine = load_target(target) if target in TARGETS else load_target_file(Path(target))
    path = select_protocol(protocol, machine)
    machine = extend_target(machine) if training else machine
    return apply_settings(machine, path, parse_pairs(pairs)) if pairs else (machine, path)


def _write(text: str, out: Path | None) -> None:
    from ipu_results.ground.files import write_atomically

    if out is None:
        click.echo(escape_unprintable(text, keep="\n"), nl=False)
    else:
        write_atomically(out, text.encode())


def _select_batch_sizes(
    batch_sizes: tuple[int, ...] | None, shaped: int | None
) -> tuple[int, ...] | None:
    """Return the batch sizes of the command line, else the one that `--shape` names."""
    if shaped is None or batch_sizes == (shaped,):
        return batch_sizes
    if batch_sizes is not None:
        raise click.UsageError(
            f"--shape begins with {shaped}, but --batch-sizes decides the batch: write N there."
        )
    return (shaped,)


def _profile(
    prediction: Prediction, network: Network, machine: Target, path: Protocol
) -> list[OperatorProfile]:
    from ipu_results.emulator.prediction import profile_operators
    from ipu_results.emulator.target import load_calibration

    program = network(prediction.micro_batch_size)
    io_tiles = path.io_tiles if path.overlapped else 0
    return profile_operators(
        prediction, program, machine, load_calibration().fit.superstep, io_tiles
    )


def _run_sweep(
    network: Network,
    machine: Target,
    path: Protocol,
    sizes: tuple[int, ...],
    sweeps: tuple[str, ...],
    out: Path,
) -> None:
    from ipu_results.emulator.show import Sweep, parse_sweeps, run_sweep
    from ipu_results.emulator.split import open_plan_cache

    sweep = Sweep(network, machine, path, sizes, parse_sweeps(sweeps))
    total = len(sweep.designs)
    with open_plan_cache() as planner, show_progress("designs") as report:
        run_sweep(sweep, out, planner, lambda done: report(done, total))


def _compare(paths: tuple[Path, Path], output: str) -> str:
    from ipu_results.emulator import show
    from ipu_results.emulator.prediction import round_records
    from ipu_results.ground.text import format_records

    before, after = map(show.load_predictions, paths)
    rows = show.compare_predictions(before, after)
    if output == "table" and not rows:
        return "no difference\n"
    digits = dict.fromkeys(show.COMPARED_FIELDS, 3)
    cells = (
        round_records(rows, digits) if output == "table" else [list(row.values()) for row in rows]
    )
    return f"{format_records(output, show.COMPARED_FIELDS, cells)}\n"
