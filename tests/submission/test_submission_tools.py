"""Logs of trtexec, reports of the Trainer and of `vllm bench` in their public form, and files that
tools wrote here.

`tests/data/tools` has what LoadGen 6.0.17 wrote of a system that sleeps, and what benchmark_app of
OpenVINO 2026.4.1 wrote of one convolution and optimum-benchmark 0.6.0 of a BERT of two layers, both
on a virtual machine. The detail log lacks the lines with LoadGen's own history and files.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from ipu_results.errors import SubmissionError
from ipu_results.submission.adapters import read_figures
from ipu_results.submission.prepare import SubmissionRequest, prepare_bundle

from tests.submission.tool_files import (
    BENCHMARK_APP,
    TRAINER,
    TRTEXEC,
    VLLM_LATENCY,
    VLLM_SERVE,
    VLLM_THROUGHPUT,
    assert_refused,
    read,
    select,
)

TOOLS = Path(__file__).parents[1] / "data" / "tools"
LATENCIES = ("latency min", "latency max", "latency median", "latency p90", "latency p99")


@pytest.mark.parametrize(("batch", "rates"), [("1", ["258.892"]), ("16", [])])
def test_trtexec_queries_are_items_at_batch_1_only(
    batch: str, rates: list[str], tmp_path: Path
) -> None:
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


def test_a_name_of_the_chip_in_a_log_is_stated_shorter_and_a_placeholder_is_not_a_name(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log.txt"
    log.write_text(TRTEXEC.format(batch=1), encoding="utf-8")
    request = SubmissionRequest(
        [log], "Ada Example", "CC-BY-4.0", "idle", defaults={"chip": "A100"}
    )
    assert b"NVIDIA A100-SXM4-40GB" in prepare_bundle(request).files["results.csv"]
    with pytest.raises(SubmissionError, match="says chip"):
        prepare_bundle(replace(request, defaults={"chip": "A100-80GB"}))
    with pytest.raises(SubmissionError, match="--who NAME is what a printed command leaves to you"):
        prepare_bundle(replace(request, name="NAME"))


def test_trainer_rates_keep_their_task(tmp_path: Path) -> None:
    result = read(tmp_path, TRAINER)
    assert select(result, "metric", "value", "task") == [
        ("throughput", "41.20", "training"),
        ("throughput", "97.1", "inference"),
    ]


@pytest.mark.parametrize(
    ("scenario", "main"),
    [
        (
            "singlestream",
            [("throughput", "QPS", "471.89", "1"), ("latency of a batch", "ns", "2114408", "1")],
        ),
        ("multistream", [("latency of a batch", "ns", "1274643", "")]),
        (
            "server",
            [
                ("throughput", "samples/s", "394.77", ""),
                ("latency among several", "ns", "2668928", ""),
            ],
        ),
        ("offline", [("throughput", "samples/s", "15365.7", "")]),
    ],
)
def test_summary_of_the_real_loadgen_is_read(scenario: str, main: list[tuple[str, ...]]) -> None:
    result = read_figures(TOOLS / f"loadgen-{scenario}-summary.txt")
    assert result.adapter == "mlperf-loadgen-summary"
    rows = select(result, "metric", "unit", "value", "batch_size")
    assert [row for row in rows if row[0] not in LATENCIES] == main
    assert [row[0] for row in rows if row[0] in LATENCIES] == (
        list(LATENCIES) if scenario != "offline" else []
    )


def test_folder_of_the_real_loadgen_is_handed_in_as_its_detail_log(tmp_path: Path) -> None:
    shutil.copy(TOOLS / "loadgen-singlestream-summary.txt", tmp_path / "mlperf_log_summary.txt")
    shutil.copy(TOOLS / "loadgen-singlestream-detail.txt", tmp_path / "mlperf_log_detail.txt")
    (tmp_path / "mlperf_log_accuracy.json").write_text("[\n]\n")
    request = SubmissionRequest(
        [tmp_path], "Ada Example", "CC-BY-4.0", "LoadGen", defaults={"model": "resnet50"}
    )
    files = prepare_bundle(request).files
    assert b"471.892" in files["results.csv"]
    assert b"mlperf_log_detail.txt" in files["submission.toml"]
    assert json.loads(files["environment.json"])["LoadGen version"].startswith("6.0.17")


def test_folder_of_no_known_tool_is_refused_with_the_names_it_may_have(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=r"neither points\.csv .* nor mlperf_log_detail\.txt"):
        prepare_bundle(SubmissionRequest([tmp_path], "Ada Example", "CC-BY-4.0", "by hand"))


@pytest.mark.parametrize(
    ("mode", "latency", "rate"),
    [
        ("async", ("latency among several", "200.37"), "31504.76"),
        ("sync", ("latency of a batch", "463.28"), "8025.92"),
    ],
)
def test_log_of_the_real_benchmark_app_is_read(
    mode: str, latency: tuple[str, str], rate: str
) -> None:
    result = read_figures(TOOLS / f"benchmark_app-{mode}.txt")
    rows = select(result, "metric", "value", "batch_size", "sdk_version")
    assert (*latency, "4", "2026.4.1") in rows
    assert ("throughput", rate, "4", "2026.4.1") in rows
    assert {row["conditions"].partition("; ")[2] for row in result.figures} == {
        "inference precision hint float32"
    }


def test_folder_of_the_real_optimum_benchmark_is_handed_in(tmp_path: Path) -> None:
    shutil.copy(TOOLS / "optimum-benchmark.json", tmp_path / "benchmark.json")
    (tmp_path / "benchmark_report.json").write_text("{}")
    stated = {"platform": "My machine", "chip": "Xeon", "chip_count": "1", "precision": "fp32"}
    bundle = prepare_bundle(
        SubmissionRequest([tmp_path], "Ada Example", "CC-BY-4.0", "idle", defaults=stated)
    )
    rows = list(csv.DictReader(io.StringIO(bundle.files["results.csv"].decode())))
    assert {(row["batch_size"], row["variant"], row["framework"]) for row in rows} == {
        ("4", "SL16", "pytorch")
    }
    figures = {row["metric"]: (row["value"], row["unit"]) for row in rows}
    assert figures["throughput"] == ("16.312341235623013", "samples/s")
    assert figures["latency of a batch"] == ("0.2452131145506428", "s")
    assert (
        bundle.remarks[0]
        == "benchmark.json: the file does not state sdk_version: fill in what you know (--set"
        " NAME=TEXT)"
    )


def test_rates_and_latencies_of_vllm_serve_keep_their_meaning(tmp_path: Path) -> None:
    result = read(tmp_path, json.dumps(VLLM_SERVE))
    assert select(result, "metric", "unit", "value", "model") == [
        ("throughput", "queries/s", "6.0", "an/opt-125m"),
        ("throughput", "tokens/s", "768.0", "an/opt-125m"),
        ("throughput", "tokens/s", "960.0", "an/opt-125m"),
        ("latency among several", "ms", "1061.25", "an/opt-125m"),
        ("latency median", "ms", "1049.5", "an/opt-125m"),
        ("latency p99", "ms", "1204.75", "an/opt-125m"),
    ]
    conditions = [row["conditions"] for row in result.figures]
    assert len(set(conditions)) == 3  # one figure of a kind for each
    assert all(
        "request_rate inf; max_concurrency 8; num_prompts 64; failed 4" in text
        for text in conditions
    )
    assert [text.rpartition("; ")[2] for text in conditions[1:3]] == [
        "tokens generated",
        "tokens read and generated",
    ]
    assert {row["framework"] for row in result.figures} == {""}
    assert any("4 request(s) failed" in remark for remark in result.remarks)
    assert any(remark.startswith("left out: times of the first") for remark in result.remarks)


def test_latency_of_vllm_with_one_request_at_a_time_is_that_of_a_batch(tmp_path: Path) -> None:
    result = read(tmp_path, json.dumps({**VLLM_SERVE, "max_concurrency": 1, "failed": 0}))
    assert [row["metric"] for row in result.figures if row["value"] == "1061.25"] == [
        "latency of a batch"
    ]
    assert not any("failed" in remark for remark in result.remarks)


def test_vllm_bench_of_an_engine_is_read(tmp_path: Path) -> None:
    assert select(read(tmp_path, VLLM_THROUGHPUT), "metric", "unit", "value", "framework") == [
        ("throughput", "queries/s", "5.0", ""),
        ("throughput", "tokens/s", "800.0", ""),
    ]
    assert select(read(tmp_path, VLLM_LATENCY), "metric", "unit", "value", "framework") == [
        ("latency of a batch", "s", "1.0625", "vLLM"),
        ("latency std", "s", "0.03125", "vLLM"),
        ("latency median", "s", "1.0625", "vLLM"),
        ("latency p90", "s", "1.1", "vLLM"),
        ("latency p99", "s", "1.12", "vLLM"),
    ]
    assert_refused(
        tmp_path, VLLM_LATENCY.replace('"90": 1.1', '"90": NaN'), "percentiles.90", "NaN"
    )
