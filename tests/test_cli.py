"""The commands as a user meets them."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import pytest
from conftest import PAGE, RAW, ROOT, run_cli, run_process
from ipu_results._util.sql import run_query
from ipu_results.cli import main
from ipu_results.errors import QueryError
from ipu_results.schema import TABLES
from ipu_results.store.query import open_warehouse

COMMANDS = sorted(main.commands)
SHARED = ROOT.parent / "shared" / "sources"


def test_the_commands_are_those_of_the_contract() -> None:
    assert COMMANDS == [
        "analyse",
        "claims",
        "diff",
        "extract",
        "fetch",
        "ingest",
        "mlperf",
        "predict",
        "publish",
        "query",
        "sweep",
        "validate-emulator",
        "verify",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = run_cli(command, "--help")
    assert done.returncode == 0
    assert f"  ipu-results {command} " in done.stdout
    assert "Example:" in done.stdout
    assert "--debug" in done.stdout
    options = [param for param in main.commands[command].params if param.param_type_name == "option"]
    assert [option.opts for option in options if option.opts[0] not in done.stdout] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_stands_in_the_readme(command: str) -> None:
    assert f"ipu-results {command}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_help_waits_for_no_library() -> None:
    """A command imports what it needs when it is called."""
    asked = (
        "import sys, ipu_results.cli; print([name for name in ('pandas', 'duckdb', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[]\n"


def test_the_console_script_is_the_module() -> None:
    script = Path(sys.executable).parent / "ipu-results"
    if not script.exists():
        pytest.skip("not installed as a script")
    shown = subprocess.run([script, "--help"], capture_output=True, text=True, check=True).stdout
    assert shown == run_process("--help").stdout


@pytest.mark.parametrize(
    "args",
    [
        ["nonsense"],
        ["query"],
        ["query", "SELECT 1", "--format", "xml"],
        ["extract", PAGE, "--max-size", "nan"],
        ["extract", PAGE, "--max-size", "-1"],
        ["ingest", "--wait", "-1"],
        ["extract", PAGE, "--kind", "novel"],
        ["ingest", "--max-pages", "many"],
        ["fetch", "no-such-document"],
    ],
)
def test_wrong_usage_is_exit_2(args: list[str]) -> None:
    done = run_cli(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_missing_raw_folder_is_one_line(tmp_path: Path) -> None:
    done = run_cli("ingest", "--raw", tmp_path / "nothing", "--warehouse", tmp_path / "warehouse")
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path / 'nothing'}: no such folder\n"


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = run_process("ingest", "--debug", "--raw", tmp_path / "nothing", "--warehouse", tmp_path / "warehouse")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "CatalogueError" in done.stderr


def test_ingest_ends_with_a_table_per_document(tmp_path: Path) -> None:
    done = run_cli("ingest", "--raw", RAW, "--warehouse", tmp_path / "warehouse")
    lines = done.stdout.splitlines()
    assert lines[0].split() == (
        ["document", "extracted", "accepted", "quarantined", "duplicate", "results", "error", "warn", "info", "s"]
    )
    page = next(line for line in lines if line.split()[:1] == ["graphcore-performance-2023-07-04"])
    assert page.split()[1:6] == ["248", "248", "0", "0", "248"]
    assert lines[-2].split()[:6] == ["total", "4126", "4126", "0", "0", "816"]
    assert lines[-1].startswith("816 results in ")
    assert done.stderr == ""


# query


def test_query_prints_a_table_csv_and_json(warehouse: Path) -> None:
    sql = "SELECT model, throughput, variant FROM results WHERE table_name = 'ogb_lsc' ORDER BY row_number"
    table = run_cli("query", "--warehouse", warehouse, sql)
    assert [line.split() for line in table.stdout.splitlines()[2:]] == [
        ["GPS++", "17800", "NULL"],
        ["TransE", "(256)", "1260000", "NULL"],
    ]
    assert table.stderr == "2 rows\n"
    rows = list(csv.reader(io.StringIO(run_cli("query", "--warehouse", warehouse, "--format", "csv", sql).stdout)))
    assert rows == [["model", "throughput", "variant"], ["GPS++", "17800.0", ""], ["TransE (256)", "1260000.0", ""]]
    as_json = run_cli("query", "--warehouse", warehouse, "--format", "json", sql)
    assert json.loads(as_json.stdout) == [
        {"model": "GPS++", "throughput": 17800.0, "variant": None},
        {"model": "TransE (256)", "throughput": 1260000.0, "variant": None},
    ]
    assert as_json.stderr == ""


def test_json_holds_dates_and_what_json_cannot_hold(warehouse: Path) -> None:
    sql = "SELECT DATE '2023-07-04' AS d, 'nan'::DOUBLE AS n, 'infinity'::DOUBLE AS i, true AS b, [1, 2] AS l"
    done = run_cli("query", "--warehouse", warehouse, "--format", "json", sql)
    assert json.loads(done.stdout) == [{"d": "2023-07-04", "n": None, "i": None, "b": True, "l": [1, 2]}]


def test_json_keeps_numbers_numbers_and_lists_lists(warehouse: Path) -> None:
    what = "sum(batch_size) AS s, 1.5 AS d, list(published_on ORDER BY 1) AS l, '\\x01'::BLOB AS b"
    sql = f"SELECT {what} FROM results WHERE document_id = 'graphcore-performance-2023-07-04' AND model = 'DINO'"
    (row,) = json.loads(run_cli("query", "--warehouse", warehouse, "--format", "json", sql).stdout)
    assert (row["s"], row["d"], row["b"]) == (6400, 1.5, "01")
    assert row["l"] == ["2023-07-04"] * 2


def test_two_columns_of_one_name_are_refused(warehouse: Path) -> None:
    done = run_cli("query", "--warehouse", warehouse, "SELECT 1 AS a, 2 AS a")
    assert done.returncode == 1
    assert done.stderr == "error: two columns are called a; name one of them with AS\n"


def test_query_of_no_rows_is_still_a_table(warehouse: Path) -> None:
    sql = "SELECT model FROM results WHERE false"
    assert run_cli("query", "--warehouse", warehouse, sql).stdout.strip().startswith("model")
    assert json.loads(run_cli("query", "--warehouse", warehouse, "--format", "json", sql).stdout) == []
    assert run_cli("query", "--warehouse", warehouse, "--format", "csv", sql).stdout == "model\n"


def test_markup_in_data_is_shown_as_it_is(warehouse: Path) -> None:
    done = run_cli("query", "--warehouse", warehouse, "SELECT '[bold]x[/bold]' AS a")
    assert "[bold]x[/bold]" in done.stdout


Opened = tuple[Path, duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module")
def opened(warehouse: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Opened]]:
    """The warehouse with its DuckDB file and without, each opened once."""
    parquet = only_parquet(warehouse, tmp_path_factory.mktemp("parquet"))
    with open_warehouse(warehouse) as whole, open_warehouse(parquet) as bare:
        yield {"the DuckDB file": (warehouse, whole), "the Parquet files": (parquet, bare)}


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM results",
        "UPDATE results SET throughput = 1",
        "INSERT INTO build VALUES ('a', 1, 'b', 'c')",
        "CREATE TABLE mine (a INTEGER)",
        "CREATE TEMP TABLE mine (a INTEGER)",
        "DROP VIEW inference",
        "ATTACH 'other.duckdb'",
        "COPY results TO 'stolen.csv'",
        "SET threads = 1",
        "PRAGMA database_list",
        "INSTALL httpfs",
        "EXPORT DATABASE 'elsewhere'",
        "SELECT 1; DROP TABLE flags",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "EXPLAIN ANALYZE DELETE FROM flags",
    ],
)
@pytest.mark.parametrize("place", ["the DuckDB file", "the Parquet files"])
def test_query_refuses_to_write_and_to_leave_the_warehouse(opened: Mapping[str, Opened], sql: str, place: str) -> None:
    folder, connection = opened[place]
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(QueryError):
        run_query(connection, sql)
    assert run_query(connection, "SELECT count(*) AS n FROM flags").to_pylist()[0]["n"] > 400
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_wrong_sql_is_one_line(warehouse: Path) -> None:
    for sql in ("SELEC 1", "SELECT nonsense FROM results", "", "SELECT 1 / 'a'"):
        done = run_cli("query", "--warehouse", warehouse, sql)
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")
        assert len(done.stderr.splitlines()) == 1


def only_parquet(warehouse: Path, folder: Path) -> Path:
    """The warehouse as a clone has it: Parquet files, nothing built."""
    target = folder / "parquet-only"
    target.mkdir()
    for path in warehouse.glob("*.parquet"):
        (target / path.name).write_bytes(path.read_bytes())
    return target


def test_query_works_from_the_committed_parquet_files(warehouse: Path, tmp_path: Path) -> None:
    sql = "SELECT rule, count(*) AS n FROM flags JOIN inference USING (result_id) GROUP BY 1 ORDER BY 1"
    both = [
        run_cli("query", "--warehouse", place, sql).stdout for place in (warehouse, only_parquet(warehouse, tmp_path))
    ]
    assert both[0] == both[1]
    assert "R01" in both[0]
    assert sorted(path.suffix for path in (tmp_path / "parquet-only").iterdir()) == [".parquet"] * len(TABLES)


def test_query_without_a_warehouse_says_how_to_build_it(tmp_path: Path) -> None:
    done = run_cli("query", "--warehouse", tmp_path / "none", "SELECT 1")
    assert done.returncode == 1
    assert "ipu-results ingest" in done.stderr
    assert not (tmp_path / "none").exists()


def test_a_closed_pipe_is_no_error(warehouse: Path) -> None:
    command = f"{sys.executable} -m ipu_results query --warehouse {warehouse} 'SELECT * FROM cells' | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False)
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr


# extract


def test_extract_prints_the_tables_of_the_page_as_json() -> None:
    done = run_cli("extract", RAW / PAGE, "--format", "json")
    assert done.returncode == 0
    tables = json.loads(done.stdout)
    assert [(table["table_name"], len(table["rows"])) for table in tables] == [
        ("ogb_lsc", 2),
        ("bow_training", 64),
        ("bow_inference", 37),
        ("mlperf_v2_training", 11),
        ("pod_training", 62),
        ("pod_time_to_result", 1),
        ("pod_inference", 71),
    ]
    assert all(set(table) == {"table_name", "columns", "rows"} for table in tables)
    assert tables[5]["rows"] == [
        ["MCMC TFP", "", "IPU-M2000", "SDK 2.4.0", "TensorFlow1", "Proprietary", "", "32.32", "49"]
    ]


def test_extract_prints_each_table_as_csv_with_its_name() -> None:
    done = run_cli("extract", RAW / "qwant/resnext101-c2-2020-02-28.pdf")
    assert done.returncode == 0
    blocks = [list(csv.reader(io.StringIO(block))) for block in done.stdout.strip().split("\n\n")]
    assert [block[0] for block in blocks] == [
        ["table_name", "Batch size", "Latency"],
        ["table_name", "Batch size", "Throughput"],
        ["table_name", "Batch size", "Energy efficiency"],
    ]
    assert blocks[2][1:] == [
        ["qwant_table_3", batch, figure]
        for batch, figure in zip(
            ["2", "4", "6", "8", "10", "12"], ["6.51", "7.80", "7.87", "9.07", "9.68", "9.49"], strict=True
        )
    ]


def test_extract_reads_our_csv_documents_too() -> None:
    done = run_cli("extract", RAW / "graphcore/performance-2022-03.csv", "--format", "json")
    assert [len(table["rows"]) for table in json.loads(done.stdout)] == [17]


@pytest.mark.skipif(not SHARED.exists(), reason="the source texts are not here")
def test_extract_reads_the_source_texts_as_they_are() -> None:
    page = run_cli("extract", SHARED / "graphcore-performance-results-2023-07-04.txt", "--format", "json")
    ours = run_cli("extract", RAW / PAGE, "--format", "json")
    assert page.returncode == 0
    assert page.stderr == ""
    assert json.loads(page.stdout) == json.loads(ours.stdout)
    paper = run_cli("extract", SHARED / "qwant-c2-report-arxiv-2002.11670.txt", "--format", "json")
    assert paper.returncode == 0
    tables = {table["table_name"]: table["rows"] for table in json.loads(paper.stdout)}
    assert tables["qwant_table_1"][-1] == ["12", "4.75"]
    assert tables["qwant_table_2"][0] == ["2", "1474.16"]
    assert tables["qwant_table_3"][-3:] == [["8", "9.07"], ["", "9.68"], ["", "9.49"]]


def test_extract_prints_what_it_could_read_and_names_what_not(tmp_path: Path) -> None:
    text = (RAW / PAGE).read_text(encoding="utf-8")
    broken = tmp_path / "page.html"
    broken.write_text(text.replace("<td>Wikipedia</td><td>54,784</td>", "<td>54,784</td>", 1), encoding="utf-8")
    done = run_cli("extract", broken, "--format", "json")
    assert done.returncode == 1
    assert [len(table["rows"]) for table in json.loads(done.stdout)] == [2, 63, 37, 11, 62, 1, 71]
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "error: page.html: table 2, row 1, bow_training, row 1: 8 cells under a header of 9 (row-width)"
    )


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("empty.html", b"", "is empty"),
        ("blank.txt", b" \n\n", "is empty"),
        ("noise.txt", bytes(range(256)) * 100, "not text"),
        ("error.pdf", b"<html><body>404</body></html>", "not a PDF but an HTML page"),
        ("page.html", b"<html><body><p>404</p></body></html>", "no table with a known header"),
        ("prose.txt", b"nothing to see here\n", "is none of"),
        ("cut.html", b"<html><table><tr><td>Model</td><td>Var", "truncated"),
        ("cut.pdf", b"%PDF-1.7\n1 0 obj\n<<", "cut.pdf"),
    ],
)
def test_a_document_that_cannot_be_read_is_one_clear_line(tmp_path: Path, name: str, content: bytes, word: str) -> None:
    (tmp_path / name).write_bytes(content)
    done = run_cli("extract", tmp_path / name)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {name}: ")
    assert len(done.stderr.splitlines()) == 1
    assert word in done.stderr


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = run_cli("extract", tmp_path / "none.html")
    assert done.returncode == 1
    assert done.stderr == "error: none.html: cannot be read: No such file or directory\n"


def test_an_endless_file_is_refused_at_the_limit() -> None:
    done = run_cli("extract", "/dev/zero", "--max-size", "1")
    assert done.returncode == 1
    assert "the limit is 1,000,000 bytes" in done.stderr


@pytest.mark.skipif(not SHARED.exists(), reason="the source texts are not here")
def test_a_line_lost_from_the_paper_is_never_a_wrong_figure(tmp_path: Path) -> None:
    """Each line of the three tables in turn: the other tables of the sweep give a shifted one away."""
    lines = (SHARED / "qwant-c2-report-arxiv-2002.11670.txt").read_text(encoding="utf-8").split("\n")
    whole = {name: set(map(tuple, rows)) for name, rows in paper_rows(tmp_path, lines).items()}
    for number in [i for i, line in enumerate(lines) if re.fullmatch(r"\s?\d+(\.\d\d)?", line)]:
        for name, rows in paper_rows(tmp_path, lines[:number] + lines[number + 1 :]).items():
            wrong = {(batch, figure) for batch, figure in map(tuple, rows) if batch} - whole[name]
            assert wrong == set(), f"line {number + 1}, {name}"


def paper_rows(folder: Path, lines: list[str]) -> dict[str, list[list[str]]]:
    path = folder / "paper.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    tables = json.loads(run_cli("extract", path, "--format", "json").stdout or "[]")
    return {table["table_name"]: table["rows"] for table in tables}


def test_a_document_over_the_limit_is_refused() -> None:
    done = run_cli("extract", RAW / PAGE, "--max-size", "0.01")
    assert done.returncode == 1
    assert "the limit is 10,000" in done.stderr
