"""Read the log of a PopRT benchmark: those of `benchmarks/` and of the packing examples, as their scripts print it."""

from __future__ import annotations

import re

from ipu_results.submission.adapters.files import Draft, ReadFile, SubmittedFile

NAME = "poprt"
RUN = re.compile(r"Run batch size (\S{1,60}):")
RATE = re.compile(r"Tput ?(\([^()]{0,100}\))?: (\S{1,60})")
PIXELS = "(800 * 800 / time_per_image)"
RECORD = "'log_type': 'BenchmarkOutput'"
PACKED = re.compile(
    r"(?:[A-Z]{1,10}:)?(?:Pack (?P<model>[\w -]{1,60}?),? Batch Size: (?P<batch>\S{1,60})|\[(?P<mode>[^\]]{1,100})\])"
    r" Throughput: (?P<rate>\S{1,60}) samples/s, Latency ?: (?P<latency>\S{1,60}) ms"
)
FIGURE_SIGNS = ("Tput", "{'accuracy/", "] Throughput: ", " Batch Size: ")
SIGNS = ("Run batch size", "Tput", "BenchmarkOutput", "samples/s, Latency")
WHOLE_SET = "latency is the time of the whole set over its samples"
THREADS = 5  # of run_benchmark in benchmarks/benchmark.py
# Keys of the printed record: (key, metric, unit). Its script prints seconds, and items without a unit.
RECORD_FIGURES = (
    ("tput", "throughput", "items/s"),
    ("latency_mean", "latency among several", "s"),
    ("latency_median", "latency median", "s"),
    ("latency_min", "latency min", "s"),
    ("latency_max", "latency max", "s"),
)
FIELD = re.compile(r"'([\w/]{1,60})': (\[[^\]]{0,200}\]|'[^']{0,200}'|[^,}\s]{1,60})")
UNSTATED = "model, variant, packing and the chip are those of the command, which the log does not print"


def is_readable(file: SubmittedFile) -> bool:
    """Return whether a line of the file is one that the scripts print figures in."""
    return any(
        (RATE.fullmatch(text) or _find_record(text) or PACKED.fullmatch(text)) is not None
        for text in (line.strip() for _, line in file.list_lines() if any(sign in line for sign in SIGNS))
    )


def read_benchmark_log(file: SubmittedFile) -> ReadFile:
    """Read throughputs and latencies. Raises SubmissionError."""
    draft, batch = Draft(file), ""
    draft.remark(UNSTATED)
    for number, line in file.list_lines():
        text, place = line.strip(), f"line {number}"
        if match := RUN.fullmatch(text):
            batch = file.check_count(match[1], place)
        elif match := RATE.fullmatch(text):
            unit = "pixels/s" if match[1] == PIXELS else "items/s"
            if match[1] and match[1] != PIXELS:
                file.fail(f"throughput of unknown definition {match[1][:40]}", place)
            file.require_line_end(number, place)
            facts = {"batch_size": batch, "conditions": "asynchronous calls"}
            _add(draft, facts, "throughput", unit, match[2], f"{place}, Tput")
            draft.remark("left out: the average session time, which is the batch over the throughput")
        elif match := PACKED.fullmatch(text):
            _add_packed(draft, match, place)
        elif (record := _find_record(text)) is not None:
            _add_record(draft, record, place)
        elif any(sign in text for sign in FIGURE_SIGNS):
            file.fail("is not a whole line of a PopRT benchmark", place)
    return draft.finish(NAME)


def _add(draft: Draft, facts: dict[str, str], metric: str, unit: str, value: str, place: str) -> None:
    draft.add({"task": "inference", "framework": "PopRT", **facts}, metric, unit, value, place)


def _add_packed(draft: Draft, match: re.Match[str], place: str) -> None:
    facts = {
        "model": (match["model"] or "").strip(),
        "batch_size": draft.file.check_count(match["batch"], place) if match["batch"] else "",
        "conditions": f"{match['mode']}; {WHOLE_SET}" if match["mode"] else WHOLE_SET,
    }
    _add(draft, facts, "throughput", "samples/s", match["rate"], f"{place}, Throughput")
    _add(draft, facts, "latency per item", "ms", match["latency"], f"{place}, Latency")


def _add_record(draft: Draft, record: str, place: str) -> None:
    fields: dict[str, str] = {}
    for key, value in FIELD.findall(record):
        if key in fields:
            draft.file.fail(f"key {key!r} occurs twice", place)
        fields[key] = value
    calls = draft.file.check_count(fields.get("iteration", ""), f"{place}, iteration")
    facts = {
        "precision": _read_text(fields.get("precision", "")),
        "batch_size": draft.file.check_count(fields.get("batch_size", ""), f"{place}, batch_size"),
        "conditions": f"{calls} calls, {THREADS} threads with one batch each",
    }
    for key, metric, unit in RECORD_FIGURES:
        if key not in fields:
            draft.file.fail("is absent", f"{place}, {key}")
        _add(draft, facts, metric, unit, fields[key], f"{place}, {key}")
    draft.remark("left out of records: accuracy (differences from ONNX Runtime) and the time to compile")
    for key in ("size", "onnx_file"):
        if text := _read_text(fields.get(key, "")):
            draft.remark(f"{place}: {key} {text}; state the model and its variant")


def _find_record(text: str) -> str | None:
    """Return the printed dictionary of a line, in Markdown as well."""
    if RECORD not in text:
        return None
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1].replace("\\[", "[").replace("\\]", "]") if 0 <= start < end else None


def _read_text(printed: str) -> str:
    """Return the text of a printed Python value, "" for None."""
    text = printed.strip("'")
    return "" if text == "None" else text
