"""Merge the run folders of many machines. Data only: nothing of a run is executed."""

from __future__ import annotations

from ipu_results.fleet.collect import CollectedRun, collect

__all__ = ["CollectedRun", "collect"]
