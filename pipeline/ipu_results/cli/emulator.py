"""The command that predicts what an IPU would take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ipu_results.cli.common import Command, batch_sizes_option, plot_option
from ipu_results.emulator.target import TARGETS
from ipu_results.runner.plan import BATCH_SIZES

if TYPE_CHECKING:
    from ipu_results.emulator.prediction import Prediction


@click.command(cls=Command)
@click.option("--target", type=click.Choice(TARGETS), required=True, help="C2 card, IPU-M2000 or Bow-2000.")
@batch_sizes_option("Batches over all chips.  [default: 2,4,6,8,10,12 on c2, else 4,8,16,32,64]")
@click.option(
    "--model", default="resnext101-32x4d", show_default=True, metavar="FILE", help="ONNX file or built-in network."
)
@click.option("--protocol", metavar="NAME", help="Host path.  [default: paper on c2, else tensorflow]")
@click.option("--layers", is_flag=True, help="One record per operator of the first batch size, with its split.")
@plot_option("Draw the parts as .svg or .png.")
@click.option("--format", "output", type=click.Choice(("table", "csv", "json")), default="table", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to FILE instead of stdout.")
def predict(
    target: str,
    batch_sizes: tuple[int, ...] | None,
    model: str,
    protocol: str | None,
    layers: bool,
    plot: Path | None,
    output: str,
    out: Path | None,
) -> None:
    """Predict the time of a network on an IPU that one need not have. Runs nothing, measures nothing.

    Every figure is emulated: calculated from the architecture with two numbers fitted on the C2 rows of one paper. The
    band of a latency is from fits with one of those rows left out. Figures are also given for what DOES-NOT-FIT the
    memory. Power is for c2 alone, ± 10 % and not validated; on c2 a straight line does as well as this model.

    FILE may be the name of a built-in network. Protocols: paper, tensorflow, pytorch, lowest-latency, io-tiles. Plans
    that were found are kept in the user's cache folder, or in the folder that IPU_RESULTS_CACHE names.

    \b
    Extras:
      --plot: pip install 'ipu-results[plots]'

    \b
    Example:
      ipu-results predict --target c2
      ipu-results predict --target m2000 --batch-sizes 4,16,64 --model resnet50 --format json
      ipu-results predict --target bow-2000 --batch-sizes 4 --model network.onnx --layers
      ipu-results predict --target c2 --plot breakdown.svg
    """
    from ipu_results.emulator.cache import saved
    from ipu_results.emulator.network import network
    from ipu_results.emulator.prediction import predict as run
    from ipu_results.emulator.target import load_target

    sizes = batch_sizes or BATCH_SIZES[target]
    needed = sizes[:1] if layers and plot is None else sizes
    programs = network(model)
    with saved() as planner:
        found = run(programs, load_target(target), needed, protocol, planner=planner)
    if plot is not None:
        from ipu_results._util.files import write_atomically
        from ipu_results.emulator.plot import draw

        write_atomically(plot, draw(found, programs.name, plot.suffix.lower()))
    _write(_told(found, programs.name, layers, output), out)


def _told(found: list[Prediction], model: str, layers: bool, output: str) -> str:
    from ipu_results._util.text import format_records
    from ipu_results.emulator import records
    from ipu_results.emulator.calibration import frozen

    rows = (
        records.layer_records(found[0], model, frozen().fit.superstep)
        if layers
        else [records.record(one, model) for one in found]
    )
    columns = records.LAYERS if layers else records.FIELDS
    if output == "table":
        shown = records.SHOWN_LAYERS if layers else records.SHOWN
        return (
            f"{format_records(output, tuple(shown), records.rounded(rows, shown))}\n{records.remark(found[0], model)}\n"
        )
    return f"{format_records(output, columns, ([row[name] for name in columns] for row in rows))}\n"


def _write(told: str, out: Path | None) -> None:
    from ipu_results._util.files import write_atomically

    if out is None:
        click.echo(told, nl=False)
    else:
        write_atomically(out, told.encode())
