"""The start page: what the dataset found, with a figure, a few bars and a link for each finding."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from ipu_results.errors import TooFewRowsError, WarehouseError
from ipu_results.ground.sql import run_query
from ipu_results.release.files import RELEASE, read_json
from ipu_results.serve.cite import REPOSITORY
from ipu_results.site.charts import skip_without_rows
from ipu_results.site.data import PAGE

COUNTS = """
    SELECT
        (
            SELECT count(*) FROM results WHERE relationship IS DISTINCT FROM 'submitted'
        ) AS results,
        (SELECT count(*) FROM results WHERE NOT usable) AS left_out,
        (SELECT count(*) FROM documents) AS documents, (SELECT count(*) FROM claims) AS claims,
        (SELECT count(*) FROM flags WHERE severity = 'error') AS errors,
        (
            SELECT CAST(max(greatest(published_on, retrieved_on)) AS VARCHAR) FROM documents
        ) AS newest_document,
        (SELECT min(build_id) FROM build) AS build_id
"""


@dataclass(frozen=True, slots=True)
class StartFinding:
    """One finding.

    `figures` gives one row, which fills the two texts; `bars` gives rows of label and value.

    `rule` formats the line that the bars are compared with, from the same row, as label and value
    in the unit of the bars. `link` is a view of the page.
    """

    name: str
    title: str
    figure: str
    text: str
    figures: str
    bars: str
    unit: str
    link: str
    link_text: str
    rule: tuple[str, str] | None = None


FINDINGS = (
    StartFinding(
        "forty-times",
        "Was an IPU machine 40 times as fast as NVIDIA's A100?",
        "{low:.2f}× to {high:.2f}×",
        "Graphcore claimed {claimed:g} times the throughput of one A100 for the image network"
        " ResNeXt-101. No published row is of the run that was claimed; the nearest"
        " {pairs} published pairs give {low:.2f} to {high:.2f} times.",
        """
        SELECT
            min(r.value) AS low, max(r.value) AS high, count(*) AS pairs,
            any_value(c.value) AS claimed
        FROM recomputations r
        JOIN claims c USING (claim_id)
        WHERE claim_id = 'sdk14-resnext101-inference-throughput' AND r.baseline LIKE '%mixed%'
        """,
        """
        SELECT
            'A100 '
                || regexp_extract(baseline, 'TensorFlow1, ([^,]*), batch', 1)
                || ', IPU '
                || regexp_extract(baseline, 'with (\\w+)', 1) AS label,
            value
        FROM recomputations
        WHERE claim_id = 'sdk14-resnext101-inference-throughput' AND baseline LIKE '%mixed%'
        ORDER BY value
        """,
        "×",
        "#/claims/sdk14-resnext101-inference-throughput",
        "The claim, recomputed",
        ("claimed", "{claimed}"),
    ),
    StartFinding(
        "bow",
        "How much faster was the last generation, Bow?",
        "{on_16:.2f}×",
        "On 16 chips, Bow is {on_16:.2f} times as fast as the generation before. Its clock is"
        " {clock:.2f} times as fast, so nearly all of the gain is the clock. On 256 chips it is"
        " {on_256:.2f} times.",
        """
        SELECT geomean(CASE chip_count WHEN 16 THEN throughput_ratio END) AS on_16,
            geomean(CASE chip_count WHEN 256 THEN throughput_ratio END) AS on_256,
            any_value(clock_ratio) AS clock
        FROM generations
        WHERE usable
        """,
        """
        SELECT chip_count || ' chips' AS label, geomean(throughput_ratio) AS value
        FROM generations WHERE usable GROUP BY chip_count ORDER BY chip_count
        """,
        "×",
        "#/charts/generations",
        "Chart and pairs",
        ("clock", "{clock}"),
    ),
    StartFinding(
        "scaling",
        "Do 16 times the chips give 16 times the speed?",
        "{kept:.0f} %",
        "Going from 16 to 256 chips, each chip keeps {kept:.0f} % of its training throughput with a"
        " fixed batch (median of {tests} tests), and {grown:.0f} % where the batch grew with the"
        " machine ({grown_tests}).",
        """
        SELECT 100 * median(scaling_efficiency) FILTER (batch_growth = 'fixed') AS kept,
            count(*) FILTER (batch_growth = 'fixed') AS tests,
            100 * median(scaling_efficiency) FILTER (batch_growth = 'grown') AS grown,
            count(*) FILTER (batch_growth = 'grown') AS grown_tests
        FROM scaling
        WHERE measure = 'throughput' AND chip_count = 256 AND base_chip_count = 16 AND same_sdk
            AND usable
        """,
        """
        SELECT chip_count || ' chips' AS label, 100 * median(scaling_efficiency) AS value
        FROM scaling
        WHERE measure = 'throughput'
            AND base_chip_count = 16
            AND same_sdk
            AND usable
            AND batch_growth = 'fixed'
        GROUP BY chip_count
        ORDER BY chip_count
        """,
        " %",
        "#/charts/scaling",
        "Chart and tests",
    ),
    StartFinding(
        "mlperf-noise",
        "How sure is the order of an MLPerf ranking?",
        "{noise:.0f} %",
        "MLPerf is the industry's benchmark of AI hardware. In {noise:.0f} % of {pairs:,} pairs of"
        " neighbours in a training ranking, the runs behind the scores do not separate the two.",
        """
        SELECT
            100 * (1 - sum(separable_pairs) / sum(tested_pairs)) AS noise,
            sum(tested_pairs)::BIGINT AS pairs
        FROM detail.mlperf_noise
        WHERE division = 'closed' AND scope = 'all-sizes'
        """,
        """
        SELECT 'v' || round AS label, 100 * (1 - sum(separable_pairs) / sum(tested_pairs)) AS value
        FROM detail.mlperf_noise
        WHERE division = 'closed' AND scope = 'all-sizes'
        GROUP BY round
        ORDER BY round
        """,
        " %",
        "#/charts/mlperf_noise",
        "Chart by round",
    ),
    StartFinding(
        "too-short",
        "Can every printed latency be true?",
        "{rows} cannot",
        "{rows} latencies on the vendor's page are too short: at the printed throughput, they hold"
        " {low:.3f} to {high:.2f} of the batch that they are printed for. They are kept as printed,"
        " with a flag.",
        f"""
        SELECT count(*) AS rows, min(throughput * latency_ms / 1000 / batch_size) AS low,
            max(throughput * latency_ms / 1000 / batch_size) AS high
        FROM results JOIN flags USING (result_id) WHERE rule = 'R01' AND document_id = '{PAGE}'
        """,
        f"""
        SELECT
            model || ', batch ' || batch_size AS label,
            throughput * latency_ms / 1000 / batch_size AS value
        FROM results
        JOIN flags USING (result_id)
        WHERE rule = 'R01' AND document_id = '{PAGE}'
        ORDER BY value
        """,
        " of a batch",
        f"#/results?flag=R01&q={PAGE}",
        "The rows",
        ("one batch", "1"),
    ),
)


def build_start(connection: duckdb.DuckDBPyConnection, release: Path) -> dict[str, Any]:
    """Collect what the start page needs: the build, counts, findings and the address of the
    project.
    """
    [counts] = run_query(connection, COUNTS).to_pylist()
    record = read_release(release)
    newest = counts.pop("newest_document")
    build_id = counts.pop("build_id")
    return {
        "build": {
            "version": record.get("version"),
            "as_of": record.get("published_on") or newest,
            "build_id": build_id,
            "documents": counts["documents"],
        },
        "counts": counts,
        "repository": REPOSITORY,
        "findings": [*_build_findings(connection)],
    }


def read_release(release: Path) -> dict[str, Any]:
    """Read the record of a release; a warehouse that was never published has none."""
    path = release / RELEASE
    if not path.exists():
        return {}
    record = read_json(path)
    if not isinstance(record.get("version"), str):
        raise WarehouseError("has no version", place=str(path))
    return record


def _build_findings(connection: duckdb.DuckDBPyConnection) -> Iterator[dict[str, Any]]:
    """Build the findings; one that the record has no rows for is left out, with an
    IncompleteRecordWarning.
    """
    for finding in FINDINGS:
        with skip_without_rows(f"finding {finding.name}"):
            yield _build_finding(connection, finding)


def _build_finding(connection: duckdb.DuckDBPyConnection, finding: StartFinding) -> dict[str, Any]:
    [figures] = run_query(connection, finding.figures).to_pylist()
    bars = run_query(connection, finding.bars).to_pylist()
    if not bars or None in figures.values():
        raise TooFewRowsError(f"a figure of finding {finding.name} has none")
    rule = finding.rule and {
        "label": finding.rule[0],
        "value": float(finding.rule[1].format(**figures)),
    }
    return {
        "name": finding.name,
        "title": finding.title,
        "figure": finding.figure.format(**figures),
        "text": finding.text.format(**figures),
        "bars": bars,
        "unit": finding.unit,
        "rule": rule,
        "link": finding.link,
        "link_text": finding.link_text,
    }
