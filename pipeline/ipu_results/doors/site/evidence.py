"""The static pages on claims and on what others measured: each row with its printed place, flags
and doubts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from urllib.parse import quote

from ipu_results import schema
from ipu_results.doors.site.data import (
    CLAIMS,
    CONTRADICTIONS,
    MICROBENCHMARKS,
    RECOMPUTATIONS,
    USES,
)
from ipu_results.doors.site.page import Page, build_page, format_computed, format_slug, format_unit
from ipu_results.kit.sql import Connection, run_query

Row = dict[str, Any]  # of a query of this module, or a chart, as a template takes it

VALUE = "value"  # the column of `microbenchmarks` that holds the figure
SIGNS = {"error": "✖", "warn": "!", "info": "i"}
DOUBTS = ("error", "warn")
PLACES = """
    SELECT result_id, column_name, coalesce(source_locator, locator) AS place, source_url
    FROM provenance
    WHERE raw_text <> '' AND column_name IN ({columns})
    ORDER BY result_id, cell_number
"""
FLAGS = """
    SELECT result_id, rule, severity, message, suggested FROM flags WHERE severity IN {severities}
    ORDER BY ALL
"""
RULES = """
    SELECT rule, title, description, statement, count(f.rule) AS flags
    FROM detail.rules
    LEFT JOIN flags f USING (rule)
    GROUP BY ALL
    ORDER BY rule
"""
OPERATIONS = "SELECT microbenchmark_id, operation FROM microbenchmarks"


def list_rows(connection: Connection, sql: str) -> list[Row]:
    rows: list[Row] = run_query(connection, sql).to_pylist()
    return rows


def group_rows(rows: Iterable[Row], column: str) -> defaultdict[str, list[Row]]:
    """Group rows by a column, each group in the order of the rows; empty for a value that no row
    has.
    """
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups


class Evidence:
    """The printed places of figures, and the flags of their rows.

    `columns` are those whose places are needed, `severities` those of the flags.
    """

    def __init__(
        self,
        connection: Connection,
        *columns: str,
        severities: tuple[str, ...] = DOUBTS,
    ) -> None:
        self._places: dict[tuple[str, str], Row] = {}
        listed = ", ".join(schema.quote(name) for name in columns)
        for row in list_rows(connection, PLACES.format(columns=listed)):
            self._places.setdefault((row["result_id"], row["column_name"]), row)
        flags = list_rows(connection, FLAGS.format(severities=severities))
        self._flags = group_rows(flags, "result_id")
        self._operations: dict[str, str] = dict(connection.execute(OPERATIONS).fetchall())

    def find_address(self, key: str, column: str) -> str:
        """Return where the site shows a figure: its row on a static page, or its panel."""
        if column == VALUE:
            return f"{name_operation_page(self._operations[key])}#{key}"
        return f"index.html#/results?show={key}.{column}"

    def list_flags(self, key: str) -> list[Row]:
        """Return all flags of a row."""
        return [{**row, "sign": SIGNS[row["severity"]]} for row in self._flags[key]]

    def find_flags(self, key: str) -> list[Row]:
        """Return one flag of each rule, the last of its messages."""
        last_of_rule = {row["rule"]: row for row in self.list_flags(key)}
        return list(last_of_rule.values())

    def find_place(self, key: str, column: str) -> Row | None:
        """Return where a figure was printed."""
        return self._places.get((key, column))


def name_operation_page(operation: str) -> str:
    """Return the place of the page of an operation; STREAM Triad and STREAM triad share a page."""
    return f"microbenchmark/{format_slug(operation)}.html"


# Words for a gap by the column `gap_kind`.
GAPS = {
    "last-digit": "within the last digit",
    "within-run-to-run-spread": "within the spread of the runs",
    "beyond": "more than rounding or the spread of runs",
}
MAX_RESULTS = 40  # results that the page of a claim links
# Headline claims first: recomputed ones of a factor, the largest first.
HEADLINES = f"""
    FROM ({CLAIMS})
    ORDER BY
        CASE WHEN unit = 'x' AND verdict <> 'not-recomputable' THEN -value ELSE 0 END, document_id,
        claim_id
