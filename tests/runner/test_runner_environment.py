"""Where a sweep ran, from fakes of /proc and /sys, and the command line without folders."""

from __future__ import annotations

import getpass
import json
import shlex
import socket
from pathlib import Path

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


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


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


@pytest.mark.parametrize(
    ("cgroup", "files", "quota"),
    [
        (
            "0::/a/b",
            {"a/b/cpu.max": "400000 100000", "a/cpu.max": "150000 100000", "cpu.max": "max 100000"},
            1.5,
        ),
        # a path that only the host has
        ("0::/../../kubepods/pod1", {"cpu.max": "250000 100000"}, 2.5),
        ("0::/", {"cpu.max": "max 100000"}, None),
        ("0::/", {"cpu.max": "-1 100000"}, None),
        ("", {}, None),
    ],
)
def test_smallest_quota_of_the_control_groups_counts(
    tmp_path: Path, cgroup: str, files: dict[str, str], quota: float | None
) -> None:
    put(tmp_path, {"proc/self/cgroup": cgroup})
    put(tmp_path / "sys" / "fs" / "cgroup", files)
    assert read_cpu_quota(tmp_path / "proc", tmp_path / "sys") == quota


@pytest.mark.parametrize(
    ("file", "text", "kind"),
    [
        (".dockerenv", "", "docker: marker file"),
        ("run/.containerenv", "", "podman: marker file"),
        # kept: text of record.json
        ("run/systemd/container", "systemd-nspawn\n", "systemd-nspawn: told by systemd"),
        ("proc/1/cgroup", "0::/system.slice/docker-4f00.scope\n", "docker: control group"),
        ("proc/1/cgroup", "4:cpu:/kubepods/burstable/pod9\n", "kubepods: control group"),
        ("proc/1/cgroup", "0::/init.scope\n", None),
    ],
)
def test_container_is_detected_with_its_evidence(
    tmp_path: Path, file: str, text: str, kind: str | None
) -> None:
    put(tmp_path, {file: text})
    assert detect_container(tmp_path / "proc", tmp_path) == kind


@pytest.mark.parametrize(
    ("flagged", "files", "evidence"),
    [
        (True, {}, "hypervisor flag"),
        (True, {"class/dmi/id/sys_vendor": "Google\n"}, "hypervisor flag: Google"),
        (False, {"hypervisor/type": "xen"}, "hypervisor type: xen"),
        (False, {"class/dmi/id/sys_vendor": "QEMU\n"}, "vendor: QEMU"),
        (False, {"class/dmi/id/sys_vendor": "Dell Inc.\n"}, None),
        (False, {}, None),
    ],
)
def test_virtual_machine_is_detected_with_its_evidence(
    tmp_path: Path, flagged: bool, files: dict[str, str], evidence: str | None
) -> None:
    assert detect_virtual_machine(flagged, put(tmp_path, files)) == evidence


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
        (["sweep", "--model", "/home/me/nets/x.onnx"], "ipu-results sweep --model x.onnx"),
        (["sweep", "--images=../my data/coco/"], "ipu-results sweep --images=coco"),
        (["--raw", "C:\\Users\\me\\raw"], "ipu-results --raw raw"),
        (["--set=options.cache=/home/me/cache"], "ipu-results --set=options.cache=cache"),
        (["--power-command", "ssh me@host /bin/meter"], "ipu-results --power-command 'ssh ...'"),
        (["--power-command=/home/me/meter"], "ipu-results --power-command=meter"),
        (["--power-command", "meter 'open"], "ipu-results --power-command ..."),
        (["--note", ""], "ipu-results --note ''"),
    ],
)
def test_command_line_names_no_folder(words: list[str], shown: str) -> None:
    assert format_command_line(["/home/me/.venv/bin/ipu-results", *words]) == shown


@given(st.lists(st.text()))
def test_command_line_can_be_read_by_a_shell(words: list[str]) -> None:
    read = shlex.split(format_command_line(["ipu-results", *words]))
    assert len(read) == 1 + len(words)
    assert not any(mark in word for word in read for mark in "/\\")
