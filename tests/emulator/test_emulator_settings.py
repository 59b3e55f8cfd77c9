"""`predict --set KEY=VALUE` and `--target FILE.toml`: another machine, another host path, and what
is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ipu_results.emulator.settings import (
    apply_settings,
    load_target_file,
    parse_pairs,
    select_protocol,
)
from ipu_results.emulator.target import load_target
from ipu_results.errors import InconsistentModelError, UnrecognisedModelError

from tests.conftest import run_cli
from tests.emulator.model_support import predict_json


def apply(target: str = "m2000", **settings: Any) -> Any:
    machine = load_target(target)
    return apply_settings(machine, select_protocol(None, machine), settings)


def test_settings_change_the_machine_and_its_host_path() -> None:
    pairs = parse_pairs(("clock=1.5e9", "tiles=1000", "io_tiles=0", "prefetch=off", "replicas=2"))
    machine, path = apply(**pairs)
    assert (machine["clock"], machine.tiles) == (1.5e9, 1000)
    assert (path.io_tiles, path.prefetch, path.replicas) == (0, False, 2)
    assert machine.settings == "clock=1.5e9, tiles=1000, io_tiles=0, prefetch=off, replicas=2"
    assert load_target("m2000").settings == ""


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("clok", "1", "clok: is not a setting of m2000; similar: clock"),
        ("clock", "1e30", "clock: must be a number from 1.33e+06 to 1.33e+12, not 1e30"),
        ("clock", "nan", "clock: must be a number from 1.33e+06 to 1.33e+12, not nan"),
        ("clock", [1e9], "clock: must be a number from 1.33e+06 to 1.33e+12, not [1000000000.0]"),
        ("exchange.bytes", "-4", "exchange.bytes: must be a number from 0.004 to 4000, not -4"),
        ("tiles", "1.5", "tiles: must be a whole number from 1 to 10000, not 1.5"),
        ("tiles", "20000", "tiles: must be a whole number from 1 to 10000, not 20000"),
        ("input_bits", [8], "input_bits: must be a whole number from 1 to 100000, not [8]"),
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
    link = '"host.link" = { value = 5e9, source = "mine" }\n'
    machine = load_target_file(write(tmp_path, text + link))
    assert (machine.name, machine.chips) == ("fast", 2)
    assert (machine.base, machine.chip) == ("m2000", "GC200")
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
        ('extends = "c2"\n[constants]\nclock = "x"', "clock must be a number from 1.6e+06 to"),
        ('extends = "c2"\n[constants]\nclock = {source = "x"}', "clock must be a number from"),
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


SMALL = ("--model", "efficientnet-b0", "--batch-sizes", "4")


def test_predictions_follow_the_settings_and_say_so(tmp_path: Path) -> None:
    """Twice the clock halves the time on the chip; a file that says the same predicts the same."""
    (usual,) = predict_json("--target", "m2000", *SMALL)
    (fast,) = predict_json("--target", "m2000", *SMALL, "--set", "clock=2.66e9")
    assert fast["device_ms"] == pytest.approx(usual["device_ms"] / 2, rel=1e-12)
    assert (usual["settings"], fast["settings"]) == (None, "clock=2.66e9")
    path = write(tmp_path, 'name = "fast"\nextends = "m2000"\n[constants]\nclock = 2.66e9\n')
    (again,) = predict_json("--target", path, *SMALL, "--set", "threads=2")
    assert again["device_ms"] == fast["device_ms"]
    assert (again["target"], again["settings"]) == ("fast", "machine of machine.toml, threads=2")
    one = ("--set", "replicas=1", "--set", "instances=1")
    (alone,) = predict_json("--target", "m2000", *SMALL, *one)
    assert alone["micro_batch_size"] == 4
    assert alone["throughput"] < usual["throughput"]
    table = run_cli("predict", "--target", path, *SMALL).stdout
    assert table.splitlines()[-1].endswith("changed: machine of machine.toml")


def test_unknown_constants_are_refused() -> None:
    with pytest.raises(UnrecognisedModelError, match=r"slic\.load: is not a constant of m2000"):
        load_target("m2000").with_constants({"slic.load": 18})
    assert load_target("m2000").with_constants({"slic.load_4x1": 18})["slic.load_4x1"] == 18
