"""Each form of file is read exactly, and states what it lacks.

`tests/data/loadgen` has what LoadGen 6.0.17 wrote of a system that sleeps, without the lines on
LoadGen's settings and on its history.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ipu_results.doors.submission.bundle import COLUMNS, format_conditions
from ipu_results.doors.submission.files import FileFigures
from ipu_results.doors.submission.forms import read_figures
from ipu_results.doors.submission.prepare import SubmissionRequest, prepare_bundle
from ipu_results.doors.submission.refusals import NAMED
from ipu_results.errors import SubmissionError
from ipu_results.kit.limits import MAX_SUBMITTED_BYTES
from ipu_results.schema import load_table

from tests.cases import every_case
from tests.doors.submission.submission_support import Check, make_files, put_folder

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/submission-formats.md"
RECIPES = ROOT / "docs/how-to/figures-of-other-tools.md"
LOGS = ROOT / "tests/data/loadgen"


def mllog(key: str, value: object, time_ms: float = 5, **metadata: object) -> str:
    entry = {"key": key, "value": value, "time_ms": time_ms, "metadata": metadata}
    return f":::MLLOG {json.dumps(entry)}\n"


SERVER = (LOGS / "server.txt").read_text(encoding="utf-8")
TRAINING = (
    mllog("submission_benchmark", "resnet")
    + mllog("global_batch_size", 64)
    + mllog("seed", 7)
    + mllog("run_start", None, 1700000000001)
    + mllog("run_stop", None, 1700000100234, status="success")
)
TEMPLATE = """model,task,batch_size,metric,unit,value,place
my network,inference,4,throughput,images/s,"1,234.50",table 3
my network,inference,4,latency,ms,0.5,
"""
FILES = {
    "mlperf-loadgen-detail": SERVER,
    "mlperf-training-log": TRAINING,
    "csv-template": TEMPLATE,
}


def read(folder: Path, text: str | bytes) -> FileFigures:
    path = folder / "file.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_figures(path)


def select(result: FileFigures, *columns: str) -> list[tuple[str, ...]]:
    return [tuple(figure[column] for column in columns) for figure in result.figures]


def assert_refused(folder: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(SubmissionError) as caught:
        read(folder, content)
    assert caught.value.document == str(folder / "file.txt")
    assert message in str(caught.value)


@every_case(__file__, "damaged")
def test_damaged_file_is_refused_with_its_place(
    tmp_path: Path, form: str, old: str, new: str, message: str
) -> None:
    assert old in FILES[form]
    assert_refused(tmp_path, FILES[form].replace(old, new), message)


@every_case(__file__, "empty")
def test_file_without_figures_is_refused(tmp_path: Path, content: str, message: str) -> None:
    assert_refused(tmp_path, content, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (SERVER[:-20], "line 26: is not JSON"),
        (SERVER + SERVER.replace("394.733", "394.734"), "completed_samples_per_sec has two"),
        (SERVER + ':::MLLOG {"a": ' + '{"a": ' * 100_000, "nested too deeply"),
        (SERVER + mllog("error_runtime", "x", is_error=True), "logged an error: error_runtime"),
        (TRAINING + mllog("run_stop", None, 2e12, status="success"), "has 2 run_stop lines"),
        ("metric,value\n" + "throughput,1\n" * 1001, "holds more than 1,000 figures"),
        (b"\xff\xfe\x00", "is not text in UTF-8"),
    ],
    ids=range(7),
)
def test_file_of_too_much_or_of_no_text_is_refused(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    assert_refused(tmp_path, content, message)


def test_large_special_and_missing_files_are_refused(tmp_path: Path) -> None:
    with (tmp_path / "file.txt").open("wb") as file:
        file.truncate(5 * MAX_SUBMITTED_BYTES)
    parts = {"file.txt": "larger than 20 MB", ".": "directory", "absent": "No such file"}
    for path, part in parts.items():
        with pytest.raises(SubmissionError, match=part):
            read_figures(tmp_path / path)


@every_case(__file__, "loadgen")
def test_log_of_the_real_loadgen_is_read(
    scenario: str, batch_size: str, main: list[str], latencies: list[str]
) -> None:
    result = read_figures(LOGS / f"{scenario}.txt")
    rows = select(result, "metric", "value", "unit")
    first = [" ".join(row) for row in rows[: len(main)]]
    assert first == main
    others = [metric for metric, *_ in rows[len(main) :]]
    assert others == latencies
    assert {row["batch_size"] for row in result.figures} == {batch_size}
    assert result.environment["LoadGen version"].startswith("6.0.17")
    assert any("Result not verified by MLCommons" in remark for remark in result.remarks)


def test_exponent_of_a_loadgen_log_is_written_out(tmp_path: Path) -> None:
    result = read(tmp_path, SERVER.replace("394.733", "1.14262e+06"))
    assert select(result, "value")[0] == ("1142620",)
    assert any("1.14262e+06 is written out as 1142620" in remark for remark in result.remarks)
    assert select(read(tmp_path, SERVER.replace("394.733", "1e999")), "value")[0] == ("1e999",)


def test_queries_of_several_samples_have_no_throughput(tmp_path: Path) -> None:
    text = (LOGS / "singlestream.txt").read_text(encoding="utf-8")
    several = text.replace('samples_per_query", "value": 1', 'samples_per_query", "value": 8')
    assert select(read(tmp_path, several), "metric", "batch_size")[0] == ("latency of a batch", "")


def test_training_log_gives_the_exact_time_between_its_lines(tmp_path: Path) -> None:
    [row] = read(tmp_path, TRAINING).figures
    assert {name: text for name, text in row.items() if text} == {
        "model": "ResNet-50 v1.5",
        "task": "training",
        "batch_size": "64",
        "metric": "time to train",
        "unit": "s",
        "value": "100.233",
        "conditions": "log = MLPerf Training; runs = 1; seed = 7",
        "place": "file.txt, run_stop.time_ms minus run_start.time_ms",
    }


@given(st.text())
def test_conditions_of_adapters_are_pairs(text: str) -> None:
    pairs = format_conditions({"suspect": text, "latency": "2 of 5 blocks disturbed: drift"})
    assert pairs.endswith("latency = 2 of 5 blocks disturbed")
    pattern = load_table("lines", "submission").column("conditions").pattern
    assert pattern
    assert re.fullmatch(pattern, pairs)


def test_template_keeps_figures_as_printed(tmp_path: Path) -> None:
    result = read(tmp_path, TEMPLATE)
    assert select(result, "model", "batch_size", "value", "place") == [
        ("my network", "4", "1,234.50", "file.txt, line 2: table 3"),
        ("my network", "4", "0.5", "file.txt, line 3"),
    ]


def list_examples(page: Path) -> list[str]:
    """Return the CSV blocks of a page."""
    blocks = page.read_text(encoding="utf-8").split("```csv\n")[1:]
    return [block.split("```")[0] for block in blocks]


def test_page_of_the_forms_lists_each_with_an_example(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in (*FILES, *COLUMNS))
    [example] = list_examples(PAGE)
    assert select(read(tmp_path, example), "metric", "value") == [
        ("throughput", "7800.5"),
        ("latency of a batch", "0.51"),
    ]


def test_figures_of_every_recipe_are_accepted(tmp_path: Path, check: Check) -> None:
    examples = list_examples(RECIPES)
    assert len(examples) == 9
    rows = []
    words = set()
    for example in examples:
        for row in read(tmp_path, example).figures:
            rows.append(row)
            words.update(row[name] for name in NAMED if row[name])
    files = make_files(rows, description={"new_words": sorted(words)})
    assert list(check(put_folder(tmp_path / "bundle", files)).faults) == []


NUMBERS = ("NaN", "-1", "1e400", "null", "[]", "9" * 400, "١")
TOKENS = (*NUMBERS, '"', "{", "}", ",", ":", "|", "\n", "\r", "\0", "\ud800", "")


@pytest.mark.parametrize("name", FILES)
@settings(max_examples=25)
@given(data=st.data())
def test_mutated_file_is_read_exactly_or_refused(name: str, data: st.DataObject) -> None:
    text = FILES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        last = data.draw(st.sampled_from([min(start + 30, len(text)), len(text)]))
        end = data.draw(st.integers(start, last))
        token = data.draw(st.one_of(st.sampled_from(TOKENS), st.text(max_size=5)))
        text = text[:start] + token + text[end:]
    with TemporaryDirectory() as folder:
        try:
            result = read(Path(folder), text.encode("utf-8", "surrogatepass"))
        except SubmissionError:
            return
    assert result.figures
    is_written_out = any("written out" in remark for remark in result.remarks)
    if name != "mlperf-training-log" and not is_written_out:
        assert all(figure["value"] in text for figure in result.figures)


@pytest.mark.parametrize(("name", "how"), [("NAME", "idle"), ("Ada", "TEXT")])
def test_placeholder_of_a_printed_command_is_not_handed_in(name: str, how: str) -> None:
    request = SubmissionRequest([LOGS / "server.txt"], name, "CC-BY-4.0", how)
    with pytest.raises(SubmissionError, match="is what a printed command leaves to you"):
        prepare_bundle(request)


def test_folder_without_a_run_is_refused() -> None:
    with pytest.raises(SubmissionError, match="name the files to read"):
        prepare_bundle(SubmissionRequest([LOGS], "Ada", "CC-BY-4.0", "idle"))
