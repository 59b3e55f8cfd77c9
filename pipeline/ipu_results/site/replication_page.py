"""How well the vendor's figures replicate: the summary, the pairs that count, and those that do not with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.site.chart_pages import format_picture
from ipu_results.site.claims import VALUE, Evidence, format_number, format_unit
from ipu_results.site.compare_pages import format_ratio
from ipu_results.site.html import Markup, format_table, join, link, list_items, tag
from ipu_results.site.page import Page

NAME, IPU = "replications", "IPU"
# A page for the pairs on IPUs, and one for those on other chips.
PATHS = {IPU: "replications.html", "other": "replications-other-chips.html"}
TITLES = {
    IPU: "How well do the vendor's figures replicate?",
    "other": "How well do figures on GPUs and other chips replicate?",
}
COLUMNS = {"throughput": "throughput", "mlperf time to train": "time_to_train_s", "microbenchmark": VALUE}
PAIRS = """
    SELECT r.*, m.canonical_unit
    FROM replications r LEFT JOIN microbenchmarks m ON m.microbenchmark_id = r.first_result_id
    ORDER BY counts DESC, reason, parties DESC, measure, network, test, chip, chips, first_publisher, second_publisher,
        first_result_id, second_result_id
"""
SUMMARY = "FROM replication_summary ORDER BY machines = 'IPU' DESC, parties DESC"
RULES = (
    "A pair is one work on one chip and one number of chips, by two parties. The vendor is first, else the earlier.",
    "The ratio is the performance of the second party over that of the first. Below 1, the second is slower.",
    "Which rows are paired depends on their set-up alone. No figure has a say in it.",
    "Pairs of one work by the same parties count once in the mean. Its interval is Student's t at 95 %.",
)
Row = Mapping[str, Any]


def build_replication_pages(
    connection: duckdb.DuckDBPyConnection, charts: Sequence[Mapping[str, Any]]
) -> Iterator[Page]:
    """Yield the page of IPUs, with the chart where `charts` has it, and that of other chips."""
    evidence = Evidence(connection, COLUMNS.values())
    pairs = run_query(connection, PAIRS).to_pylist()
    summary = run_query(connection, SUMMARY).to_pylist()
    chart = [join(format_picture(own), list_items(*own["caveats"])) for own in charts if own["name"] == NAME]
    for machines, path in PATHS.items():
        own = [row for row in pairs if row["machines"] == machines]
        groups = [row for row in summary if row["machines"] == machines]
        description = " ".join(_describe_group(row) for row in groups)
        others = [tag("p", link(other, TITLES[name])) for name, other in PATHS.items() if name != machines]
        content = join(
            tag("p", description, class_="finding"),
            _format_summary(groups),
            *(chart if machines == IPU else []),
            *others,
            _format_all(own, evidence),
            tag("h2", "How pairs are made"),
            list_items(*RULES),
            tag("p", "The views ", tag("code", NAME), " and ", tag("code", "replication_summary"), " hold this."),
        )
        yield Page(path, TITLES[machines], description, content, f"#/charts/{NAME}", card=(description,))


def _format_all(pairs: Sequence[Row], evidence: Evidence) -> Markup:
    counted = [row for row in pairs if row["counts"]]
    others = [row for row in pairs if not row["counts"]]
    return join(
        tag("h2", f"The {len(counted)} pairs that count"),
        _format_pairs(counted, evidence),
        tag("h2", f"The {len(others)} pairs that are shown and not counted"),
        *(
            join(tag("h3", f"{reason[:1].upper()}{reason[1:]}"), _format_pairs(list(rows), evidence))
            for reason, rows in groupby(others, key=lambda row: str(row["reason"]))
        ),
    )


def _describe_group(row: Row) -> str:
    return (
        f"{row['parties'].capitalize()}: of {row['counted']} counted pairs, {row['within_5_percent']} agree within "
        f"5 %; the mean ratio of {row['works']} works is {format_ratio(row['mean_ratio'])}."
    )


def _format_summary(summary: Sequence[Row]) -> Markup:
    headings = [
        "Parties",
        "Pairs",
        "Counted",
        "Within 5 %",
        "Works",
        "Mean ratio",
        "95 % interval",
        "Lowest",
        "Highest",
    ]
    rows = [
        [
            row["parties"],
            *(str(row[name]) for name in ("pairs", "counted", "within_5_percent", "works")),
            format_ratio(row["mean_ratio"]),
            " to ".join(format_ratio(row[name]) for name in ("mean_low", "mean_high") if row[name] is not None),
            format_ratio(row["lowest_ratio"]),
            format_ratio(row["highest_ratio"]),
        ]
        for row in summary
    ]
    return format_table(headings, rows)


def _format_pairs(rows: Sequence[Row], evidence: Evidence) -> Markup:
    headings = ["Work", "Chips", "First", "Second", "Ratio", "Set-up", "What differs, or is not stated"]
    return format_table(headings, [_format_pair(row, evidence) for row in rows])


def _format_pair(row: Row, evidence: Evidence) -> list[str]:
    details = (row["network"], row["test"], row["task"], row["phase"])
    tokens = f"{row['sequence_length']} tokens" if row["sequence_length"] else None
    open_points = f"not stated: {row['unstated']}" if row["unstated"] else None
    return [
        ", ".join(filter(None, (*details, tokens))),
        f"{row['chips']} × {row['chip']}",
        *(_format_side(row, side, evidence) for side in ("first", "second")),
        format_ratio(row["ratio"]),
        row["match"],
        "; ".join(filter(None, (row["differs"], open_points))) or "nothing that is known",
    ]


def _format_side(row: Row, side: str, evidence: Evidence) -> Markup:
    units = {"throughput": f"{row['item'] or 'item'}s/s", "mlperf time to train": "min"}
    unit = units.get(row["measure"], format_unit(row["canonical_unit"]))
    figure = f"{format_number(row[f'{side}_figure'])} {unit}".strip()
    cell = evidence.format_figure(row[f"{side}_result_id"], COLUMNS[row["measure"]], figure)
    return join(row[f"{side}_publisher"], ": ", cell)
