"""Read what trtexec of TensorRT, benchmark_app of OpenVINO, Hugging Face's Trainer and `vllm bench`
write.
"""

from __future__ import annotations

import re

from ipu_results.ground.files import load_schema_file
from ipu_results.submission.adapters import Adapter, ReadFile, Section, SubmittedFile

SUMMARY = re.compile(r"\[I\] (Throughput|Latency): (.+)$")
STATISTIC = re.compile(r"(min|max|mean|median|percentile\((?:90|99)%\)) = (\S{1,40}) ms")
QPS = re.compile(r"(\S{1,40}) qps")
SHAPES = re.compile(r"--(?:shapes|optShapes)='?[^:\s]{1,200}:(\d{1,10})x")
DEVICE, TENSORRT = (
    re.compile(r"\[I\] Selected Device: (.{1,100})$"),
    re.compile(r"\[I\] TensorRT version: ([\d.]{1,20})"),
)
TYPES = re.compile(r"--(?:fp16|bf16|int8|fp8|best|noTF32)\b")
METRICS = {
    "mean": "latency",
    **{"min": "latency min", "max": "latency max", "median": "latency median"},
    **{"percentile(90%)": "latency p90", "percentile(99%)": "latency p99"},
}


def _read_trtexec(result: ReadFile) -> None:
    """Read the performance summary.

    A query is one execution of the batch, so qps are items only at batch 1.
    """
    facts = {"task": "inference", "framework": "TensorRT", "chip_count": "1"}
    flags: list[str] = []
    for number, line in result.file.list_lines():
        if match := SHAPES.search(line):
            facts["batch_size"] = match[1]
        flags += [flag for flag in TYPES.findall(line) if "trtexec" in line and flag not in flags]
        if match := DEVICE.search(line):
            facts["chip"] = match[1].strip()
        if match := TENSORRT.search(line):
            facts["sdk_version"] = match[1]
        if match := SUMMARY.search(line):
            notes = ("latency is copying in, computing and copying out, one execution", *flags)
            _add_summary(
                result, {**facts, "conditions": "; ".join(notes)}, match[1], match[2], number
            )
    if "batch_size" not in facts:
        result.remark("the log has no --shapes: state the batch size with --set batch_size=N")
    result.remark(
        "precision: TensorRT chooses it for each layer among those allowed; state it with --set"
        " precision=NAME"
    )


def _add_summary(
    result: ReadFile, facts: dict[str, str], name: str, text: str, number: int
) -> None:
    place = f"line {number}"
    result.file.require_line_end(number, place)
    if name == "Latency":
        for statistic, value in STATISTIC.findall(text):
            result.add(facts, METRICS[statistic], "ms", value, f"{place}, {statistic}")
    elif rate := QPS.search(text):
        if facts.get("batch_size") == "1":
            result.add(facts, "throughput", "QPS", rate[1], place)
        else:
            batch = facts.get("batch_size", "N")
            result.remark(
                f"left out: {rate[1]} qps, executions of a batch per second; items per second are"
                f" {batch} times that: hand them in with the CSV template"
            )


BENCHMARK = re.compile(
    r"\[ INFO \]\s+(Median|Average|Min|Max|Throughput):\s+(\S{1,40}) (us|ms|s|FPS)\s*$"
)
REQUESTS = re.compile(r"Start inference (a?sync)\w*(?:, (\d{1,6}) inference requests)?")
BATCH = re.compile(r"\[ INFO \] Model batch size: (\d{1,10})\s*$")
RAN_ON = re.compile(r"\[ INFO \] Execution Devices: ?\['?([^'\]]{1,60})'?\]")
BUILD = re.compile(r"\[ INFO \] Build \.{3,40} (\d[\d.]{1,20})-")
HINT = re.compile(r"\[ INFO \] +INFERENCE_PRECISION_HINT: <Type: '(\w{1,20})'>")
STATISTICS = {"Median": "latency median", "Min": "latency min", "Max": "latency max"}


