"""Mistakes that everybody makes, handed in: each is refused or doubted with the sentence that names
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipu_results.doors.submission.check import CheckedBundle

from tests.doors.submission.submission_support import (
    Check,
    figure,
    latency,
    make_files,
    put_folder,
    throughput,
)

H200 = {
    "platform": "One H200",
    "chip": "NVIDIA H200",
    "chip_count": "1",
    "sdk_version": "",
    "precision": "FP16",
    "framework": "PyTorch",
}
NEW = ["NVIDIA H200", "One H200"]

# Each row of a bundle has conditions of its own, so that it is a result of its own: name, figures,
# sentence.
Row = tuple[str, list[dict[str, str]], str]
M2000_ROWS: list[Row] = [
    (
        "seconds",
        [throughput("14321.3"), figure("latency of a batch", "0.00269", "ms")],
        "in seconds",
    ),
    ("seconds alone", [latency("0.00269")], "in seconds"),
    ("batches", [throughput("1012.93")], "batches per second"),
    ("one chip", [throughput("4051.7")], "one chip"),
    ("newer", [throughput("14219.3", sdk_version="999.9")], "sdk_version 999.9: the newest on"),
    ("called FP32", [throughput("16217.3", precision="32.32")], "called FP32"),
    ("no warm-up", [latency("15.03"), figure("latency max", "4312", "ms")], "warm-up"),
    ("a; suspect = drift", [throughput("14017.3")], "marked a row as suspect, drift"),
    (
        "variant",
        [figure("throughput", "917.3", "sequences/s", model="BERT-Large", variant="SL129")],
        "variant 'SL129': no row of BERT-Large has it; the nearest: SL128",
    ),
]


def check_rows(
    check: Check, folder: Path, rows: list[Mapping[str, str]], **changes: Any
) -> CheckedBundle:
    return check(put_folder(folder / "bundle", make_files(rows, description=changes)))


def list_texts(checked: CheckedBundle) -> list[str]:
    return [*map(str, checked.faults), *checked.flags]


def test_mistakes_are_named_at_the_hand_in(check: Check, tmp_path: Path) -> None:
    figures = []
    for name, rows, _ in M2000_ROWS:
        figures += [{**row, "conditions": f"case = {name}"} for row in rows]
    texts = list_texts(check_rows(check, tmp_path, figures))
    for name, _, sentence in M2000_ROWS:
        assert any(sentence in text for text in texts), name


def test_honest_runs_are_accepted(check: Check, tmp_path: Path) -> None:
    rows = [
        throughput("9417.3", **H200, conditions="runtime = TensorRT"),
        latency("1.733", **H200, conditions="runtime = TensorRT"),
        throughput("3117.9", **H200, conditions="mode = eager"),
        figure("power", "611", "W", **H200, conditions="mode = eager", power_scope="device"),
        throughput("13917.3", conditions="run = one"),
    ]
    checked = check_rows(check, tmp_path, rows, new_words=NEW)
    assert checked.accepted, checked
    assert "doubtful" not in "\n".join(checked.flags)
