"""Export networks that others built, predict them, and compare their work with what torch counts.

The exports need torch, torchvision and transformers, which are installed into an environment of
their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

from ipu_results.emulator.frontend import parse_shapes
from ipu_results.emulator.network import load_shaped_network
from ipu_results.emulator.prediction import predict
from ipu_results.emulator.target import load_target
from ipu_results.errors import ModelError

from benchmarks.report import Options, Report, ReportTable, ReportTarget, SkipBenchmarkError

FOLDER = Path(__file__).parent
ENVIRONMENT = FOLDER.parents[1] / ".venv-exports"
QUICK_NETWORKS = ("squeezenet1_1",)
BATCH = 2  # at which the exporter counts
TARGET = "m2000"
MAX_MACS_DIFFERENCE = 0.001  # relative


def run(options: Options) -> Report:
    """Export with `--torch PYTHON`, or with an environment that is made once.

    Raises SkipBenchmarkError without one.
    """
    python = options.torch or _make_environment(options.quick)
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python), str(FOLDER / "export_networks.py"), folder]
        records = _export([*command, *(QUICK_NETWORKS if options.quick else ())])
    exported = [record for record in records if record["error"] is None]
    read = [record for record in exported if record["refused"] is None]
    rows = [_describe(record) for record in records]
    columns = ("network", "exporter", "result", "ms", "GMAC", "÷ torch")
    counted = [abs(record["read_macs"] / record["macs"] - 1) for record in read]
    return Report(
        "emulator_networks",
        "graphs of torchvision and transformers, predicted on an IPU-M2000 at one item a chip;"
        " emulated, not measured",
        [
            ReportTable(
                "Multiply-accumulates are those of the emulator, and their ratio to torch's own"
                " count.",
                columns,
                rows,
            )
        ],
        [
            ReportTarget("exported graphs that are not read", len(exported) - len(read), 0),
            ReportTarget(
                "largest difference from torch's count",
                max(counted, default=0.0),
                MAX_MACS_DIFFERENCE,
            ),
        ],
        [
            f"{len(read)} of {len(exported)} exported graphs are read,"
            f" {len(records) - len(exported)} exports failed"
        ],
    )


def _make_environment(quick: bool) -> Path:
    python = ENVIRONMENT / "bin" / "python"
    done = ENVIRONMENT / "complete"
    if done.exists():
        return python
    if quick:
        raise SkipBenchmarkError(
            "name an interpreter with torch, torchvision, transformers and onnxscript: --torch"
            " PYTHON"
        )
    print(
        f"installing torch, torchvision and transformers into {ENVIRONMENT}, some GB …",
        file=sys.stderr,
        flush=True,
    )
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "-r",
        str(FOLDER / "export-requirements.txt"),
    ]
    if subprocess.run(install, check=False).returncode:
        raise SkipBenchmarkError(
            "torch, torchvision and transformers cannot be installed; name an interpreter with"
            " --torch"
        )
    done.touch()
    return python


def _export(command: list[str]) -> list[dict[str, Any]]:
    """Export, and read each file at once, then delete it: all together are 5 GB."""
    records = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        for line in process.stdout or ():
            record = json.loads(line)
            if record["error"] is None:
                record.update(_read(record))
            for path in Path(record["path"]).parent.glob(f"{Path(record['path']).name}*"):
                path.unlink()
            records.append(record)
            print(f"{record['name']}, {record['exporter']}", file=sys.stderr, flush=True)
    if process.returncode:
        raise SkipBenchmarkError(
            "the interpreter lacks torch, torchvision, transformers, onnx or onnxscript"
        )
    return records


def _read(record: dict[str, Any]) -> dict[str, Any]:
    target = load_target(TARGET)
    try:
        network = load_shaped_network(record["path"], parse_shapes(record["shapes"]))
        (prediction,) = predict(network, target, [target.chips])
        return {"refused": None, "ms": prediction.device_ms, "read_macs": network(BATCH).macs}
    except ModelError as error:
        return {"refused": f"{error.place}: {error.message}" if error.place else error.message}


def _describe(record: dict[str, Any]) -> list[str | float | None]:
    name = [record["name"], record["exporter"]]
    if record["error"] is not None:
        return [*name, f"not exported: {record['error'][:80]}", None, None, None]
    if record["refused"] is not None:
        return [*name, record["refused"], None, None, None]
    macs = record["read_macs"]
    return [*name, "read", record["ms"], macs / BATCH / 1e9, f"{macs / record['macs']:.5f}"]