"""
DOCUMENTS = "SELECT document_id, title, url, publisher FROM documents"
LABELS = """
    SELECT
        result_id,
        concat_ws(', ', model, task, platform, framework, precision, 'batch ' || batch_size)
            AS label
    FROM results
"""


def build_claim_pages(connection: Connection) -> Iterator[Page]:
    """Yield a page for each claim, headline claims first, then the list of all."""
    claims = list_rows(connection, HEADLINES)
    tensions = list_rows(connection, CONTRADICTIONS)
    values = group_rows(list_rows(connection, RECOMPUTATIONS), "claim_id")
    used = group_rows(list_rows(connection, USES), "claim_id")
    documents = {row["document_id"]: row for row in list_rows(connection, DOCUMENTS)}
    labels = dict(connection.execute(LABELS).fetchall())
    for claim in claims:
        key = claim["claim_id"]
        claim["outcome"] = describe_verdict(claim)
        lines = [f"Claimed: {claim['figure']}", f"Verdict: {claim['outcome']}"]
        if values[key]:
            first = values[key][0]
            reason = f"{first['arithmetic']} ({first['baseline']}): {first['outcome']}"
            lines.append(f"Recomputed: {reason}")
        results = []
        for use in used[key]:
            if use["result_id"] in labels:
                results.append((use["result_id"], labels[use["result_id"]]))
        yield build_page(
            "claim.html",
            f"claim/{quote(key)}.html",
            claim=claim,
            lines=lines,
            values=values[key],
            results=results,
            max_results=MAX_RESULTS,
            document=documents[claim["document_id"]],
            tensions=[row for row in tensions if key in (row["claim_ids"] or "").split()],
        )
    yield build_page("claims.html", "claims.html", claims=claims)


def describe_verdict(claim: Row) -> str:
    """Describe verdict and gap: `contradicted, gap -83 %, beyond the spread`."""
    gap = claim["gap_percent"]
    kind = claim["gap_kind"]
    parts = [claim["verdict"].replace("-", " ")]
    if gap is not None and kind != "none":
        parts.append(f"gap {gap:+.2g} %")
        if kind in GAPS:
            parts.append(GAPS[kind])
    return ", ".join(parts)


# Pairs of which both figures may be quoted, and the others by model.
PAIRS = """
    FROM detail.energy_ipu_gpu
    ORDER BY
        ipu_power_scope, gpu_power_scope, document_id, model, batch_size, chip_count, ipu_platform,
        gpu_platform, ipu_result_id, gpu_result_id
"""
UNQUOTABLE = """
    SELECT model, task, rows, reason FROM unanswered
    WHERE view_name = 'energy_ipu_gpu' ORDER BY model, task
"""
ENERGIES = """
    FROM energy_per_item
    WHERE usable
    ORDER BY
        power_scope NULLS LAST, item, model, task, publisher, platform, chip_count, batch_size,
        result_id
"""
ENERGIES_LEFT_OUT = """
    SELECT count(*) FROM results
    WHERE NOT usable AND (
        efficiency IS NOT NULL
        OR result_id IN (SELECT result_id FROM figures WHERE metric = 'energy_per_item_j')
    )
