"""Benchmark the emulator: how fast it predicts, and how far its predictions are from measured times.

`python -m benchmarks emulator` measures the speed. `python -m benchmarks.emulator scores` prints the
errors on every row of the record that can be built, next to simpler models; other actions print
single rows, write the generated parts of the pages, and freeze calibration and predictions.
"""

from benchmarks.emulator.speed import run

__all__ = ["run"]
