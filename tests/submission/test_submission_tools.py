"""Logs of trtexec and benchmark_app, and reports of the Trainer, in the form that public logs of these tools have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.submission.tool_files import BENCHMARK_APP, TRAINER, TRTEXEC, read, select


@pytest.mark.parametrize(("batch", "rates"), [("1", ["258.892"]), ("16", [])])
def test_trtexec_queries_are_items_at_batch_1_only(batch: str, rates: list[str], tmp_path: Path) -> None:
    result = read(tmp_path, TRTEXEC.format(batch=batch))
    assert result.adapter == "trtexec"
    assert [row["value"] for row in result.figures if row["metric"] == "throughput"] == rates
    assert any(f"{batch} times that" in remark for remark in result.remarks) == (batch != "1")
    assert ("latency", "4.0024", batch, "NVIDIA A100-SXM4-40GB") in select(
        result, "metric", "value", "batch_size", "chip"
    )


def test_benchmark_app_latencies_say_how_many_requests_are_in_flight(tmp_path: Path) -> None:
    result = read(tmp_path, BENCHMARK_APP)
    assert (result.adapter, result.environment["device"]) == ("benchmark_app", "CPU")
    assert select(result, "metric", "value", "unit", "batch_size") == [
        ("latency median", "17.50", "ms", "8"),
        ("latency among several", "17.72", "ms", "8"),
        ("latency max", "31850.26", "us", "8"),
        ("throughput", "2655.95", "fps", "8"),
    ]


def test_trainer_rates_keep_their_task(tmp_path: Path) -> None:
    result = read(tmp_path, TRAINER)
    assert select(result, "metric", "value", "task") == [
        ("throughput", "41.20", "training"),
        ("throughput", "97.1", "inference"),
    ]
