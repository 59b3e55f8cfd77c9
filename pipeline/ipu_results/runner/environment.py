"""Where a sweep ran: facts of the machine that change its speed. No name of a host or a user, and no path."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

PROC = Path("/proc")
SYS = Path("/sys")
ARITHMETIC = (
    *("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni"),
    *("amx_tile", "amx_bf16", "amx_int8", "amx_fp16", "neon", "asimd", "asimdhp", "asimddp", "bf16", "i8mm", "sve"),
)
CONTAINERS = ("docker", "kubepods", "containerd", "libpod", "lxc", "garden")
HYPERVISORS = ("QEMU", "VMware", "innotek", "Xen", "Parallels", "Google", "DigitalOcean", "OpenStack")
PROVIDERS = {
    "CPUExecutionProvider": ("onnxruntime",),
    "CUDAExecutionProvider": ("onnxruntime-gpu", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"),
    "TensorrtExecutionProvider": ("onnxruntime-gpu", "tensorrt", "tensorrt-cu12", "tensorrt-cu13"),
    "MIGraphXExecutionProvider": ("onnxruntime-migraphx", "onnxruntime-rocm"),
    "OpenVINOExecutionProvider": ("onnxruntime-openvino", "openvino"),
}
# The value of this option is a command, which may name a user, a machine or a path anywhere.
COMMAND = "--power-cmd"
NAMED = re.compile(r"(--?[\w-]+=|[\w.-]+=)?(.*)", re.DOTALL)


def environment(proc: Path = PROC, sys: Path = SYS, root: Path = Path("/")) -> dict[str, Any]:
    """The facts, for JSON; None where the system does not tell. The folders replace the machine's own in tests."""
    cpu = cpu_facts(_text(proc / "cpuinfo") or "")
    return {
        "cpu": cpu["model"] or platform.processor() or None,
        "cpu_flags": cpu["flags"],
        "machine": platform.machine(),
        "logical_cores": psutil.cpu_count(logical=True),
        "physical_cores": psutil.cpu_count(logical=False),
        "usable_cores": usable_cores(),
        "cpu_quota": cpu_quota(proc, sys),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "governor": governor(sys),
        "system": platform.system(),
        "kernel": platform.release(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "container": container(proc, root),
        "virtual_machine": virtual_machine(cpu["hypervisor"], sys),
        "load_average": [round(load, 2) for load in psutil.getloadavg()],
    }


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0 \t\n")
    except OSError:
        return None


def cpu_facts(cpuinfo: str) -> dict[str, Any]:
    """Model, flags that matter for arithmetic (None if it lists none) and hypervisor flag, out of /proc/cpuinfo."""
    lines = (line.partition(":") for line in cpuinfo.splitlines())
    first: dict[str, str] = {}
    for key, _, value in lines:
        first.setdefault(key.strip(), value.strip())
    arm = " ".join(f"{key} {first[f'CPU {key}']}" for key in ("implementer", "part") if f"CPU {key}" in first)
    flags = (first.get("flags") or first.get("Features") or "").split()
    return {
        "model": first.get("model name") or (f"Arm {arm}" if arm else None),
        "flags": [flag for flag in ARITHMETIC if flag in flags] if flags else None,
        "hypervisor": "hypervisor" in flags,
    }


def usable_cores() -> int | None:
    """Logical cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def cpu_quota(proc: Path = PROC, sys: Path = SYS) -> float | None:
    """Cores' worth of CPU time that the control groups allow this process, None without a limit."""
    limits = []
    for line in (_text(proc / "self" / "cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            limits += [_quota_v2(folder) for top in ("", "unified") for folder in _upward(sys, top, path)]
        elif "cpu" in controllers.split(","):
            limits += [_quota_v1(folder) for top in ("cpu", controllers) for folder in _upward(sys, top, path)]
    return min((limit for limit in limits if limit is not None), default=None)


def _upward(sys: Path, top: str, path: str) -> list[Path]:
    """The group's folder and those above it. Inside a container the path may be one that only the host has."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return [Path(sys, "fs", "cgroup", top, *parts[:depth]) for depth in range(len(parts), -1, -1)]


def _quota_v2(folder: Path) -> float | None:
    quota, _, period = (_text(folder / "cpu.max") or "").partition(" ")
    return _ratio(quota, period)


def _quota_v1(folder: Path) -> float | None:
    return _ratio(_text(folder / "cpu.cfs_quota_us") or "", _text(folder / "cpu.cfs_period_us") or "")


def _ratio(quota: str, period: str) -> float | None:
    """Quota over period; `max` and -1 are no limit."""
    if re.fullmatch(r"\d+", quota, re.ASCII) and re.fullmatch(r"0*[1-9]\d*", period, re.ASCII):
        return int(quota) / int(period)
    return None


def governor(sys: Path = SYS) -> str | None:
    """The CPU frequency governors in use, joined by a comma if there are several."""
    paths = (sys / "devices" / "system" / "cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    return ", ".join(sorted({text for text in map(_text, paths) if text})) or None


def container(proc: Path = PROC, root: Path = Path("/")) -> str | None:
    """The kind of container that this process is in, and how that was told."""
    if (root / ".dockerenv").exists():
        return "docker: marker file"
    if (root / "run" / ".containerenv").exists():
        return "podman: marker file"
    named = _text(root / "run" / "systemd" / "container")
    if named:
        return f"{named}: told by systemd"
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes: environment variable"
    if "APPTAINER_NAME" in os.environ or "SINGULARITY_NAME" in os.environ:
        return "apptainer: environment variable"
    groups = _text(proc / "1" / "cgroup") or ""
    return next((f"{kind}: control group" for kind in CONTAINERS if kind in groups), None)


def virtual_machine(flagged: bool, sys: Path = SYS) -> str | None:
    """How it was told that this is a virtual machine, and its vendor where that is known; None if nothing tells."""
    vendor = _text(sys / "class" / "dmi" / "id" / "sys_vendor")
    kind = _text(sys / "hypervisor" / "type")
    if flagged:
        return f"hypervisor flag: {vendor}" if vendor else "hypervisor flag"
    if kind:
        return f"hypervisor type: {kind}"
    return f"vendor: {vendor}" if vendor and vendor.startswith(HYPERVISORS) else None


def versions(names: Iterable[str], providers: Iterable[str] = ()) -> dict[str, str]:
    """Versions of those packages that are installed, and of those that bring onnxruntime's providers."""
    wanted = {*names, *(name for provider in providers for name in PROVIDERS.get(provider, ()))}
    found = {}
    for name in sorted(wanted):
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def command_line(argv: Sequence[str]) -> str:
    """The command for a shell, out of `sys.argv`: of a path its last component, of a power command its program."""
    shown = ["ipu-results"]
    for before, word in pairwise(argv):
        shown.append(_program(word) if before == COMMAND else _shown(word))
    return shlex.join(shown)


def _shown(word: str) -> str:
    """`--option=path`, `key=path` or a path with its folders left out."""
    if word.startswith(f"{COMMAND}="):
        return f"{COMMAND}={_program(word.partition('=')[2])}"
    found = NAMED.fullmatch(word)
    assert found is not None
    head, rest = found[1] or "", found[2]
    inner = _shown(rest) if head and "=" in rest else _last(rest)
    return head + inner


def _last(path: str) -> str:
    """The last component, whichever system wrote the path."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def _program(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    return " ".join([_last(words[0]), *(["..."] if len(words) > 1 else [])]) if words else "..."
