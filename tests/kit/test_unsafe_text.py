"""What a document or a query can make a terminal or a spreadsheet do: nothing."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.kit.text import (
    escape_unprintable,
    find_lookalike,
    format_csv,
    format_json,
    get_skeleton,
    mark_formula,
    unmark_formula,
)
from ipu_results.record.store import files
from ipu_results.record.store.tables import count_formulas, read_csv, write_csv

from tests.cases import every_case
from tests.conftest import run_cli

CLEAR, TITLE, CSI, OVERRIDE = "\x1b[2J", "\x1b]0;x\x07", "\x9b2J", "\u202e"
UNSAFE = (CLEAR, TITLE, CSI, OVERRIDE, "\x00", "\x7f", "\r")


@pytest.mark.parametrize("output", ["table", "csv", "json"])
def test_query_prints_no_control_characters(output: str, warehouse: Path) -> None:
    unsafe = "".join(UNSAFE)
    value = " || ".join(f"chr({ord(char)})" for char in unsafe)
    sql = f'SELECT {value} AS "a{CLEAR}"'
    done = run_cli("query", sql, "--format", output, "--warehouse", warehouse)
    assert done.returncode == 0
    assert escape_unprintable(done.stdout, keep="\n") == done.stdout
    if output == "json":
        assert json.loads(done.stdout) == [{f"a{CLEAR}": unsafe}]
    else:
        assert r"\x1b[2J" in done.stdout


@pytest.mark.parametrize("output", ["csv", "json"])
def test_extract_prints_no_control_characters(output: str, tmp_path: Path) -> None:
    (tmp_path / f"{CLEAR}a.txt").write_text(
        "Model | Variant | Platform | SDK Version | Framework | Dataset | Precision | Throughput\n"
        f"ResNet{CLEAR}{CSI} | =cmd | -5 | 1 | 2 | 3 | 4{OVERRIDE} | 5\n{CLEAR} | x\n",
        encoding="utf-8",
    )
    done = run_cli("extract", tmp_path / f"{CLEAR}a.txt", "--format", output)
    text = done.stdout + done.stderr
    assert r"1b[2J" in text
    assert escape_unprintable(text, keep="\n") == text


@pytest.mark.parametrize(
    "command",
    [
        f"query SELECT --warehouse {CLEAR}",
        f"query SELECT --{CLEAR}",
        f"query SELECT {CLEAR}",
        CLEAR,
        f"--{CLEAR}",
        f"claims {CLEAR}",
        f"diff {CLEAR} .",
        f"verify {CLEAR}",
    ],
)
def test_error_messages_print_no_control_characters(command: str) -> None:
    done = run_cli(*command.split(" "))
    text = done.stdout + done.stderr
    assert done.returncode in (1, 2)
    assert "1b[2J" in done.stderr
    assert escape_unprintable(text, keep="\n") == text


@every_case(__file__, "formulas")
def test_formula_has_an_apostrophe_in_csv(text: str) -> None:
    [[cell]] = csv.reader(io.StringIO(format_csv([[text]]), newline=""))
    assert cell == "'" + escape_unprintable(text, keep="\t")
    assert unmark_formula(mark_formula(text)) == text


@every_case(__file__, "harmless")
def test_figure_and_harmless_text_are_unchanged_in_csv(text: str) -> None:
    assert mark_formula(text) == text == unmark_formula(text)


def test_query_decides_by_the_type_of_the_column(warehouse: Path) -> None:
    sql = (
        "SELECT '=1+1' AS \"=a\", -1.5 AS b, -2 AS c, '-2' AS d, '-2+3' AS e, DATE '2020-01-01'"
        " AS f"
    )
    done = run_cli("query", sql, "--format", "csv", "--warehouse", warehouse)
    assert done.stdout == "'=a,b,c,d,e,f\n'=1+1,-1.5,-2,-2,'-2+3,2020-01-01\n"
    done = run_cli("query", sql, "--format", "json", "--warehouse", warehouse)
    assert json.loads(done.stdout)[0]["=a"] == "=1+1"


TEXTS = st.text(alphabet="'=+-@\t\r\n,\"a1.e", max_size=5)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9999, 9999)
COLUMNS = {"text": pa.string(), "figure": pa.float64(), "key": pa.int64()}


@given(st.lists(st.tuples(st.none() | TEXTS, st.none() | NUMBERS), max_size=6))
def test_released_csv_gives_every_value_back(values: list[tuple[str | None, float | None]]) -> None:
    records = []
    marked = 0
    for key, (text, figure) in enumerate(values):
        records.append({"text": text, "figure": figure, "key": key})
        marked += text is not None and mark_formula(text) != text
    rows = pa.Table.from_pylist(records, pa.schema(COLUMNS))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        write_csv(rows, path)
        assert read_csv(path, rows.schema).equals(rows)
        _, *printed = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
    for record, (text, figure, key) in zip(records, printed, strict=True):
        assert text == mark_formula(record["text"] or "")
        assert record["figure"] is None or float(figure) == record["figure"]
        assert figure == "" or re.search(r"[.e]", figure)
        assert key == str(record["key"])
    assert count_formulas(rows) == marked


@pytest.mark.parametrize("rows_at_once", [2, 10_000])
def test_csv_of_many_rows_is_that_of_a_few_at_once(
    rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_ROWS", rows_at_once)
    rows = pa.table({"a": ["x", None, "=1", "", "\n"], "b": [1.0, 2.5, None, 4.0, 5.0]})
    written = io.BytesIO()
    write_csv(rows, written)
    assert written.getvalue() == b'"a","b"\n"x",1.0\n,2.5\n"\'=1",\n"",4.0\n"\n",5.0\n'


def test_json_is_unchanged_but_for_escapes() -> None:
    value: dict[str, Any] = {"a": [UNSAFE, "Größe\u00a0é", "\udcff"]}
    assert json.loads(format_json(value)) == {"a": [list(UNSAFE), "Größe\u00a0é", "\udcff"]}
    format_json(value).encode()


@every_case(__file__, "lookalikes")
def test_letter_of_another_script_in_a_latin_name_is_found(text: str) -> None:
    assert find_lookalike(text) in re.findall(r"[^\x00-\x7fü]", text)


@every_case(__file__, "honest")
def test_other_scripts_and_units_are_accepted(text: str) -> None:
    assert find_lookalike(text) is None


@every_case(__file__, "skeletons")
def test_names_that_look_alike_have_one_skeleton(name: str, other: str) -> None:
    assert get_skeleton(name) == get_skeleton(other) != get_skeleton("Ada")