"""
SCOPES = ("device", "package", "board", "machine", "wall")  # each includes the one before
NOT_STATED = "not stated"
# What a rule that keeps a comparison from being quoted says of one of its figures.
OBSTACLES = {
    "R29": "implies more power than the chip can draw",
    "R35": "is contradicted by other evidence",
}


def build_rules_page(connection: Connection) -> Page:
    """Build the page of the quality rules with the statement of each."""
    return build_page("rules.html", "rules.html", rules=list_rows(connection, RULES))


def build_energy_page(connection: Connection) -> Page:
    """Build the page of an IPU next to the GPUs of the same paper, and of every machine's energy
    per item. Power scopes stand apart.
    """
    rows = list_rows(connection, ENERGIES)
    comparisons = []
    pairs = list_rows(connection, PAIRS)
    for (ipu, gpu), compared in _group_sorted(pairs, "ipu_power_scope", "gpu_power_scope"):
        about = _describe_scope(len(compared), ipu or NOT_STATED, gpu or NOT_STATED)
        comparisons.append((about, compared))
    groups = []
    for scope, measured in _group_sorted(rows, "power_scope"):
        groups.append((scope or NOT_STATED, _group_sorted(measured, "item", "model")))
    return build_page(
        "energy.html",
        "energy.html",
        evidence=Evidence(connection, "energy_per_item_j", "efficiency"),
        count=len(rows),
        comparisons=comparisons,
        unquotable=[_describe_unquotable(row) for row in list_rows(connection, UNQUOTABLE)],
        groups=groups,
        left_out=count_rows(connection, ENERGIES_LEFT_OUT),
    )


def count_rows(connection: Connection, sql: str) -> int:
    """Return the count that a query gives."""
    ((count,),) = connection.execute(sql).fetchall()
    return int(count)


def _describe_unquotable(row: Row) -> str:
    """Say that no comparison of an IPU with a GPU can be quoted for a model, and by which rules."""
    rules = re.findall(r"R\d\d", row["reason"])
    obstacles = [OBSTACLES.get(rule, f"has a flag of rule {rule}") for rule in rules]
    return (
        f"None of the {row['rows']} comparisons of an IPU with a GPU in {row['model']}"
        f" {row['task']} can be quoted: each has a figure that {' or '.join(obstacles)}"
        f" ({', '.join(rules)})."
    )


def _group_sorted(rows: Iterable[Row], *names: str) -> list[tuple[Any, list[Row]]]:
    """Group rows that are sorted by these columns: the value or values with their rows."""
    return [(key, list(group)) for key, group in groupby(rows, key=itemgetter(*names))]


def _describe_scope(count: int, ipu: str, gpu: str) -> str:
    rows = f"In {count} row{'' if count == 1 else 's'}"
    if ipu == gpu and ipu != NOT_STATED:
        return f"{rows}, both energies are of the {ipu}: the ratio compares like with like."
    if ipu not in SCOPES or gpu not in SCOPES:
        return (
            f"{rows}, the scope of the IPU is {ipu}, that of the GPU {gpu}: the ratio cannot be"
            " read."
        )
    narrower, wider = sorted((ipu, gpu), key=SCOPES.index)
    bound = "an upper" if wider == gpu else "a lower"
    return (
        f"{rows}, the energy of the IPU is of the {ipu}, that of the GPU of the {gpu}. A {wider}"
        f" includes more than a {narrower}, so the ratios are not like for like: even where both"
        f" energies hold, each is {bound} bound of GPU {narrower} over IPU {narrower}."
    )


# A page for the pairs on IPUs, and one for those on other chips.
REPLICATIONS = {
    "IPU": ("replications.html", "How well do the vendor's figures replicate?"),
    "other": (
        "replications-other-chips.html",
        "How well do figures on GPUs and other chips replicate?",
    ),
}
FIGURES = {
    "throughput": "throughput",
    "mlperf time to train": "time_to_train_s",
    "microbenchmark": VALUE,
}
REPLICATED = """
    SELECT r.*, m.canonical_unit
    FROM replications r
    LEFT JOIN microbenchmarks m ON m.microbenchmark_id = r.first_result_id
    ORDER BY
        counts DESC, reason, parties DESC, measure, model, test, chip, chip_count, first_publisher,
        second_publisher, first_result_id, second_result_id
"""
SUMMARY = """
    FROM detail.replication_summary
    ORDER BY machines = 'IPU' DESC, parties DESC, vendor_part <> 'all', vendor_part
