"""Where a sweep ran, from fakes of /proc and /sys, and the command line without folders."""

from __future__ import annotations

import getpass
import json
import shlex
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.doors.cli.sweep import format_command_line
from ipu_results.runner.environment import (
    describe_environment,
    detect_container,
    detect_virtual_machine,
    parse_cpuinfo,
    read_cpu_quota,
)

from tests.cases import read_cases

MACHINES = read_cases(__file__, "machines.toml")
XEON = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
flags\t\t: sse4_2 avx f16c fma avx2 avx512f hypervisor avx512_vnni avx512_bf16 avx_vnni amx_bf16 amx_tile amx_int8
bugs\t\t: spectre_v1

processor\t: 1
model name\t: another
flags\t\t: fpu
"""
ARM = """\
processor\t: 0
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes asimdhp asimddp sve i8mm bf16
CPU implementer\t: 0x41
CPU part\t: 0xd40
"""


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_cpu_is_described_by_its_first_processor() -> None:
    model, flags, hypervisor = parse_cpuinfo(XEON)
    assert (model, hypervisor) == ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", True)
    expected = (
        "sse4_2 avx avx2 fma f16c avx512f avx512_vnni avx512_bf16 avx_vnni amx_tile amx_bf16"
        " amx_int8"
    )
    assert flags == expected.split()
    model, flags, hypervisor = parse_cpuinfo(ARM)
    assert (model, hypervisor) == ("Arm implementer 0x41 part 0xd40", False)
    assert flags == ["asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve"]
    assert parse_cpuinfo("") == (None, None, False)


@pytest.mark.parametrize("case", MACHINES["quota"], ids=lambda case: str(case["files"]))
def test_smallest_quota_of_the_control_groups_counts(tmp_path: Path, case: dict[str, Any]) -> None:
    put(tmp_path, {"proc/self/cgroup": case["cgroup"]})
    put(tmp_path / "sys" / "fs" / "cgroup", case["files"])
    assert read_cpu_quota(tmp_path / "proc", tmp_path / "sys") == case.get("cores")


@pytest.mark.parametrize("case", MACHINES["container"], ids=lambda case: case["file"])
def test_container_is_detected_with_its_evidence(tmp_path: Path, case: dict[str, Any]) -> None:
    put(tmp_path, {case["file"]: case["text"]})
    assert detect_container(tmp_path / "proc", tmp_path) == case.get("kind")


@pytest.mark.parametrize("case", MACHINES["virtual"], ids=lambda case: str(case["files"]))
def test_virtual_machine_is_detected_with_its_evidence(
    tmp_path: Path, case: dict[str, Any]
) -> None:
    put(tmp_path, case["files"])
    assert detect_virtual_machine(case["flagged"], tmp_path) == case.get("evidence")


def test_environment_of_this_machine_is_json_and_names_no_host_user_or_path() -> None:
    environment = describe_environment()
    text = json.dumps(environment, allow_nan=False)
    assert json.loads(text) == environment
    words = {word.strip('",[]{}') for word in text.split()}
    private = {socket.gethostname(), getpass.getuser(), str(Path.home()), str(Path.cwd())}
    assert not words & private
    assert "/home/" not in text
    assert 1 <= environment["usable_cores"] <= environment["logical_cores"]
    assert environment["memory_gb"] > 0
    assert len(environment["load_average"]) == 3


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--model", "/home/me/nets/x.onnx"], "--model x.onnx"),
        (["--images=../my data/coco/"], "--images=coco"),
        (["--raw", "C:\\Users\\me\\raw"], "--raw raw"),
        (["--set=options.cache=/home/me/cache"], "--set=options.cache=cache"),
        (["--power-command", "ssh me@host /bin/meter"], "--power-command 'ssh ...'"),
        (["--power-command=/home/me/meter"], "--power-command=meter"),
        (["--power-command", "meter 'open"], "--power-command ..."),
        (["--note", ""], "--note ''"),
    ],
)
def test_command_line_names_no_folder(words: list[str], shown: str) -> None:
    line = format_command_line(["/home/me/.venv/bin/ipu-results", *words])
    assert line == f"ipu-results {shown}"


@given(st.lists(st.text()))
def test_command_line_can_be_read_by_a_shell(words: list[str]) -> None:
    read = shlex.split(format_command_line(["ipu-results", *words]))
    assert len(read) == 1 + len(words)
    assert not any(mark in word for word in read for mark in "/\\")
