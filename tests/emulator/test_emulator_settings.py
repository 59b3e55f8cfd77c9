"""`predict --set KEY=VALUE` and `--target FILE.toml`: another machine, another host path, and what
is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from ipu_results.emulator.network import load_network
from ipu_results.emulator.prediction import predict as predict_batches
from ipu_results.emulator.settings import (
    apply_settings,
    load_target_file,
    parse_pairs,
    select_protocol,
)
from ipu_results.emulator.target import load_target
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError

from tests.conftest import run_cli

M2000 = load_target("m2000")


def apply(target: str = "m2000", **settings: Any) -> Any:
    machine = load_target(target)
    return apply_settings(machine, select_protocol(None, machine), settings)


def test_settings_change_the_machine_and_its_host_path() -> None:
    machine, path = apply_settings(
        M2000,
        select_protocol(None, M2000),
        parse_pairs(("clock=1.5e9", "tiles=1000", "io_tiles=0", "prefetch=off")),
    )
    assert (machine["clock"], machine.tiles, path.io_tiles, path.prefetch) == (
        1.5e9,
        1000,
        0,
        False,
    )
    assert machine.settings == "clock=1.5e9, tiles=1000, io_tiles=0, prefetch=off"
    assert (M2000.settings, machine == M2000) == ("", False)
    assert apply(instances=2, replicas=2, input_bits=16, threads=1)[1].replicas == 2


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("clok", "1", "clok: is not a setting of m2000; similar: clock"),
        ("clock", "0", "clock: must be a number from 1.33e+06 to 1.33e+12, not 0"),
        ("clock", "1e30", "clock: must be a number from 1.33e+06 to 1.33e+12, not 1e30"),
        ("clock", "nan", "clock: must be a number from 1.33e+06 to 1.33e+12, not nan"),
        ("clock", "fast", "clock: must be a number from 1.33e+06 to 1.33e+12, not fast"),
        ("tiles", "1.5", "tiles: must be a whole number from 1 to 10000, not 1.5"),
        ("tiles", "1e9", "tiles: must be a whole number from 1 to 10000, not 1e9"),
        ("exchange.bytes", "-4", "exchange.bytes: must be a number from 0.004 to 4000, not -4"),
        ("tiles", "1e3", "tiles: must be a whole number from 1 to 10000, not 1e3"),
        ("input_bits", "8.0", "input_bits: must be a whole number from 1 to 100000, not 8.0"),
        ("input_bits", [8], "input_bits: must be a whole number from 1 to 100000, not [8]"),
        ("clock", [1e9], "clock: must be a number from 1.33e+06 to 1.33e+12, not [1000000000.0]"),
        ("input_bits", "0", "input_bits: must be a whole number from 1 to 100000, not 0"),
        ("prefetch", "maybe", "prefetch: must be one of true, on, false, off, not maybe"),
        ("replicas", True, "replicas: must be a whole number"),
    ],
)
def test_wrong_settings_are_refused(key: str, value: Any, message: str) -> None:
    with pytest.raises(UnrecognisedModelError) as caught:
        apply(**{key: value})
    assert str(caught.value).startswith(message)


def test_settings_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(InconsistentModelError, match="5 replicas are more than the 4 chips"):
        apply(replicas=5)
    with pytest.raises(UnrecognisedModelError, match="prefetch: c2 has no memory to prefetch into"):
        apply("c2", prefetch=True)
    with pytest.raises(UnrecognisedModelError, match="clock is not KEY=VALUE"):
        parse_pairs(("clock",))
    with pytest.raises(UnrecognisedModelError, match=r"^clock is set twice$"):
        parse_pairs(("clock=1e9", " clock = 2e9"))


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "machine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_machine_of_a_file_extends_a_known_one(tmp_path: Path) -> None:
    text = 'name = "fast"\nchips = 2\nextends = "m2000"\n[constants]\nclock = 2e9\n'
    machine = load_target_file(
        write(tmp_path, f'{text}"host.link" = {{ value = 5e9, source = "mine" }}\n')
    )
    assert (machine.name, machine.chips, machine.base, machine.chip) == (
        "fast",
        2,
        "m2000",
        "GC200",
    )
    assert (machine["clock"], machine["host.link"], machine.tiles) == (2e9, 5e9, 1472)
    assert machine.constants["host.link"].source == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 1", "is not TOML"),
        pytest.param(f"a = {'[' * 5000}", "is not TOML: it is nested too deeply", id="nested"),
        ('extends = "tpu"', "`extends` must be one of c2, m2000, bow-2000"),
        ("", "`extends` must be one of"),
        ('extends = "c2"\nchips = 0', "`chips` must be a whole number from 1 to 1024, not 0"),
        ('extends = "c2"\nchips = "4"', "`chips` must be a whole number from 1 to 1024, not '4'"),
        ('extends = "c2"\nname = 3', "`name` and `chip` must be text"),
        ('extends = "c2"\nclock = 1', "clock is not a key of a machine"),
        ('extends = "c2"\nconstants = 1', "`constants` must be a table"),
        ('extends = "c2"\n[constants]\nclok = 1', "clok is not a constant of c2; similar: clock"),
        (
            'extends = "c2"\n[constants]\nclock = "x"',
            "clock must be a number from 1.6e+06 to 1.6e+12, not x",
        ),
        (
            'extends = "c2"\n[constants]\nclock = {source = "x"}',
            "clock must be a number from 1.6e+06 to 1.6e+12, not None",
        ),
        (
            'extends = "c2"\n[constants]\ntiles = 0',
            "tiles must be a whole number from 1 to 10000, not 0",
        ),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UnrecognisedModelError) as caught:
        load_target_file(path)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "machine.toml")
    with pytest.raises(UnrecognisedModelError, match="cannot be read: it is a named pipe"):
        load_target_file(path)


def predict(*args: object) -> Any:
    done = run_cli(
        "predict", "--model", "efficientnet-b0", "--format", "json", "--batch-sizes", "4", *args
    )
    assert (done.returncode, done.stderr) == (0, "")
    (record,) = json.loads(done.stdout)
    return record


def test_predictions_follow_the_settings_and_say_so(tmp_path: Path) -> None:
    """Twice the clock halves the time on the chip; a file that says the same predicts the same."""
    usual, fast = (
        predict("--target", "m2000"),
        predict("--target", "m2000", "--set", "clock=2.66e9"),
    )
    assert fast["device_ms"] == pytest.approx(usual["device_ms"] / 2, rel=1e-12)
    assert (usual["settings"], fast["settings"]) == (None, "clock=2.66e9")
    slow = predict("--target", "m2000", "--set", "superstep.cycles=1200")
    assert slow["superstep_share"] > usual["superstep_share"]
    assert slow["device_ms"] > usual["device_ms"]
    path = write(tmp_path, 'name = "fast"\nextends = "m2000"\n[constants]\nclock = 2.66e9\n')
    again = predict("--target", path)
    assert again["device_ms"] == fast["device_ms"]
    assert (again["target"], again["settings"]) == ("fast", "machine of machine.toml")
    alone = predict("--target", "m2000", "--set", "replicas=1", "--set", "instances=1")
    assert (alone["micro_batch_size"], alone["throughput"] < usual["throughput"]) == (4, True)
    last = run_cli(
        "predict",
        "--target",
        path,
        "--batch-sizes",
        "4",
        "--model",
        "efficientnet-b0",
        "--set",
        "threads=2",
    )
    assert last.stdout.splitlines()[-1].endswith("changed: machine of machine.toml, threads=2")


def test_unknown_constants_are_refused() -> None:
    with pytest.raises(UnrecognisedModelError, match=r"slic\.load: is not a constant of m2000"):
        load_target("m2000").with_constants({"slic.load": 18})
    assert load_target("m2000").with_constants({"slic.load_4x1": 18})["slic.load_4x1"] == 18


def test_inference_reads_the_superstep_of_the_machine() -> None:
    usual, slow = (
        predict_batches(load_network("resnet50"), target, [4])[0]
        for target in (
            load_target("m2000"),
            load_target("m2000").with_constants({"superstep.cycles": 1200}),
        )
    )
    assert slow.superstep_share > usual.superstep_share
    device = (slow.schedule.cycles + 1200 * slow.schedule.supersteps) / 1.33e9
    assert slow.device_ms == pytest.approx(1000 * device)
