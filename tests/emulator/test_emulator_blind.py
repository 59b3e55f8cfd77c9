"""Predictions that were committed before their figures were read stay as they are."""

from __future__ import annotations

import tomllib

import pytest
from ipu_results.emulator.frontend import read_program

from benchmarks.emulator.blind import wormhole
from benchmarks.emulator.blind.predictions import (
    CONVOLUTIONS,
    FOLDER,
    SHAPES,
    YOLOV4,
    hash_file,
)
from benchmarks.emulator.blind.scoring import format_scores, read_figures, score_convolutions
from benchmarks.emulator.blind.yolov4 import build_yolov4
from benchmarks.emulator.page import read_parts
from tests.emulator.model_support import count_parameters

FROZEN = {  # the figures that come later score these files as they stand
    CONVOLUTIONS: "00c8c728c9a5194e58e825b7e3f8d7dbe081b973a0ff8c6db77101b08e9a827a",
    YOLOV4: "39c0c39e7c6d965a0fbc08a1f2bae32458895d4daf654b6a0c2b906ed9fd8df0",
}


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        (CONVOLUTIONS, SHAPES[CONVOLUTIONS]),
        (YOLOV4, SHAPES[YOLOV4]),
        ("wormhole", "wormhole_shapes.csv"),
        ("decoding", "decoding_shapes.csv"),
        ("decoding-2", "decoding_shapes.csv"),
    ],
)
def test_committed_predictions_and_shapes_are_unchanged(name: str, shapes: str) -> None:
    sidecar = tomllib.loads((FOLDER / f"{name}.csv.toml").read_text(encoding="utf-8"))
    assert sidecar["sha256"] == hash_file(FOLDER / f"{name}.csv")
    assert sidecar["shapes_sha256"] == hash_file(FOLDER / shapes)


def test_machine_of_the_wormhole_is_unchanged() -> None:
    sidecar = tomllib.loads((FOLDER / "wormhole.csv.toml").read_text(encoding="utf-8"))
    assert sidecar["machine_sha256"] == hash_file(wormhole.MACHINE)


@pytest.mark.parametrize(("name", "digest"), FROZEN.items())
def test_frozen_predictions_say_how_they_were_made(name: str, digest: str) -> None:
    sidecar = tomllib.loads((FOLDER / f"{name}.csv.toml").read_text(encoding="utf-8"))
    assert sidecar["sha256"] == digest
    assert sidecar["origin"] == "emulated"
    assert len(sidecar["model_commit"]) == 40
    assert sidecar["assumptions"]


def test_yolov4_has_the_parameters_and_operations_of_its_paper() -> None:
    """70.8 million parameters, and 166 thousand million operations at 896 pixels counted as
    multiply-accumulates.
    """
    model = build_yolov4(896)
    assert round(count_parameters(model) / 1e6, 1) == 70.8
    assert read_program(model, 1).macs / 1e9 == pytest.approx(166, rel=0.02)


def test_committed_convolutions_are_scored_as_they_stand() -> None:
    """Conv8 of SSD at batch 1 prints 4.51 TFLOP/s; the committed prediction is 2.01841 and 2.63 µs."""
    rows = score_convolutions()
    assert len(rows) == len(read_figures()) == 391
    worst = max(rows, key=lambda row: abs(row.verdict.errors["time_ms"]))
    assert (worst.network, worst.layer, worst.batch, worst.tflops) == ("SSD v1.1", "Conv8", 1, 4.51)
    assert worst.verdict.errors["time_ms"] == pytest.approx(4.51 / 2.01841 - 1, rel=1e-4)
    assert worst.verdict.errors["roofline_ms"] == pytest.approx(
        4.26316e-05 / (2 * 2_654_208 / 4.51e9) - 1
    )
    assert read_parts()["blind_convolutions"] == format_scores(rows)


def test_wormhole_missed_its_aim_as_the_page_says() -> None:
    row = wormhole.tabulate_products().rows[0]
    assert row[:3] == ("all", "73", "18.5")
