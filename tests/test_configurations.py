"""The public configurations in the warehouse: from a figure to its command, and every way of pairing them wrongly."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import PAGE, PAGE_ID, PAPER, PAPER_ID, RAW, Ask, copy_documents, edit, reseal, run_cli
from ipu_results._util.sql import run_query
from ipu_results.schema import table
from ipu_results.store.query import open_warehouse

FILE = "graphcore/public-configurations.csv"
ID = "graphcore-public-configurations"
FACTS = RAW.parent.parent / "shared" / "facts" / "public_configs.csv"
TABLES = {
    "bow_inference": 37,
    "bow_training": 64,
    "mlperf_v2_training": 11,
    "pod_inference": 71,
    "pod_time_to_result": 1,
    "pod_training": 62,
}
FILLED = 176
DATA_FLAGS = [("exact", 42), ("likely", 11)]


def carried() -> list[dict[str, str]]:
    with (RAW / FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_figure_leads_to_the_command_that_made_it(ask: Ask) -> None:
    columns = "c.tag, c.path, c.benchmark, c.replicas, c.data_fed, c.latency_definition, c.match_confidence"
    sql = f"SELECT {columns} FROM results JOIN configurations c USING (result_id) WHERE throughput = 4354"
    assert ask(sql) == [
        (
            *("v3.1.0", "speech/fastspeech2/tensorflow2/benchmarks.yml", "tf2_fastspeech2_fp16_infer_gen_pod4", 4),
            *("generated", "per item of one instance: 1 / throughput of that instance", "exact"),
        )
    ]


def test_every_row_of_six_tables_has_a_line_and_235_a_configuration(ask: Ask) -> None:
    assert dict(ask("SELECT result_table, count(*) FROM configurations GROUP BY ALL")) == TABLES
    assert ask("SELECT count(*), count(result_id), count(path) FROM configurations") == [(246, 246, 235)]
    without = "SELECT result_table, list(result_row ORDER BY result_row) FROM configurations WHERE path IS NULL"
    assert ask(f"{without} GROUP BY 1 ORDER BY 1") == [
        ("mlperf_v2_training", [5, 6, 7, 8, 9, 10, 11]),
        ("pod_training", [30, 31, 32, 33]),
    ]
    unexplained = "SELECT count(*) FROM configurations WHERE path IS NULL AND note IS NULL"
    assert ask(unexplained) == [(0,)]
    elsewhere = "result_document <> r.document_id OR result_table <> r.table_name OR result_row <> r.row_number"
    assert ask(f"SELECT count(*) FROM configurations JOIN results r USING (result_id) WHERE {elsewhere}") == [(0,)]


def test_what_a_configuration_says_is_in_the_table_as_it_is_carried(ask: Ask) -> None:
    names = [name for name in carried()[0] if name not in ("batch_agrees", "dataset_agrees")]
    stored = ask(f"SELECT {', '.join(names)} FROM configurations")
    told = {tuple("" if value is None else str(value) for value in row) for row in stored}
    assert told == {tuple(line[name] for name in names) for line in carried()}
    assert len(told) == 246


@pytest.mark.skipif(not FACTS.exists(), reason="the facts are not on this machine")
def test_the_figures_are_those_of_the_facts() -> None:
    same = ("tag", "path", "benchmark", "micro_batch_size", "replicas", "gradient_accumulation", "instances")
    more = ("global_batch_from_config", "data_fed", "precision_flags", "match_confidence")
    said = {"yes": "True", "no": "False", "unknown": ""}
    with FACTS.open(encoding="utf-8", newline="") as file:
        for line, ours in zip(csv.DictReader(file), carried(), strict=True):
            assert (ours["result_table"], ours["result_row"]) == (line["table"], line["row"])
            assert [ours[name] for name in (*same, *more)] == [line[name] for name in (*same, *more)]
            assert [ours[name] for name in ("batch_agrees", "dataset_agrees")] == [
                said[line[name]] for name in ("batch_agrees", "dataset_agrees")
            ]


def test_a_micro_batch_comes_from_exact_matches_with_the_printed_batch_alone(ask: Ask) -> None:
    sure = "c.match_confidence = 'exact' AND c.batch_agrees AND c.micro_batch_size IS NOT NULL"
    filled = f"SELECT count(*) FROM results r JOIN configurations c USING (result_id) WHERE document_id = '{PAGE_ID}'"
    filled = filled.replace("document_id", "r.document_id")
    assert ask(f"{filled} AND r.micro_batch_size IS NOT NULL AND NOT ({sure})") == [(0,)]
    assert ask(f"{filled} AND r.micro_batch_size IS DISTINCT FROM c.micro_batch_size AND {sure}") == [(0,)]
    product = "r.micro_batch_size * c.replicas * coalesce(c.gradient_accumulation, 1)"
    assert ask(f"{filled} AND r.micro_batch_size IS NOT NULL AND {product} <> r.batch_size") == [(0,)]
    assert ask(f"{filled} AND r.micro_batch_size IS NOT NULL") == [(FILLED,)]


def test_cells_lead_to_the_line_that_says_so(ask: Ask) -> None:
    lines = (RAW / FILE).read_text(encoding="utf-8").splitlines()
    header = next(csv.reader(lines[:1]))
    cells = ask(
        f"SELECT column_name, raw_text, value, unit, factor, locator, micro_batch_size, latency_basis "
        f"FROM cells c JOIN results r USING (result_id) WHERE c.document_id = '{ID}'"
    )
    for column, text, value, unit, factor, locator, micro, basis in cells:
        line, place = str(locator).removeprefix("line ").split(", column ")
        number, name = place.removesuffix(")").split(" (")
        assert next(csv.reader([lines[int(line) - 1]]))[int(number) - 1] == text
        assert header[int(number) - 1] == name
        if column == "micro_batch_size":
            assert (value, unit, factor) == (micro, "item", 1.0)
        else:
            assert (column, name, value, basis in table("configurations").choices("latency_basis")) == (
                "latency_basis",
                "latency_definition",
                None,
                True,
            )
    told = [row[0] for row in cells]
    assert (told.count("micro_batch_size"), told.count("latency_basis")) == (FILLED, 104)


def test_what_the_printed_latencies_time(ask: Ask) -> None:
    bases = f"SELECT latency_basis, count(*) FROM results WHERE document_id = '{PAGE_ID}' AND latency_ms IS NOT NULL"
    assert ask(f"{bases} GROUP BY 1 ORDER BY 1") == [("per-batch", 46), ("per-item", 9), ("several-in-flight", 49)]
    models = "SELECT DISTINCT regexp_replace(model, '-D.$', '') FROM results"
    assert ask(f"{models} WHERE latency_basis = 'per-item' ORDER BY 1") == [("EfficientDet",), ("FastSpeech2",)]
    assert ask("SELECT count(*) FROM results WHERE latency_basis IS NOT NULL AND latency_ms IS NULL") == [(0,)]
    silent = "SELECT DISTINCT model FROM results JOIN configurations USING (result_id)"
    assert ask(f"{silent} WHERE latency_definition LIKE 'none%'") == [("UNet (Medical)",)]


def test_several_in_flight_are_seen_in_the_figures_too(ask: Ask) -> None:
    """The basis comes from the configuration alone; throughput × latency agrees with it."""
    depth = "throughput * latency_ms / 1000 / batch_size"
    for basis, low, high in (("several-in-flight", 1.7, 5.2), ("per-item", 0.06, 1.05)):
        sql = f"SELECT min({depth}) > {low}, max({depth}) < {high} FROM results WHERE latency_basis = '{basis}'"
        assert ask(sql) == [(True, True)]


def test_rules_13_and_15_on_the_page(ask: Ask) -> None:
    told = "SELECT c.match_confidence, count(*) FROM flags JOIN configurations c USING (result_id)"
    assert ask(f"{told} WHERE rule = 'R13' AND severity = 'warn' GROUP BY 1") == [("likely", 22)]
    assert ask(f"{told} WHERE rule = 'R15' AND severity = 'info' GROUP BY 1 ORDER BY 1") == DATA_FLAGS
    rows = "SELECT model, batch_size, suggested FROM flags JOIN results USING (result_id) WHERE rule = 'R13'"
    found = ask(rows)
    assert {("CLIP", 795, "690"), ("DINO", 3200, "256"), ("Yolo v4", 4, "8"), ("GPT2", 4, "8")} <= set(found)
    right = {"Swin-Large (224)", "EfficientNet-B0"} | {("ResNet-50 v1.5", 360)}
    assert right.isdisjoint({model for model, *_ in found} | {row[:2] for row in found})


def test_a_printed_latency_per_item_is_a_fact_with_a_source(ask: Ask) -> None:
    told = ask("SELECT count(*), count(*) FILTER (message LIKE '%, as the script of %') FROM flags WHERE rule = 'R01'")
    assert told == [(6, 6)]


def test_no_published_row_is_beyond_its_machine(ask: Ask) -> None:
    assert ask("SELECT count(*) FROM flags WHERE rule IN ('R21', 'R22')") == [(0,)]


# wrong pairs


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return copy_documents(tmp_path / "raw", PAGE, PAPER, FILE)


def ingest(raw: Path) -> str:
    """The one line with which an ingest of these documents fails."""
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert done.returncode == 1, done.stdout
    assert not (target / "results.parquet").exists()
    [line] = done.stderr.splitlines()
    return line


def change(table: str, row: int, **told: str) -> Callable[[Path], None]:
    """Other texts in the line of one row."""

    def changed(raw: Path) -> None:
        lines = carried()
        [line] = [one for one in lines if (one["result_table"], one["result_row"]) == (table, str(row))]
        line.update(told)
        rewrite(raw, lines)

    return changed


def rewrite(raw: Path, lines: list[dict[str, str]]) -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    (raw / FILE).write_text(out.getvalue(), encoding="utf-8")
    reseal(raw, FILE)


def swap(raw: Path) -> None:
    """Two configurations change places: batch 4 and batch 256 of ResNet-50."""
    lines = carried()
    one, other = (at for at, line in enumerate(lines) if (line["result_table"], line["result_row"]) in SWAPPED)
    for name in ("result_table", "result_row"):
        lines[one][name], lines[other][name] = lines[other][name], lines[one][name]
    rewrite(raw, lines)


def without(name: str) -> Callable[[Path], None]:
    return lambda raw: rewrite(raw, [{key: text for key, text in line.items() if key != name} for line in carried()])


def truncate(raw: Path) -> None:
    text = (raw / FILE).read_text(encoding="utf-8")
    (raw / FILE).write_text(text[:-40], encoding="utf-8")
    reseal(raw, FILE)


SWAPPED = {("bow_inference", "11"), ("bow_inference", "12")}


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (without("tag"), "lacks 'tag'"),
        (without("note"), "lacks 'note'"),
        (swap, "line 76: graphcore-performance-2023-07-04 bow_inference 12: batch_agrees is True, with 4 here and 256"),
        (truncate, "does not end with a line break"),
        (lambda raw: rewrite(raw, carried()[:-1]), "has 245 rows, the sidecar promises 246"),
        (change("bow_training", 64, result_row="65"), "bow_training 65: there is no such row"),
        (change("bow_training", 64, result_row=""), "there is no such row"),
        (change("bow_training", 64, result_table="bow_training_history"), "there is no such row"),
        (change("bow_training", 64, result_document="no-such-page"), "no-such-page bow_training 64: there is no such"),
        (change("bow_training", 64, result_row="63"), "configurations, row"),
        (change("bow_training", 1, result_row="2"), "batch_agrees is True, with 54784 here and 65280 printed"),
        (change("bow_training", 37, result_row="38"), "configurations, row"),
        (change("bow_training", 64, micro_batch_size="64"), "64 × 1 × 15 is not 690"),
        (change("bow_training", 64, batch_agrees="True"), "batch_agrees is True, with 690 here and 795 printed"),
        (change("bow_training", 64, batch_agrees=""), "batch_agrees is None, with 690"),
        (change("bow_training", 64, batch_agrees="no"), "'no' is no boolean"),
        (change("bow_training", 64, micro_batch_size="46.0"), "column 8 (micro_batch_size): '46.0' is no integer"),
        (change("bow_training", 64, tag=""), "bow_training 64: lacks tag"),
        (change("bow_training", 64, match_confidence=""), "lacks match_confidence"),
        (change("pod_training", 30, data_fed="generated"), "lacks repository, tag, path, benchmark, match_confidence"),
        (change("bow_training", 64, match_confidence="sure"), "match_confidence is 'sure'"),
        (change("bow_training", 64, tag="3.3"), "tag is '3.3'"),
        (
            change("bow_inference", 35, latency_definition="per batch"),
            "no known way of computing a latency: 'per batch'",
        ),
        (lambda raw: edit(raw, FILE, "result_row,", "row,"), "the header lacks 'result_row' and has unknown 'row'"),
    ],
)
def test_a_wrong_pair_stops_the_build(raw: Path, changed: Callable[[Path], None], word: str) -> None:
    changed(raw)
    line = ingest(raw)
    assert line.startswith(f"error: {ID}: ")
    assert word in line


def test_columns_in_another_order_and_spelling_say_the_same(raw: Path, warehouse: Path) -> None:
    lines = [dict(reversed(line.items())) for line in carried()]
    renamed = [{name.replace("_", " ").title(): text for name, text in line.items()} for line in lines]
    rewrite(raw, renamed)
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert (done.returncode, done.stderr) == (0, "")
    table = "SELECT * FROM configurations ORDER BY result_table, result_row"
    with open_warehouse(target) as ours, open_warehouse(warehouse) as theirs:
        assert run_query(ours, table).equals(run_query(theirs, table))


def test_the_configuration_of_a_quarantined_row_stays_without_a_result(raw: Path) -> None:
    edit(raw, PAGE, "<td>5,201</td>", "<td>5,2O1</td>")
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert done.returncode == 0
    assert "unreadable-figure" in done.stderr
    sql = "SELECT result_table, result_row, micro_batch_size FROM configurations WHERE result_id IS NULL"
    found = run_cli("query", "--warehouse", target, "--format", "json", sql)
    assert json.loads(found.stdout) == [{"result_table": "bow_inference", "result_row": 37, "micro_batch_size": 15}]


def test_the_configuration_of_a_row_that_a_gate_refuses_stays_without_a_result(raw: Path) -> None:
    edit(raw, PAGE, "<td>5,201</td>", "<td>0</td>")
    target = raw.parent / "warehouse"
    assert run_cli("ingest", "--raw", raw, "--warehouse", target).returncode == 0
    sql = "SELECT count(*) AS n FROM configurations WHERE result_id IS NULL"
    assert json.loads(run_cli("query", "--warehouse", target, "--format", "json", sql).stdout) == [{"n": 1}]


def test_without_the_document_the_suspicion_stays_one(raw: Path) -> None:
    for suffix in ("", ".toml"):
        (raw / f"{FILE}{suffix}").unlink()
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert (done.returncode, done.stderr) == (0, "")
    guess = "message LIKE '%if the printed value is per item'"
    sql = f"SELECT DISTINCT rule, {guess} AS open FROM flags WHERE rule IN ('R01', 'R13')"
    found = run_cli("query", "--warehouse", target, "--format", "json", sql)
    assert json.loads(found.stdout) == [{"rule": "R01", "open": True}]


def test_a_micro_batch_of_the_rows_own_document_stays(raw: Path) -> None:
    """The paper says one image per chip of its batch of two; a configuration of two on one replica changes nothing."""
    place = {"result_document": PAPER_ID, "result_table": "qwant_table_1", "result_row": "1"}
    batch = {"micro_batch_size": "2", "gradient_accumulation": "1", "global_batch_from_config": "2"}
    change("bow_training", 64, **place, **batch, batch_agrees="True", match_confidence="exact")(raw)
    target = raw.parent / "warehouse"
    done = run_cli("ingest", "--raw", raw, "--warehouse", target)
    assert (done.returncode, done.stderr) == (0, "")
    sql = "SELECT r.micro_batch_size AS own, c.micro_batch_size AS told FROM results r JOIN configurations c"
    found = run_cli(
        "query", "--warehouse", target, "--format", "json", f"{sql} USING (result_id) WHERE publisher = 'Qwant'"
    )
    assert json.loads(found.stdout) == [{"own": 1, "told": 2}]


def test_a_batch_that_is_told_as_a_whole_has_no_product_to_check(raw: Path) -> None:
    parts = dict.fromkeys(("micro_batch_size", "replicas", "gradient_accumulation"), "")
    change("bow_training", 64, **parts)(raw)
    assert run_cli("ingest", "--raw", raw, "--warehouse", raw.parent / "warehouse").returncode == 0
