"""Benchmark the emulator: how fast it predicts, and how far its predictions are from the published
figures.

`python -m benchmarks emulator` measures the speed and adds the scores. `python -m
benchmarks.emulator` prints all tables of the accuracy, writes the generated parts of
docs/explanation/emulator.md, and freezes calibration and predictions.
"""

from benchmarks.emulator.speed import run

__all__ = ["run"]
