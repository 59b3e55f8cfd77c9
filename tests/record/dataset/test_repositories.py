"""Figures of public repositories: whole rows looked up by hand, who measured, what a latency times,
what is flagged.
"""

from __future__ import annotations

import csv
import re
import tomllib
from pathlib import Path

import pytest

from tests.conftest import RAW, Query

SIDECARS = {
    path: tomllib.loads(path.read_text(encoding="utf-8"))
    for path in sorted(RAW.glob("*/*.csv.toml"))
}
FILES = [path for path, sidecar in SIDECARS.items() if "sources" in sidecar]
# Places in a paper, a page or a thread: they do not name a file of a repository.
IN_A_TEXT = re.compile("page |section |table |pull request |execution count ")


def read_lines(path: Path) -> list[dict[str, str]]:
    """Read the lines of the CSV of a sidecar."""
    text = path.with_suffix("").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_line_becomes_a_figure(query: Query, path: Path) -> None:
    document = SIDECARS[path]["document_id"]
    read = query(
        "SELECT raw_text, source_locator FROM cells"
        f" WHERE document_id = '{document}' AND header = 'value' ORDER BY ALL"
    )
    assert read == sorted((line["value"], line["place"]) for line in read_lines(path))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sidecar_names_each_file_that_a_line_stands_in(path: Path) -> None:
    sidecar = SIDECARS[path]
    named = {source["path"] for source in sidecar["sources"]}
    stated = {re.split(", | at commit ", line["place"])[0] for line in read_lines(path)}
    assert all(re.fullmatch("[0-9a-f]{40}", source["commit"]) for source in sidecar["sources"])
    assert stated == named or all(map(IN_A_TEXT.match, stated))
    assert sidecar["measured_by"]
    assert sidecar["measured_on"]
    assert sidecar["verified"]


@pytest.mark.parametrize(
    ("where", "row"),
    [
        (
            (
                "document_id = 'bytemlperf-c600' AND model LIKE 'ResNet%' AND precision = 'FP8'"
                " AND batch_size > 4"
            ),
            ("C600", 1, "vendor", 18851.0, 6.7, 8.54, "several-in-flight", "Top-1", 0.7682),
        ),
        (
            (
                "document_id = 'independent-yolov4-heidelberg' AND chip = 'GC200' AND variant ="
                " '896x896' AND conditions LIKE '1 %'"
            ),
            ("GC200", 1, "independent", 115.331, 6.564, None, "per-batch", None, None),
        ),
        (
            "document_id = 'graphcore-poprt-1.5' AND model LIKE 'ResNet%' AND batch_size = 80",
            (
                None,
                1,
                "vendor",
                15541.249202255634,
                25.618734779777948,
                None,
                "several-in-flight",
                None,
                None,
            ),
        ),
        (
            (
                "document_id = 'graphcore-poprt-1.5' AND batch_size = 90 AND dataset LIKE 'ImageNet%'"
                " AND throughput > 23400"
            ),
            ("C600", 1, "vendor", 23500.0, None, None, None, "Top-1 (%)", 75.89),
        ),
        (
            "document_id = 'graphcore-fastdeploy-437' AND model = 'EfficientNet-B7'",
            (None, None, "vendor", None, 10.1965, None, "per-batch", None, None),
        ),
    ],
)
def test_network_as_its_source_prints_it(query: Query, where: str, row: tuple[object, ...]) -> None:
    [printed] = query(f"""
        SELECT
            chip, chip_count, relationship, throughput, latency_ms, p99.value AS p99, latency_basis,
            quality.scope, quality.value AS quality
        FROM results r
        LEFT JOIN figures p99 ON p99.result_id = r.result_id AND p99.metric = 'latency_p99_ms'
        LEFT JOIN figures quality
            ON quality.result_id = r.result_id AND quality.metric = 'quality_value'
        WHERE {where}
    """)
    assert printed == row


@pytest.mark.parametrize(
    ("where", "row"),
    [
        (
            "document_id LIKE '%simehaa%' AND shape LIKE 'mesh=806%' AND metric = 'bandwidth'",
            ("GC200", 16, 48.0, 48e3),
        ),
        (
            "document_id LIKE '%lbm%' AND shape LIKE 'strategy=implicit%' AND statistic = 'total'",
            ("GC2", None, 21010.0, 21010.0),
        ),
        (
            "document_id LIKE '%sparq%' AND unit = 'ms' AND conditions LIKE 'SparQ%r = 32, k = 128%'",
            ("Bow", 1, 5.28, 0.00528),
        ),
        (
            "document_id LIKE '%sparq%' AND metric = 'ratio' AND chip = 'Bow' AND value < 10",
            ("Bow", 1, 7.41, 7.41),
        ),
    ],
)
def test_microbenchmark_as_its_source_prints_it(
    query: Query, where: str, row: tuple[object, ...]
) -> None:
    printed = query(
        f"SELECT chip, chip_count, value, canonical_value FROM microbenchmarks WHERE {where}"
    )
    assert printed == [row]


def test_batches_in_flight_of_bytemlperf_are_its_threads(query: Query) -> None:
    """Little's law gives the number of client threads that the settings name, but for a few percent
    between calls.
    """
    sql = (
        "SELECT TRY_CAST(regexp_extract(conditions, '([0-9]+) client threads with', 1) AS INTEGER)"
        " AS threads, batches_in_flight FROM inference WHERE document_id = 'bytemlperf-c600' AND"
        " threads < 10"
    )
    depths = query(sql)
    assert len(depths) == 22
    assert all(0.98 * threads < depth <= threads for threads, depth in depths)


def test_every_microbenchmark_says_how_its_chip_is_known(query: Query) -> None:
    unknown = (
        "SELECT DISTINCT document_id, chip FROM microbenchmarks"
        " WHERE chip_confidence IS NULL OR chip_source IS NULL"
    )
    assert query(unknown) == []


def test_every_identity_is_that_of_a_row(query: Query) -> None:
    without_rows = (
        "SELECT document_id, chip FROM detail.chip_identities"
        " EXCEPT (SELECT document_id, chip FROM results"
        " UNION ALL SELECT document_id, chip FROM microbenchmarks)"
    )
    assert query(without_rows) == []
    nameless = (
        "SELECT document_id FROM detail.chip_identities"
        " WHERE chip_confidence = 'printed' AND chip_printed IS NULL"
    )
    assert query(nameless) == []
