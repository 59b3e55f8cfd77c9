"""Names of the machine's own processors."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path


def gpus() -> list[tuple[str, float]]:
    """Names and compute capabilities as CUDA numbers them, which it does in the order of nvidia-smi if told so."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    command = ["nvidia-smi", "--query-gpu=index,uuid,name,compute_cap", "--format=csv,noheader"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        rows = [[cell.strip() for cell in line.split(",")] for line in found.splitlines() if line.strip()]
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(row[0] for row in rows)).split(",")
        known = {key: (name, float(able)) for index, uuid, name, able in rows for key in (index, uuid)}
        return [known[one.strip()] for one in chosen if one.strip() in known]
    except (OSError, ValueError, subprocess.SubprocessError):
        return []


def processor() -> str:
    """The CPU as the system names it."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()