"""


def build_replication_pages(connection: Connection, charts: Sequence[Row]) -> Iterator[Page]:
    """Yield the page of IPUs, with the chart where `charts` has it, and that of other chips."""
    evidence = Evidence(connection, *FIGURES.values())
    summary = list_rows(connection, SUMMARY)
    pairs = list_rows(connection, REPLICATED)
    for row in pairs:
        units = {"throughput": f"{row['item'] or 'item'}s/s", "mlperf time to train": "min"}
        row["figure_unit"] = units.get(row["measure"], format_unit(row["canonical_unit"]))
        row["figure_column"] = FIGURES[row["measure"]]
    for machines, (path, heading) in REPLICATIONS.items():
        other = "other" if machines == "IPU" else "IPU"
        shown = [row for row in pairs if row["machines"] == machines]
        others = [row for row in shown if not row["counts"]]
        drawn = [chart for chart in charts if chart["name"] == "replications"]
        yield build_page(
            "replications.html",
            path,
            heading=heading,
            evidence=evidence,
            summary=[row for row in summary if row["machines"] == machines],
            charts=drawn if machines == "IPU" else [],
            other=REPLICATIONS[other],
            counted=[row for row in shown if row["counts"]],
            others=others,
            reasons=_group_sorted(others, "reason"),
        )


CEILINGS = "FROM detail.ceilings ORDER BY chip, component, operation, publisher"
SHARES = """
    SELECT s.*, r.item
    FROM peak_shares s
    JOIN (SELECT result_id, item FROM results) r USING (result_id)
    WHERE s.usable
    ORDER BY chip, datasheet_share DESC NULLS LAST, document_id, table_name, row_number, result_id
"""

SHARES_LEFT_OUT = """
    SELECT chip, count(*) AS rows FROM results
    WHERE NOT usable AND benchmark IS NULL AND throughput IS NOT NULL
        AND model IN (SELECT model FROM detail.operation_counts)
    GROUP BY chip
"""


def build_peak_pages(connection: Connection, charts: Sequence[Row]) -> Iterator[Page]:
    """Yield a page for each chip with counted results, then the overview with the chart where
    `charts` has it.
    """
    evidence = Evidence(connection, "throughput", VALUE)
    ceilings = list_rows(connection, CEILINGS)
    shares = list_rows(connection, SHARES)
    left_out = dict(connection.execute(SHARES_LEFT_OUT).fetchall())
    for row in shares:
        row["rate"] = f"{format_computed(row['throughput_per_chip'], 5)} {row['item'] or 'item'}s/s"
        row["work"] = ", ".join(filter(None, (row["model"], row["variant"], row["task"])))
    chips = []
    for chip, rows in _group_sorted(shares, "chip"):
        path = f"peak/{format_slug(chip)}.html"
        yield build_page(
            "chip.html",
            path,
            evidence=evidence,
            chip=chip,
            rows=rows,
            ceilings=[row for row in ceilings if row["chip"] == chip],
            left_out=left_out.get(chip, 0),
        )
        clean = [row for row in rows if not row["precision_doubtful"] and row["datasheet_share"]]
        # rows are ordered by share
        highest = clean[0] if clean else None
        chips.append((chip, path, rows, highest))
    shown = [chart for chart in charts if chart["name"] == "roofline"]
    yield build_page(
        "peak.html",
        "peak.html",
        evidence=evidence,
        count=len(shares),
        chips=chips,
        charts=shown,
        ceilings=ceilings,
        left_out=sum(left_out.values()),
    )


def build_microbenchmark_pages(connection: Connection) -> Iterator[Page]:
    """Yield a page for each operation, then the list of all."""
    evidence = Evidence(connection, severities=tuple(SIGNS))
    documents = {row["document_id"]: row for row in list_rows(connection, DOCUMENTS)}
    rows = list_rows(connection, MICROBENCHMARKS)
    for row in rows:
        row["path"] = name_operation_page(row["operation"])
    operations = []
    for path, measured in _group_sorted(sorted(rows, key=itemgetter("path")), "path"):
        names = ", ".join(sorted({row["operation"] for row in measured}))
        operations.append((path, names, measured))
        groups = _group_sorted(sorted(measured, key=itemgetter("document_id")), "document_id")
        yield build_page(
            "operation.html",
            path,
            evidence=evidence,
            operation=names,
            rows=measured,
            groups=[(documents[key], group) for key, group in groups],
        )
    yield build_page(
        "microbenchmarks.html", "microbenchmarks.html", count=len(rows), operations=operations
    )
