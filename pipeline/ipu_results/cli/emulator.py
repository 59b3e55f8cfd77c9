"""The command that predicts what an IPU would take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results._util.text import escape_unprintable
from ipu_results.cli.common import Command, batch_sizes_option, plot_option
from ipu_results.emulator.target import DEFAULT_BATCH_SIZES, TARGETS

TARGET_SUFFIX = ".toml"

if TYPE_CHECKING:
    from ipu_results.emulator.prediction import Prediction


class TargetName(click.ParamType[str]):
    """A machine by name, or the path of a TOML file."""

    name = "TARGET"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in TARGETS and not value.endswith(TARGET_SUFFIX):
            self.fail(f"{value!r} is not one of {', '.join(map(repr, TARGETS))} or a {TARGET_SUFFIX} file.", param, ctx)
        return value


@click.command(cls=Command)
@click.option(
    "--target", type=TargetName(), required=True, help="c2, m2000, bow-2000, or a TOML file that extends one of them."
)
@batch_sizes_option("Batch sizes over all chips.  [default: 2,4,6,8,10,12 on c2, else 4,8,16,32,64]")
@click.option(
    "--model", default="resnext101-32x4d", show_default=True, metavar="FILE", help="ONNX file or built-in network."
)
@click.option("--protocol", metavar="NAME", help="Host path.  [default: paper on c2, else tensorflow]")
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="KEY=VALUE",
    help="Change a constant of the machine or of the host path; repeat for more.",
)
@click.option("--layers", is_flag=True, help="One record per operator of the first batch size, with its split.")
@plot_option("Draw the parts of the time as .svg or .png.")
@click.option("--format", "output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to FILE instead of stdout.")
def predict(
    target: str,
    batch_sizes: tuple[int, ...] | None,
    model: str,
    protocol: str | None,
    pairs: tuple[str, ...],
    layers: bool,
    plot: Path | None,
    output: str,
    out: Path | None,
) -> None:
    """Predict inference time on an IPU. Needs no IPU; nothing is executed.

    Every figure is emulated: calculated from the architecture with two numbers fitted on the C2 rows of one paper. The
    band of a latency is from fits with one of those rows excluded. Figures are also printed where the verdict is
    DOES-NOT-FIT. Power is for c2 alone, ± 10 % and not validated. On c2 a straight line does as well as this model.

    FILE may be the name of a built-in network. Protocols: paper, tensorflow, pytorch, lowest-latency, io-tiles. Split
    plans are kept in the user's cache folder, or in the folder that IPU_RESULTS_CACHE names.

    Keys of --set: input_bits, instances, replicas, io_tiles, prefetch, threads, and every constant of the machine, such
    as clock, tiles, sram or exchange.bytes. docs/reference/emulator-settings.md lists them, and the form of a TOML file.

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
    """
    from ipu_results._util.files import write_atomically
    from ipu_results.emulator.cache import open_plan_cache
    from ipu_results.emulator.network import load_network
    from ipu_results.emulator.prediction import predict as predict_batches
    from ipu_results.emulator.protocol import select_protocol
    from ipu_results.emulator.settings import apply_settings, load_target_file, parse_pairs
    from ipu_results.emulator.target import load_target

    machine = load_target(target) if target in TARGETS else load_target_file(Path(target))
    path = select_protocol(protocol, machine)
    if pairs:
        machine, path = apply_settings(machine, path, parse_pairs(pairs))
    sizes = batch_sizes or DEFAULT_BATCH_SIZES[machine.base]
    needed = sizes[:1] if layers and plot is None else sizes
    network = load_network(model)
    with open_plan_cache() as planner:
        predictions = predict_batches(network, machine, needed, path, planner=planner)
    if plot is not None:
        from ipu_results.emulator.plot import render_parts

        write_atomically(plot, render_parts(predictions, network.name, plot.suffix.lower()))
    text = _format(predictions, network.name, layers, output)
    if out is None:
        click.echo(escape_unprintable(text, keep="\n"), nl=False)
    else:
        write_atomically(out, text.encode())


def _format(predictions: list[Prediction], model: str, layers: bool, output: str) -> str:
    from ipu_results._util.text import format_records
    from ipu_results.emulator import records
    from ipu_results.emulator.calibration import load_calibration

    if layers:
        rows = records.to_layer_records(predictions[0], model, load_calibration().fit.superstep)
    else:
        rows = [records.to_record(prediction, model) for prediction in predictions]
    if output == "table":
        digits = records.LAYER_TABLE_DIGITS if layers else records.TABLE_DIGITS
        table = format_records(output, tuple(digits), records.round_records(rows, digits))
        return f"{table}\n{records.format_footer(predictions[0], model)}\n"
    columns: tuple[str, ...] = records.LAYER_FIELDS if layers else records.FIELDS
    return f"{format_records(output, columns, ([row[name] for name in columns] for row in rows))}\n"
