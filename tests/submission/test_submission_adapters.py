"""The adapters read each figure of other tools' reports and logs exactly, and state what a file
does not.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.errors import SubmissionError
from ipu_results.ground.limits import MAX_SUBMITTED_BYTES
from ipu_results.store.query import open_warehouse
from ipu_results.submission.adapters import NAMES, read_figures
from ipu_results.submission.bundle import COLUMNS
from ipu_results.submission.prepare import SubmissionRequest, prepare_bundle
from ipu_results.submission.refusals import load_submission_words

from tests.submission.tool_files import (
    BYTEMLPERF,
    CLIP_TRAINING,
    CNN_INFERENCE,
    DETAIL,
    FILES,
    GPT2_TRAINING,
    JUBE_CSV,
    JUBE_PRETTY,
    LATENCY,
    OFFLINE,
    OPTIMUM,
    POPRT_ASYNC,
    POPRT_PACKED,
    POPRT_RECORD,
    SERVER,
    SINGLE,
    TEMPLATE,
    TRAINING,
    assert_refused,
    mllog,
    read,
    select,
)

PAGE = Path(__file__).parents[2] / "docs/reference/submission-formats.md"
BROKEN: tuple[tuple[str | bytes, list[str]], ...] = (
    (BYTEMLPERF.replace('"QPS": 123456.70', '"QPS": NaN'), ["Performance[0].QPS", "NaN"]),
    (BYTEMLPERF.replace('"QPS": 123456.70', '"QPS": -1'), ["Performance[0].QPS", "'-1'"]),
    (BYTEMLPERF.replace('"QPS": 123456.70', '"QPS": "12"'), ["Performance[0].QPS", "not a number"]),
    (BYTEMLPERF.replace('"QPS": 123456.70', '"QPS": 1e999'), ["Performance[0].QPS", "1e999"]),
    (
        BYTEMLPERF.replace('"QPS": 123456.70', '"QPS": ' + "9" * 5000),
        ["Performance[0].QPS", "not a figure"],
    ),
    (BYTEMLPERF.replace('"QPS": 123456.70, ', ""), ["Performance[0].QPS", "absent"]),
    (BYTEMLPERF.replace('"BS": 8', '"BS": 8.5'), ["Performance[0].BS", "whole number"]),
    (BYTEMLPERF.replace('"BS": 8', '"BS": 16'), ["Performance[1].BS", "occurs twice"]),
    (BYTEMLPERF.replace('"BS": 8', '"BS": 8, "BS": 9'), ["'BS' occurs twice in one object"]),
    (
        BYTEMLPERF.replace('"AVG Latency": 1.250', '"AVG Latency": 1.250, "AVG_Latency": 2'),
        ["Performance[0]", "twice"],
    ),
    (
        BYTEMLPERF.replace('"Performance": [', '"Performance": [7, '),
        ["Performance[0]", "not a JSON object"],
    ),
    (BYTEMLPERF.replace('"RESNET50-TORCH-FP32"', '"a\\ud800b"'), ["control character"]),
    (BYTEMLPERF.replace('"RESNET50-TORCH-FP32"', "[1]"), ["Model", "not a string"]),
    (BYTEMLPERF.replace("    ]\n}", ""), ["is not JSON", "line"]),
    (JUBE_CSV.replace(",128.00", ""), ["line 2", "11 cells, the header 12"]),
    (JUBE_CSV.replace("128.00", "inf"), ["line 2, Tokens/second", "'inf'"]),
    (JUBE_CSV.replace(",4,512", ",many,512"), ["line 2, Devices"]),
    (JUBE_CSV.replace("JobID", "System"), ["line 1", "occurs twice"]),
    (JUBE_CSV.split("\n", maxsplit=1)[0] + "\n", ["line 1", "no row"]),
    (JUBE_CSV + '"system"x\n', ["line 4", "has 1 cells"]),
    (JUBE_CSV[:-3], ["line 3", "digits may be missing"]),
    (
        JUBE_PRETTY.replace("712.50", "").replace("1.250", "").replace("2.500", ""),
        ["holds no figure"],
    ),
    (POPRT_ASYNC[:-3], ["line 6", "digits may be missing"]),
    (POPRT_ASYNC + "Tput: nan\n", ["line 7", "'nan'"]),
    (POPRT_ASYNC + "Tput:\n", ["line 7", "not a whole line"]),
    (POPRT_ASYNC + "Run batch size x:\n", ["line 7", "'x'"]),
    (POPRT_PACKED + POPRT_RECORD[:80], ["line 3", "not a whole line"]),
    (POPRT_RECORD.replace("'tput'", "'batch_size': 7, 'tput'"), ["'batch_size' occurs twice"]),
    (POPRT_RECORD.replace("'tput'", "'other'"), ["line 1, tput", "absent"]),
    (GPT2_TRAINING.replace("11.70 samples", "11.70 imgs"), ["line 2", "samples/sec to img/sec"]),
    (CNN_INFERENCE.replace("num_ipus: 2", "num_ipus: two"), ["num_ipus", "'two'"]),
    (
        CNN_INFERENCE.replace("\tdata_mode: real", "\tmicro_batch_size: 8"),
        ["micro_batch_size has two values"],
    ),
    (SERVER.replace(": VALID", ": INVALID"), ["not valid", "INVALID"]),
    (SERVER.replace("No errors encountered", "2 ERRORS encountered"), ["errors in the run: 2"]),
    (SERVER.replace("PerformanceOnly", "AccuracyOnly"), ["AccuracyOnly"]),
    (SERVER.replace(": Server", ": Surfer"), ["'Surfer'"]),
    (SERVER[: SERVER.index("Test Param")], ["not whole"]),
    (SERVER.replace("639.25", "six"), ["Completed samples per second", "'six'"]),
    (SERVER + SERVER.replace("1500", "1600"), ["Mean latency (ns) has two values"]),
    (DETAIL + mllog("error_runtime", "it failed", is_error=True), ["line 9", "error_runtime"]),
    (DETAIL.replace("8000", '"8000"'), ["is not a number"]),
    (DETAIL[:-20], ["line 8", "is not JSON"]),
    (TRAINING.replace('"success"', '"aborted"'), ["aborted"]),
    (TRAINING[: TRAINING.index(':::MLLOG {"key": "run_stop"')], ["did not end"]),
    (TRAINING.replace('"run_start"', '"run_begin"'), ["has no run_start before its run_stop"]),
    (TRAINING.replace("1700000100234", "1600000000000"), ["do not make one run"]),
    (TRAINING.replace("1700000100234", "1700000100234.5"), ["line 6.time_ms", "whole number"]),
    (TEMPLATE.replace("batch_size", "batchsize"), ["line 1", "'batchsize'", "nearest: batch_size"]),
    (TEMPLATE.replace("place", "unit"), ["line 1", "'unit' occurs twice"]),
    (TEMPLATE.replace("0.5", "=1+1"), ["line 3", "'=1+1'"]),
    (
        TEMPLATE.replace("table 3", "table \x1b[31m3"),
        ["line 2: table \\x1b[31m3", "control character"],
    ),
    (TEMPLATE.replace(",0.5,", ",,"), ["line 3", "value is blank"]),
    (TEMPLATE.replace(",0.5,", ","), ["line 3", "6 cells"]),
    (TEMPLATE.replace(",table 3", ',"table 3'), ["is not CSV"]),
    ("metric,value\nthroughput,12", ["line 2", "digits may be missing"]),
    (TEMPLATE.replace("my network", "x" * 600), ["line 2", "longer than 500"]),
    (b"", ["is empty"]),
    (b"\xff\xfe\x00", ["not text", "byte 0"]),
    (b"metric,value\n\0", ["NUL"]),
    (b"nothing of the kind\n", ["is not a file that an adapter reads"]),
    (b'{"a": ' * 100_000, ["nested too deeply"]),
    (b"a\n" + b"b" * 2_000_001, ["line 2", "longer than 2,000,000"]),
    (b"[1, 2]", ["is not a file that an adapter reads"]),
    (b'{"a": 1}', ["is not a file that an adapter reads"]),
)


@pytest.mark.parametrize(("content", "parts"), BROKEN)
def test_a_broken_file_is_refused_with_its_place(
    tmp_path: Path, content: str | bytes, parts: list[str]
) -> None:
    assert_refused(tmp_path, content, *parts)


@pytest.mark.parametrize("name", NAMES)
def test_content_alone_selects_the_adapter(tmp_path: Path, name: str) -> None:
    result = read(tmp_path, FILES[name], "anything.bin")
    assert result.adapter == name
    assert all(tuple(figure) == COLUMNS for figure in result.figures)
    assert all(figure["place"].startswith("anything.bin, ") for figure in result.figures)


def test_bytemlperf_report_keeps_digits_and_states_what_is_missing(tmp_path: Path) -> None:
    result = read(tmp_path, BYTEMLPERF)
    assert select(result, "batch_size", "metric", "unit", "value", "place") == [
        ("8", "throughput", "QPS", "123456.70", "file.txt, Performance[0].QPS"),
        ("8", "latency", "ms", "1.250", "file.txt, Performance[0].AVG Latency"),
        ("8", "latency p99", "ms", "2.10", "file.txt, Performance[0].P99 Latency"),
        ("8", "quality Top-1", "", "0.50010", "file.txt, Accuracy.Top-1"),
        ("16", "throughput", "QPS", "1300", "file.txt, Performance[1].QPS"),
        ("16", "latency", "ms", "2.5", "file.txt, Performance[1].AVG_Latency"),
        ("16", "latency p99", "ms", "3", "file.txt, Performance[1].P99_Latency"),
        ("16", "quality Top-1", "", "0.50010", "file.txt, Accuracy.Top-1"),
    ]
    facts = result.figures[0]
    assert (facts["model"], facts["variant"], facts["dataset"]) == (
        "ResNet-50 v1.5",
        "224x224",
        "OPEN_IMAGENET",
    )
    assert (facts["precision"], facts["chip_count"], facts["chip"], facts["platform"]) == (
        "FP16",
        "2",
        "",
        "",
    )
    assert (
        "model RESNET50-TORCH-FP32; report of 2026-01-02; latency is the time of one call"
        in facts["conditions"]
    )
    assert result.environment["Backend"] == "IPU"
    blank = "platform, chip, framework, sdk_version"
    assert (
        result.remarks[0]
        == f"the file does not state {blank}: fill in what you know (--set NAME=TEXT)"
    )


def test_bytemlperf_sparsity_is_a_condition_and_an_exponent_is_written_out(tmp_path: Path) -> None:
    text = BYTEMLPERF.replace('"Top-1": 0.50010, ', "").replace(
        '"FP16",', '"FP16", "Sparsity Ratio": "0.5",'
    )
    text = text.replace("RESNET50-TORCH-FP32", "resnet50-torch-fp32")
    nested = text.replace('"Performance": [', '"Performance": [[').replace("]\n}", "]]\n}")
    result = read(tmp_path, nested)
    assert "sparsity ratio 0.5" in result.figures[0]["conditions"]
    assert result.figures[0]["model"] == "ResNet-50 v1.5"  # in any case
    assert select(result, "value", "place")[0] == ("123456.70", "file.txt, Performance[0][0].QPS")
    assert select(result, "metric", "value")[3] == ("quality Mean Diff", "0.00003")
    assert any("3e-05 is written out" in remark for remark in result.remarks)


def test_jube_table_keeps_the_printed_unit_and_notes_a_rate_of_batches(tmp_path: Path) -> None:
    result = read(tmp_path, JUBE_CSV)
    assert select(
        result, "model", "chip", "platform", "chip_count", "batch_size", "unit", "value", "place"
    ) == [
        (
            "GPT-117M",
            "GC200",
            "",
            "4",
            "512",
            "tokens/s",
            "128.00",
            "file.txt, line 2, Tokens/second",
        ),
        (
            "GPT-800M",
            "",
            "H100",
            "4",
            "512",
            "tokens/s",
            "131072.10",
            "file.txt, line 3, Tokens/second",
        ),
    ]
    assert "counts sequences, or the batch counts tokens" in result.figures[0]["conditions"]
    assert "counts sequences" not in result.figures[1]["conditions"]
    assert "job 12" in result.figures[1]["conditions"]
    for rate, is_of_batches in (
        ("130.56", True),
        ("130.57", False),
    ):  # 2 % above the batch over the time of a step
        changed = read(tmp_path, JUBE_CSV.replace("128.00", rate))
        assert ("counts sequences" in changed.figures[0]["conditions"]) is is_of_batches


def test_jube_table_with_bars_gives_energy_per_chip_and_skips_a_blank_cell(tmp_path: Path) -> None:
    result = read(tmp_path, JUBE_PRETTY)
    assert select(result, "chip", "metric", "unit", "value", "power_scope") == [
        ("GC200", "throughput", "images/s", "712.50", ""),
        ("GC200", "energy", "Wh", "1.250", "chip"),
        ("MI250 GCD", "energy", "Wh", "2.500", "chip"),
    ]
    assert "line 5, Images/second: blank, so no figure" in result.remarks


def test_poprt_logs_say_what_a_latency_is(tmp_path: Path) -> None:
    assert select(read(tmp_path, POPRT_ASYNC), "batch_size", "conditions", "unit", "value") == [
        ("4", "asynchronous calls", "items/s", "2000.1234567890124"),
        ("9", "asynchronous calls", "pixels/s", "777.5"),
    ]
    record = read(tmp_path, POPRT_RECORD)
    assert select(record, "precision", "batch_size", "metric", "unit", "value") == [
        ("fp16", "6", "throughput", "items/s", "1201.50"),
        ("fp16", "6", "latency among several", "s", "0.0050"),
        ("fp16", "6", "latency median", "s", "0.0049"),
        ("fp16", "6", "latency min", "s", "0.0010"),
        ("fp16", "6", "latency max", "s", "0.0070"),
    ]
    assert {figure["conditions"] for figure in record.figures} == {
        "1000 calls, 5 threads with one batch each"
    }
    whole_set = "latency is the time of the whole set over its samples"
    assert select(
        read(tmp_path, POPRT_PACKED), "model", "batch_size", "metric", "value", "conditions"
    ) == [
        ("bert_base", "16", "throughput", "8000.5", whole_set),
        ("bert_base", "16", "latency per item", "0.1250", whole_set),
        ("", "", "throughput", "900.25", f"Pack Online (first_fit); {whole_set}"),
        ("", "", "latency per item", "1.1", f"Pack Online (first_fit); {whole_set}"),
    ]


def test_poptorch_summary_replaces_the_steps(tmp_path: Path) -> None:
    result = read(tmp_path, CNN_INFERENCE)
    columns = (
        "model",
        "task",
        "framework",
        "chip_count",
        "micro_batch_size",
        "metric",
        "unit",
        "value",
    )
    facts = ("resnet50", "inference", "PyTorch", "2", "4")
    assert select(result, *columns) == [
        (*facts, "throughput", "samples/sec", "1000.250"),
        (*facts, "latency of a batch", "ms", "1.750"),
        (*facts, "latency min", "ms", "1.5"),
        (*facts, "latency max", "ms", "2.25"),
    ]
    assert "latency is that of a micro-batch" in result.figures[0]["conditions"]
    other = read(tmp_path, f"{CNN_INFERENCE}other results:\n\tlatency avg: 2.5 ms\n")
    assert select(other, "model", "value")[-1] == ("other", "2.5")
    clip = read(tmp_path, CLIP_TRAINING)
    assert select(clip, "task", "batch_size", "value", "place") == [
        ("training", "2048", "64.500000", "file.txt, line 5, throughput")
    ]
    assert "left out: 1 throughputs of single steps" in clip.remarks


def test_poptorch_latency_of_synthetic_data_is_left_out(tmp_path: Path) -> None:
    note = "\tNOTE: Using synthetic data, ignore these latency values.\n"
    result = read(tmp_path, CNN_INFERENCE + note)
    assert select(result, "metric") == [("throughput",)]
    assert any("left out latencies" in remark for remark in result.remarks)


def test_poptorch_log_without_a_summary_gives_its_last_step(tmp_path: Path) -> None:
    result = read(tmp_path, GPT2_TRAINING)
    assert select(result, "task", "framework", "value", "conditions") == [
        ("training", "", "11.70", "throughput of the last of 2 logged steps")
    ]


def test_loadgen_server_counts_what_completed(tmp_path: Path) -> None:
    result = read(tmp_path, SERVER)
    assert select(result, "batch_size", "metric", "unit", "value")[:3] == [
        ("", "throughput", "samples/s", "639.25"),
        ("", "latency among several", "ns", "1500"),
        ("", "latency min", "ns", "900"),
    ]
    assert "waiting included" in result.figures[0]["conditions"]
    assert any("Result not verified by MLCommons" in remark for remark in result.remarks)


def test_loadgen_scenarios_define_their_latency(tmp_path: Path) -> None:
    single = read(tmp_path, SINGLE)
    assert select(single, "batch_size", "metric", "value")[:2] == [
        ("1", "throughput", "600.10"),
        ("1", "latency of a batch", "1500"),
    ]
    several = read(tmp_path, SINGLE.replace("samples_per_query : 1", "samples_per_query : 8"))
    assert select(several, "batch_size", "metric")[0] == ("", "latency of a batch")
    assert select(read(tmp_path, OFFLINE), "metric", "value") == [("throughput", "26.9000")]
    assert select(read(tmp_path, DETAIL), "metric", "value") == [
        ("latency of a batch", "8000"),
        ("latency p99", "9000"),
    ]


def test_training_log_gives_the_exact_time_between_its_lines(tmp_path: Path) -> None:
    result = read(tmp_path, TRAINING)
    assert select(
        result, "model", "platform", "task", "batch_size", "metric", "unit", "value", "conditions"
    ) == [
        (
            *("ResNet-50 v1.5", "a pod", "training", "64", "time to train", "s", "100.233"),
            "MLPerf Training log; one run; seed 7",
        )
    ]
    assert "line 6, run_stop.time_ms minus line 5, run_start.time_ms" in result.figures[0]["place"]


def test_optimum_report_leaves_out_a_rate_of_tokens_called_samples(tmp_path: Path) -> None:
    result = read(tmp_path, json.dumps(OPTIMUM))
    forward = [figure for figure in result.figures if "target forward" in figure["conditions"]]
    assert [(figure["metric"], figure["unit"], figure["value"]) for figure in forward] == [
        ("latency of a batch", "s", "0.5"),
        ("latency median", "s", "0.5"),
        ("latency p90", "s", "0.75"),
        ("latency p99", "s", "0.8"),
        ("latency std", "s", "0.1"),
        ("throughput", "samples/s", "8.0"),
    ]
    assert (forward[0]["batch_size"], forward[0]["chip"], forward[0]["chip_count"]) == (
        "4",
        "A chip",
        "1",
    )
    assert "792.0" not in {figure["value"] for figure in result.figures}
    assert any("some versions count tokens" in remark for remark in result.remarks)
    assert "left out: load_model" in result.remarks
    right = json.loads(json.dumps(OPTIMUM).replace("792.0", "8.0"))
    assert len(read(tmp_path, json.dumps(right)).figures) == len(result.figures) + 1


def test_optimum_report_is_handed_in_as_it_is(tmp_path: Path, warehouse: Path) -> None:
    backend = {
        **OPTIMUM["config"]["backend"],
        "model": "bert-base-uncased",
        "torch_dtype": "float16",
    }
    report = {**OPTIMUM, "config": {**OPTIMUM["config"], "backend": backend}}
    (tmp_path / "benchmark.json").write_text(json.dumps(report), encoding="utf-8")
    stated = {"platform": "C600", "sdk_version": "3.3", "precision": "fp16"}
    request = SubmissionRequest(
        [tmp_path / "benchmark.json"], "Ada", "CC-BY-4.0", "as read", defaults=stated
    )
    prepared = prepare_bundle(request)
    rows = list(csv.DictReader(io.StringIO(prepared.files["results.csv"].decode())))
    assert {(row["model"], row["precision"]) for row in rows} == {
        ("bert-base-uncased", "float16")
    }  # as printed
    with open_warehouse(warehouse) as connection:
        words = load_submission_words(connection)
    assert [words.find("model", "bert-base-uncased"), words.find("precision", "float16")] == [
        "BERT-Base",
        "FP16",
    ]
    assert not any("does not state" in remark for remark in prepared.remarks)
    remarks = prepare_bundle(replace(request, defaults={"platform": "C600"})).remarks
    assert (
        remarks[0]
        == "benchmark.json: the file does not state sdk_version: fill in what you know (--set"
        " NAME=TEXT)"
    )
    with pytest.raises(SubmissionError, match="says precision 'float16', not 'fp32'"):
        prepare_bundle(replace(request, defaults={"precision": "fp32"}))


def test_optimum_training_rate_of_all_steps_is_refused(tmp_path: Path) -> None:
    arguments = {"per_device_train_batch_size": 2, "gradient_accumulation_steps": 3}
    report = {"train": {"latency": LATENCY, "throughput": {"unit": "samples/s", "value": 12.0}}}
    config = {"scenario": {"training_arguments": arguments}}
    result = read(tmp_path, json.dumps({"config": config, "report": report}))
    assert select(result, "task", "micro_batch_size", "value") == [("training", "2", "12.0")]
    report["train"]["throughput"]["value"] = 1680.0
    assert_refused(tmp_path, json.dumps({"config": config, "report": report}), "no figure")


def test_optimum_energy_has_a_scope_and_another_unit_is_refused(tmp_path: Path) -> None:
    energy = {"unit": "kWh", "cpu": 0.1, "gpu": 0.2, "ram": 0.1, "total": 0.4}
    result = read(tmp_path, json.dumps({"forward": {"energy": energy}}))
    assert select(result, "metric", "unit", "value", "power_scope") == [
        ("energy", "kWh", "0.4", "machine")
    ]
    assert "energy of one forward pass of a batch" in result.figures[0]["conditions"]
    wrong = json.dumps({"forward": {"latency": {**LATENCY, "unit": "ms"}}})
    assert_refused(tmp_path, wrong, "forward.latency.unit", "'ms'")


def test_template_keeps_figures_as_printed(tmp_path: Path) -> None:
    result = read(tmp_path, TEMPLATE)
    assert select(result, "model", "batch_size", "value", "place") == [
        ("my network", "4", "1,234.50", "file.txt, line 2: table 3"),
        ("my network", "4", "0.5", "file.txt, line 3"),
    ]


def test_the_page_lists_every_adapter_and_its_example_is_readable(tmp_path: Path) -> None:
    page = PAGE.read_text()
    assert all(f"`{name}`" in page for name in (*NAMES, *COLUMNS))
    example = page.split("```csv\n")[1].split("```")[0]
    assert select(read(tmp_path, example), "metric", "value") == [
        ("throughput", "7800.5"),
        ("latency of a batch", "0.51"),
    ]


def test_a_file_that_suits_two_adapters_needs_a_name(tmp_path: Path) -> None:
    both = json.dumps({**json.loads(BYTEMLPERF), "forward": OPTIMUM["report"]["forward"]})
    assert_refused(tmp_path, both, "several adapters", "bytemlperf, optimum-benchmark")
    assert read_figures(tmp_path / "file.txt", adapter="bytemlperf").adapter == "bytemlperf"
    assert_refused(tmp_path, POPRT_PACKED + GPT2_TRAINING, "several adapters", "poprt, poptorch")
    with pytest.raises(SubmissionError, match="unknown adapter"):
        read_figures(tmp_path / "file.txt", adapter="other")


TOKENS = [*"NaN -1 1e400 null []".split(), *'"{},:|\n\r\0١', "9" * 400, "\ud800", ""]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(data=st.data())
def test_a_mutated_file_is_read_exactly_or_refused(name: str, data: st.DataObject) -> None:
    text = FILES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(
            st.one_of(st.integers(start, min(start + 30, len(text))), st.just(len(text)))
        )
        text = (
            text[:start]
            + data.draw(st.one_of(st.sampled_from(TOKENS), st.text(max_size=5)))
            + text[end:]
        )
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file.txt"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        result, error = None, None
        try:
            result = read_figures(path, adapter=data.draw(st.sampled_from([None, name])))
        except SubmissionError as refusal:
            error = refusal
    assert error is None or (error.document == str(path) and str(error).isprintable())
    assert error or (result and result.figures)
    for figure in result.figures if result else ():
        assert (
            figure["value"] in text
            or name == "mlperf-training-log"
            or any("written out" in r for r in result.remarks)
        )
        assert all("\n" not in cell and "\r" not in cell for cell in figure.values())


def test_large_special_and_missing_files_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "file.txt").open("wb") as file:
        file.truncate(5 * MAX_SUBMITTED_BYTES)
    parts = {
        "file.txt": "larger than 20 MB",
        ".": "directory",
        "absent": "No such file",
        "\0": "cannot be read",
    }
    for path, part in parts.items():
        with pytest.raises(SubmissionError, match=part):
            read_figures(tmp_path / path)