def _read_benchmark_app(result: ReadFile) -> None:
    """Read the statistics at the end.

    A latency is that of one request, with as many in flight as the log says.
    """
    facts = {"task": "inference", "framework": "OpenVINO"}
    requests, notes, figures = "", list[str](), list[tuple[str, str, str, str]]()
    for number, line in result.file.list_lines():
        if match := REQUESTS.search(line):
            requests = "1" if match[1] == "sync" else match[2] or ""
        if match := BATCH.search(line):
            facts["batch_size"] = match[1]
        if match := BUILD.search(line):
            facts["sdk_version"] = match[1]
        if match := HINT.search(
            line
        ):  # of floating-point layers: those of a quantised model may compute in INT8
            notes.append(f"inference precision hint {match[1]}")
        if match := RAN_ON.search(line):
            result.state("device", match[1].strip())
        if match := BENCHMARK.search(line):
            result.file.require_line_end(number, f"line {number}")
            figures.append((match[1], match[2], match[3], f"line {number}"))
    facts["conditions"] = "; ".join(
        [f"{requests or 'unknown number of'} request(s) in flight", *notes]
    )
    mean = {"1": "latency of a batch", "": "latency"}.get(requests, "latency among several")
    for name, value, unit, place in figures:
        metric = "throughput" if name == "Throughput" else STATISTICS.get(name, mean)
        result.add(facts, metric, unit.lower(), value, place)


TRAINER = {"train_samples_per_second": "training", "eval_samples_per_second": "inference"}


def _read_trainer(result: ReadFile) -> None:
    """Read the samples per second of `all_results.json`, which the Trainer writes at the end of a
    run.
    """
    report = Section(result.file, result.file.value)
    for key, task in TRAINER.items():
        if value := report.read_number(key):
            result.add(
                {"task": task, "conditions": f"Trainer, {key}"},
                "throughput",
                "samples/s",
                value,
                key,
            )
    result.remark("the Trainer counts the time of loading data and the first steps, too")


VLLM = load_schema_file("adapters.toml")["vllm"]
WHAT = {
    "serve": "latency is the time of one request from sending it to its last token",
    "throughput": "all requests at once",
    "latency": "latency is the time of all tokens of a batch, one batch at a time",
}
SETTINGS = (
    "request_rate",
    "max_concurrency",
    "num_prompts",
    "failed",
)  # texts or numbers, of `serve`
UNREAD = ("ttft", "tpot", "itl")  # times of a token


def _find_command(file: SubmittedFile) -> str | None:
    """Return the command of `vllm bench` whose keys the file has."""
    keys = file.value.keys() if isinstance(file.value, dict) else ()
    return next(
        (name for name, form in VLLM.items() if all(sign in keys for sign in form["signs"])), None
    )


def _read_vllm(result: ReadFile) -> None:
    """Read the rates and latencies of `vllm bench serve`, `throughput` or `latency`."""
    report, command = Section(result.file, result.file.value), _find_command(result.file)
    if command is None:
        result.file.fail(f"has not the keys that `vllm bench` writes for {', '.join(VLLM)}")
    stated = {name: report.fields.get(name) for name in SETTINGS}
    notes = [f"vllm bench {command}", WHAT[command]]
    notes += [
        f"{name} {value}"
        for name, value in stated.items()
        if isinstance(value, str) and value != "0"
    ]
    facts = {"task": "inference", "model": report.read_text("model_id")}
    if command == "latency":
        facts["framework"] = "vLLM"
    else:
        result.remark(
            "framework: the file does not state which program served the requests: --set"
            " framework=vLLM"
        )
    for name in ("backend", "tokenizer_id", "date"):
        result.state(name, report.read_text(name))
    for key, (metric, unit, what) in VLLM[command]["figures"].items():
        if value := report.read(key, "number"):
            alone = metric == "latency among several" and stated["max_concurrency"] == "1"
            own = {**facts, "conditions": "; ".join(filter(None, [*notes, what]))}
            result.add(own, "latency of a batch" if alone else metric, unit, value, key)
    if stated["failed"] not in (None, "0"):
        result.remark(
            f"{stated['failed']} request(s) failed, and the rates do not count them: measure again"
        )
    if command == "serve":
        if not report.read_number("mean_e2el_ms"):
            result.remark("no latency of a request: run it with --percentile-metrics e2el")
        if any(f"mean_{name}_ms" in report.fields for name in UNREAD):
            result.remark(
                "left out: times of the first and of single tokens, which the record has no"
                " column for"
            )


def _match_lines(file: SubmittedFile, *patterns: re.Pattern[str]) -> bool:
    return all(any(pattern.search(line) for _, line in file.list_lines()) for pattern in patterns)


ADAPTERS = {
    "trtexec": Adapter(lambda file: _match_lines(file, SUMMARY, QPS), _read_trtexec),
    "benchmark_app": Adapter(lambda file: _match_lines(file, BENCHMARK), _read_benchmark_app),
    "trainer": Adapter(
        lambda file: isinstance(file.value, dict) and not TRAINER.keys().isdisjoint(file.value),
        _read_trainer,
    ),
    "vllm": Adapter(lambda file: _find_command(file) is not None, _read_vllm),
}
