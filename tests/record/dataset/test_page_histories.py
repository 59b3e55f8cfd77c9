"""A page with its history: rows, what they are about, and what the view `revisions` makes of them."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
import tomli_w
from ipu_results.build import IngestConfig, ingest
from ipu_results.record.read.context import digest_context
from ipu_results.record.read.dispatch import read_document
from ipu_results.record.store.files import DATABASE
from ipu_results.schema import VIEWS
from ipu_results.schema.vocabulary import load_vocabulary

from tests.conftest import Query
from tests.record.read.reading_support import list_cells, list_results, normalise_table

NAME = "neuron_inference"
HEADER = [
    "published_on",
    "printed_until",
    "Model",
    "Framework",
    "Inst. Type",
    "Neuron Version",
    "Run Mode",
    "Batch Size",
    "Sequence Length",
    "Throughput (inference/sec)",
    "Throughput (/sec)",
    "Latency P50 (ms)",
    "Max Throughput",
    "place",
]
FIRST = "2024-01-01"
SECOND = "2024-02-01"
THIRD = "2024-03-01"
# model, framework, SDK, sequence length, since, until, throughput, median latency
PRINTED = [
    # a figure that changed silently, and then with the SDK
    ("silent", "PyTorch 2.1", "2.17.0", "128", FIRST, SECOND, "14.2", "5"),
    ("silent", "PyTorch 2.1", "2.17.0", "128", SECOND, THIRD, "32.3", "5"),
    ("silent", "PyTorch 2.1", "2.18.0", "128", THIRD, "", "33", "5"),
    # the framework changed under one SDK
    ("framework", "PyTorch 2.1", "2.17.0", "128", FIRST, SECOND, "10", "5"),
    ("framework", "PyTorch 2.5", "2.17.0", "128", SECOND, "", "11", "5"),
    # another condition is another row
    ("condition", "PyTorch 2.1", "2.17.0", "128", FIRST, SECOND, "10", "5"),
    ("condition", "PyTorch 2.1", "2.17.0", "512", SECOND, "", "4", "5"),
    # no SDK is printed
    ("unknown", "PyTorch 2.1", "", "128", FIRST, SECOND, "10", "5"),
    ("unknown", "PyTorch 2.1", "", "128", SECOND, "", "12", "5"),
    # a figure that was written otherwise did not change; it went, and came back
    ("gap", "PyTorch 2.1", "2.17.0", "128", FIRST, SECOND, "1,928.0", "5"),
    ("gap", "PyTorch 2.1", "2.18.0", "128", THIRD, "", "1928", "6"),
    # of two rows of one version, nothing tells which one the next follows
    ("ambiguous", "PyTorch 2.1", "2.17.0", "128", FIRST, SECOND, "10", "5"),
    ("ambiguous", "PyTorch 2.1", "2.16.0", "128", FIRST, SECOND, "20", "5"),
    ("ambiguous", "PyTorch 2.1", "2.18.0", "128", SECOND, "", "30", "5"),
]
# document, column, model, SDK before and after, figure before and after, as `git show` of the
# repository prints them: two named in the task, and ten drawn by seed
READ_BY_EYE = [
    ("inf2-throughput-vision-transformers", "latency_median_ms", "2.17.0", "2.17.0", 14.2, 32.335),
    ("inf2-latency-encoder", "throughput", "2.18.0", "2.20.0", 1928.259515, 41.24005048),
    ("inf2-throughput-vision-cnn", "throughput", "2.17.0", "2.17.0", 4685.47, 4685.66),
    ("trn1n-nlp", "throughput", "2.13.0", "2.13.0", 13.9, 12.7),
    ("inf2-latency-vision-sd", "throughput", "2.17.0", "2.17.0", 0.421, 0.45),
    ("inf2-latency-vision-sd", "throughput", "2.17.0", "2.17.0", 0.549, 0.562),
    ("trn1-throughput-encoder", "latency_median_ms", "2.20.0", "2.21.0", 5.76925278, 5.60045242),
    ("inf2-latency-vision-cnn", "throughput", "2.17.0", "2.18.0", 749.47, 861.61),
    ("trn1-throughput-encoder", "throughput", "2.20.0", "2.22.0", 3113.65558389, 3349.26531267),
    ("inf2-latency-vision-transformers", "throughput", "2.17.0", "2.18.0", 0.795, 0.83),
    ("inf2-latency-language", "throughput", "2.13.0", "2.14.0", 685.83, 704.26),
    ("inf1-throughput-cnn", "latency_p99_ms", "2.18.0", "2.20.0", 22.4, 22.9),
]


def print_row(row: tuple[str, ...], number: int) -> list[str]:
    model, framework, sdk, length, since, until, throughput, median = row
    setup = [since, until, model, framework, "Inf2.xlarge", sdk, "Data Parallel", "1", length]
    return [*setup, throughput, "", median, "7", f"page.csv at commit 0, line {number}"]


def normalise_rows(*rows: list[str]) -> Any:
    return normalise_table("performance-csv", NAME, HEADER, *rows)


def test_conditions_are_part_of_what_a_row_is_and_unread_columns_are_not() -> None:
    row = print_row(PRINTED[0], 1)
    longer = [*row[:8], "512", *row[9:]]
    ended = [row[0], THIRD, *row[2:12], "8", *row[13:]]
    first, second = list_results(normalise_rows(row, longer))
    assert first["conditions"] == "Run Mode = Data Parallel; Sequence Length = 128"
    assert second["conditions"] == "Run Mode = Data Parallel; Sequence Length = 512"
    [other] = list_results(normalise_rows(ended))
    assert other["result_id"] == first["result_id"] != second["result_id"]
    cells = {cell["header"]: cell for cell in list_cells(normalise_rows(row))}
    assert cells["Sequence Length"]["column_name"] == "conditions"
    assert cells["Max Throughput"]["column_name"] == "not_read"
    assert cells["Max Throughput"]["raw_text"] == "7"


def test_condition_that_a_page_adds_later_leaves_the_ids_of_its_older_rows() -> None:
    row = print_row(PRINTED[0], 1)
    wider = normalise_table(
        "performance-csv", NAME, [*HEADER[:-1], "OS Type", "place"], [*row[:-1], "", row[-1]]
    )
    assert list_results(wider)[0]["result_id"] == list_results(normalise_rows(row))[0]["result_id"]


def test_column_has_the_unit_of_its_own_header_where_a_page_changed_it() -> None:
    row = print_row(PRINTED[0], 1)
    moved = [*row[:9], "", "14.2", *row[11:]]
    first, second = list_results(normalise_rows(row)), list_results(normalise_rows(moved))
    assert first[0]["throughput"] == second[0]["throughput"] == 14.2


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("history")
    raw = folder / "raw"
    raw.mkdir()
    path = raw / "page.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for number, row in enumerate(PRINTED, start=1):
            writer.writerow(print_row(row, number))
    write_sidecar(path)
    ingest(IngestConfig(raw, folder / "warehouse"))
    with duckdb.connect(folder / "warehouse" / DATABASE, read_only=True) as connection:
        yield connection


def write_sidecar(path: Path) -> None:
    data = path.read_bytes()
    parsed = read_document(data, load_vocabulary().table_headers, "performance-csv")
    entry = {
        "document_id": "page",
        "title": "A page",
        "publisher": "AWS",
        "url": "https://example.org",
        "kind": "transcription",
        "licence": "none",
        "sha256": hashlib.sha256(data).hexdigest(),
        "reader": "performance-csv",
        "note": "hand-made",
        "context": digest_context(parsed.context),
        "means": "as printed",
    }
    path.with_name(f"{path.name}.toml").write_text(tomli_w.dumps(entry))


def test_revision_is_another_figure_of_the_same_row(history: duckdb.DuckDBPyConnection) -> None:
    rows = history.execute(
        """
        SELECT model_printed, column_name, before, after, same_software, silent,
            before_printed_until < published_on AS was_away
        FROM revisions
        ORDER BY model_printed, published_on
        """
    ).fetchall()
    assert rows == [
        ("framework", "throughput", 10, 11, False, False, False),
        ("gap", "latency_median_ms", 5, 6, False, False, True),
        ("silent", "throughput", 14.2, 32.3, True, True, False),
        ("silent", "throughput", 32.3, 33, False, False, False),
        ("unknown", "throughput", 10, 12, True, None, False),
    ]


def test_a_figure_follows_one_in_its_unit_and_of_its_metric(query: Query) -> None:
    compared = query(
        """
        SELECT count(*), count(DISTINCT a.unit) FILTER (r.column_name = 'quality_value')
        FROM revisions r
        JOIN cells a ON a.result_id = r.result_id AND a.column_name = r.column_name
        JOIN cells b ON b.result_id = r.before_result_id AND b.column_name = r.column_name
        WHERE a.value = r.after AND b.value = r.before AND a.factor = b.factor
            AND (r.column_name <> 'quality_value' OR a.unit = b.unit)
        """
    )
    [(revisions,)] = query("SELECT count(*) FROM revisions")
    [(found, metrics)] = compared
    assert found == revisions
    assert metrics > 1


def test_no_ratio_to_a_figure_of_zero(query: Query) -> None:
    assert query("SELECT ratio FROM revisions WHERE before = 0") == [(None,)]


# document, line, and what the conditions of that row say of chips and clients
SPLITS = [
    ("inf2-throughput-decoder", 1, "TP=24 DP=1", None),
    ("trn1-training-decoder", 1, "TP=8 DP=32 PP=4", None),
    ("trn1n-nlp", 1, "[32xNC(DP)] x 16Nodes(DP)", None),
    ("inf1-throughput-encoder", 1, "Data Parallel", 8),
    ("inf1-neuronperf-nlp", 1, "Data Parallel", 8),
]


@pytest.mark.parametrize(("document", "row", "parallelism", "concurrency"), SPLITS)
def test_conditions_say_how_work_was_split_and_how_much_was_under_way(
    document: str, row: int, parallelism: str, concurrency: int | None, query: Query
) -> None:
    found = query(
        f"""
        SELECT parallelism, concurrency FROM results
        WHERE document_id = 'aws-neuron-{document}' AND row_number = {row}
        """
    )
    assert found == [(parallelism, concurrency)]


def test_row_that_its_page_no_longer_prints_is_not_usable(
    history: duckdb.DuckDBPyConnection,
) -> None:
    wrong = "usable = (printed_until IS NOT NULL)"
    assert history.execute(f"SELECT count(*) FROM results WHERE {wrong}").fetchone() == (0,)
    assert history.execute("SELECT DISTINCT sequence_length FROM results").fetchall() == [
        (128,),
        (512,),
    ]


KEEP_REFERENCES = {"provenance", "revisions"}


def test_reference_values_of_tests_are_kept_and_nowhere_ranked(query: Query) -> None:
    documents = "SELECT document_id FROM documents WHERE figures_are = 'reference'"
    rows = f"SELECT result_id FROM results WHERE document_id IN ({documents})"
    [(count, usable)] = query(
        f"SELECT count(*), bool_or(usable) FROM results JOIN ({rows}) USING (result_id)"
    )
    assert count > 1000
    assert usable is False
    for view in VIEWS:
        if "result_id" in view.names and view.name not in KEEP_REFERENCES:
            listed = query(f"SELECT count(*) FROM {view.source} WHERE result_id IN ({rows})")
            assert listed == [(0,)], view.name


def test_revisions_are_those_that_were_read_in_the_repository(query: Query) -> None:
    for document, column, sdk_before, sdk, before, after in READ_BY_EYE:
        found = query(
            f"""
            SELECT DISTINCT silent FROM revisions
            WHERE document_id = 'aws-neuron-{document}' AND column_name = '{column}'
                AND before_sdk_version = '{sdk_before}' AND sdk_version = '{sdk}'
                AND before = {before} AND after = {after}
            """
        )
        assert found == [(sdk_before == sdk,)], (document, column, before)
