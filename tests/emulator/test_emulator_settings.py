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
from ipu_results.errors import UnrecognisedModelError

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
    ("key", "value", "says"),
    [
        ("clock", [1e9], "must be a number from 1.33e"),
        ("input_bits", [8], "must be a whole"),
        ("replicas", True, "must be a whole"),
    ],
)
def test_setting_of_another_type_is_refused(key: str, value: Any, says: str) -> None:
    """`refused.toml` has what is refused as text."""
    with pytest.raises(UnrecognisedModelError, match=f"^{key}: {says}"):
        apply(**{key: value})


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


def test_file_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, f"a = {'[' * 5000}")
    with pytest.raises(UnrecognisedModelError, match=f"^{path}: is not TOML: it is nested too"):
        load_target_file(path)


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
