"""Where a sweep ran, told from fakes of /proc and /sys, and the command line without folders."""

from __future__ import annotations

import getpass
import importlib.metadata
import json
import os
import shlex
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.runner import environment
from ipu_results.runner.environment import command_line, container, cpu_facts, cpu_quota, governor, virtual_machine

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


@pytest.fixture(autouse=True)
def _no_container_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KUBERNETES_SERVICE_HOST", "APPTAINER_NAME", "SINGULARITY_NAME"):
        monkeypatch.delenv(name, raising=False)


def put(root: Path, **files: str) -> Path:
    """Files below a root; `__` in a name stands for a folder."""
    for name, text in files.items():
        path = root.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


# The processor


def test_a_xeon_by_its_first_processor() -> None:
    assert cpu_facts(XEON) == {
        "model": "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz",
        "flags": [
            *("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni"),
            *("amx_tile", "amx_bf16", "amx_int8"),
        ],
        "hypervisor": True,
    }


def test_an_arm_names_its_implementer_and_part() -> None:
    assert cpu_facts(ARM) == {
        "model": "Arm implementer 0x41 part 0xd40",
        "flags": ["asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve"],
        "hypervisor": False,
    }


def test_a_system_that_does_not_tell() -> None:
    assert cpu_facts("") == {"model": None, "flags": None, "hypervisor": False}


@given(st.text())
def test_no_cpuinfo_raises(text: str) -> None:
    assert set(cpu_facts(text)) == {"model", "flags", "hypervisor"}


# Quota, governor


def test_the_smallest_quota_of_the_groups_above_counts(tmp_path: Path) -> None:
    proc = put(tmp_path / "proc", self__cgroup="0::/a/b\n")
    sys = put(tmp_path / "sys", fs__cgroup__a__b__placeholder="")
    put(sys / "fs" / "cgroup" / "a" / "b", **{"cpu.max": "400000 100000\n"})
    put(sys / "fs" / "cgroup" / "a", **{"cpu.max": "150000 100000\n"})
    put(sys / "fs" / "cgroup", **{"cpu.max": "max 100000\n"})
    assert cpu_quota(proc, sys) == 1.5


def test_a_path_that_only_the_host_has_leaves_the_containers_own_limit(tmp_path: Path) -> None:
    proc = put(tmp_path / "proc", self__cgroup="0::/../../kubepods/pod1\n")
    sys = put(tmp_path / "sys" / "fs" / "cgroup", **{"cpu.max": "250000 100000\n"})
    assert cpu_quota(proc, sys.parent.parent) == 2.5


@pytest.mark.parametrize("top", ["cpu", "cpu,cpuacct"])
def test_a_quota_of_version_1(tmp_path: Path, top: str) -> None:
    proc = put(tmp_path / "proc", self__cgroup="9:memory:/x\n4:cpu,cpuacct:/x\n1:cpuset:/\n")
    put(tmp_path / "sys/fs/cgroup" / top / "x", **{"cpu.cfs_quota_us": "50000\n", "cpu.cfs_period_us": "100000\n"})
    put(tmp_path / "sys/fs/cgroup" / top, **{"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"})
    assert cpu_quota(proc, tmp_path / "sys") == 0.5


@pytest.mark.parametrize("limit", ["max 100000", "100000 0", "100000", "", "-1 100000", "what ever"])
def test_no_limit_or_none_that_can_be_read(tmp_path: Path, limit: str) -> None:
    proc = put(tmp_path / "proc", self__cgroup="0::/\n")
    put(tmp_path / "sys/fs/cgroup", **{"cpu.max": limit})
    assert cpu_quota(proc, tmp_path / "sys") is None


def test_a_system_without_control_groups(tmp_path: Path) -> None:
    assert cpu_quota(tmp_path, tmp_path) is None


def test_governors_that_differ_are_all_named(tmp_path: Path) -> None:
    assert governor(tmp_path) is None
    for number, name in enumerate(["powersave", "performance", "powersave"]):
        put(tmp_path / f"devices/system/cpu/cpu{number}/cpufreq", scaling_governor=f"{name}\n")
    put(tmp_path / "devices/system/cpu/cpufreq", scaling_governor="ondemand\n")
    assert governor(tmp_path) == "performance, powersave"


# Container and virtual machine


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        (".dockerenv", "", "docker: marker file"),
        ("run/.containerenv", "", "podman: marker file"),
        ("run/systemd/container", "systemd-nspawn\n", "systemd-nspawn: told by systemd"),
        ("run/systemd/container", "\n", None),
        ("proc/1/cgroup", "0::/system.slice/docker-4f00.scope\n", "docker: control group"),
        ("proc/1/cgroup", "4:cpu:/kubepods/burstable/pod9\n", "kubepods: control group"),
        ("proc/1/cgroup", "0::/init.scope\n", None),
    ],
)
def test_a_container_and_how_it_was_told(tmp_path: Path, file: str, text: str, told: str | None) -> None:
    put(tmp_path / Path(file).parent, **{Path(file).name: text})
    assert container(tmp_path / "proc", tmp_path) == told


@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("KUBERNETES_SERVICE_HOST", "kubernetes: environment variable"),
        ("APPTAINER_NAME", "apptainer: environment variable"),
        ("SINGULARITY_NAME", "apptainer: environment variable"),
    ],
)
def test_a_container_by_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, told: str) -> None:
    monkeypatch.setenv(variable, "10.0.0.1")
    assert container(tmp_path, tmp_path) == told


@pytest.mark.parametrize(
    ("flagged", "vendor", "kind", "told"),
    [
        (True, None, None, "hypervisor flag"),
        (True, "Google", None, "hypervisor flag: Google"),
        (False, None, "xen", "hypervisor type: xen"),
        (False, "QEMU", None, "vendor: QEMU"),
        (False, "Dell Inc.", None, None),
        (False, None, None, None),
    ],
)
def test_a_virtual_machine_and_how_it_was_told(
    tmp_path: Path, flagged: bool, vendor: str | None, kind: str | None, told: str | None
) -> None:
    if vendor:
        put(tmp_path / "class/dmi/id", sys_vendor=f"{vendor}\n")
    if kind:
        put(tmp_path / "hypervisor", type=f"{kind}\n")
    assert virtual_machine(flagged, tmp_path) == told


# All of it


def test_the_environment_out_of_fakes(tmp_path: Path) -> None:
    proc = put(tmp_path / "proc", cpuinfo=XEON, self__cgroup="0::/\n")
    put(tmp_path / "sys/fs/cgroup", **{"cpu.max": "150000 100000\n"})
    put(tmp_path / "sys/devices/system/cpu/cpu0/cpufreq", scaling_governor="performance\n")
    found = environment.environment(proc, tmp_path / "sys", tmp_path)
    assert found["cpu"] == "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
    assert "amx_int8" in found["cpu_flags"]
    assert (found["cpu_quota"], found["governor"], found["container"]) == (1.5, "performance", None)
    assert found["virtual_machine"] == "hypervisor flag"


def test_this_machines_environment_is_json_and_names_no_host_user_or_path() -> None:
    found = environment.environment()
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text) == found
    words = {word.strip('",[]{}') for word in text.split()}
    assert not words & {socket.gethostname(), getpass.getuser(), os.fspath(Path.home()), os.getcwd()}
    assert f"{os.sep}home{os.sep}" not in text
    assert 1 <= found["usable_cores"] <= found["logical_cores"]
    assert found["memory_gb"] > 0
    assert len(found["load_average"]) == 3


def test_versions_of_what_is_installed() -> None:
    found = environment.versions(["numpy", "no-such-package-here"])
    assert found == {"numpy": importlib.metadata.version("numpy")}


def test_versions_of_what_brings_a_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"onnxruntime-gpu": "1.31.1", "nvidia-cudnn-cu13": "9.1"}

    def version(name: str) -> str:
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert environment.versions(["numpy"], ["CUDAExecutionProvider", "Unknown"]) == installed
    assert environment.versions([], ["CPUExecutionProvider"]) == {}


# The command line


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["sweep"], "ipu-results sweep"),
        (["sweep", "--model", "/home/me/nets/x.onnx"], "ipu-results sweep --model x.onnx"),
        (["sweep", "--images=../my data/coco/"], "ipu-results sweep --images=coco"),
        (["--images", "/home/my name/my pictures"], "ipu-results --images 'my pictures'"),
        (["--raw", "C:\\Users\\me\\raw"], "ipu-results --raw raw"),
        (["--option", "cache=~/cache"], "ipu-results --option cache=cache"),
        (["--option=cache=/home/me/cache"], "ipu-results --option=cache=cache"),
        (["--batch-sizes", "1,2,4", "--strict"], "ipu-results --batch-sizes 1,2,4 --strict"),
        (["--power-cmd", "ssh me@host /bin/meter"], "ipu-results --power-cmd 'ssh ...'"),
        (["--power-cmd=/home/me/meter"], "ipu-results --power-cmd=meter"),
        (["--power-cmd", "meter 'open"], "ipu-results --power-cmd ..."),
        (["--note", ""], "ipu-results --note ''"),
        ([], "ipu-results"),
    ],
)
def test_a_command_line_names_no_folder(words: list[str], shown: str) -> None:
    assert command_line(["/home/me/.venv/bin/ipu-results", *words]) == shown


@given(st.lists(st.text()))
def test_a_command_line_is_one_that_a_shell_can_read(words: list[str]) -> None:
    read = shlex.split(command_line(["ipu-results", *words]))
    assert len(read) == 1 + len(words)
    assert not any(mark in word for word in read for mark in "/\\")


@given(st.lists(st.text("abc/\\= -:,~.", min_size=1), max_size=3), st.sampled_from(["", "--model=", "a=b="]))
def test_a_folder_is_never_shown(names: list[str], head: str) -> None:
    path = "/".join(["/home/secret", *names, "x"])
    assert "secret" not in command_line(["ipu-results", "--model", head + path])
