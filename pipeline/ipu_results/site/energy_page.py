"""Energy per item: an IPU next to the GPUs of the same paper, and every machine, with the doubts about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import duckdb

from ipu_results.ground.sql import run_query
from ipu_results.site.claims import Evidence, format_computed
from ipu_results.site.compare_pages import format_ratio
from ipu_results.site.html import Markup, format_table, join, list_items, tag
from ipu_results.site.page import Page

PATH = "energy.html"
TITLE = "Energy per item, IPU and GPU"
BASIS = {"energy per item": "energy_per_item_j", "efficiency": "efficiency"}
PAIRS = """
    SELECT p.*, i.basis AS ipu_basis, g.basis AS gpu_basis, i.second_reading AS ipu_second_reading,
        i.second_energy_per_item_j AS ipu_second_energy_per_item_j,
        i.second_implied_power_w AS ipu_second_implied_power_w,
        g.second_reading AS gpu_second_reading, g.second_energy_per_item_j AS gpu_second_energy_per_item_j,
        g.second_implied_power_w AS gpu_second_implied_power_w
    FROM energy_ipu_gpu p
    JOIN energy_per_item i ON i.result_id = p.ipu_result_id
    JOIN energy_per_item g ON g.result_id = p.gpu_result_id
    ORDER BY p.document_id, p.network, p.batch_size, p.chips, p.ipu_platform, p.gpu_platform, p.ipu_result_id,
        p.gpu_result_id
"""
ROWS = """
    FROM energy_per_item ORDER BY item, network, task, power_scope, publisher, platform, chips, batch_size, result_id
"""
SCOPES = ("device", "package", "board", "machine", "wall")  # each includes the one before
NOT_STATED = "not stated"
NOTES = (
    "Energy is as printed, or 1 over the printed efficiency. The scope, next to each figure, says what it covers: a "
    "device is a chip, a board a card.",
    "Implied power is energy per item times items per second. Above the rating, one of the figures or units is wrong: "
    "rule R29 flags the row (✖). Half a chip has no rating, and draws no more than the whole chip is rated for.",
    "A ratio is struck out, and not to be quoted, where a row has an error flag, where the implied power is too high, "
    "or where no rating is known to check it.",
    "A second reading of the printed units is shown where the code that measured gives reason. Neither is chosen.",
    "The last column takes the GPU at its rated power, the most that it can draw for long.",
)
Row = Mapping[str, Any]


def build_energy_page(connection: duckdb.DuckDBPyConnection) -> Page:
    """Build the page from the views `energy_ipu_gpu` and `energy_per_item`."""
    evidence = Evidence(connection, BASIS.values())
    pairs, rows = (run_query(connection, sql).to_pylist() for sql in (PAIRS, ROWS))
    doubtful = sum(_is_wrong(row) for row in pairs)
    unchecked = sum(_is_unchecked(row) for row in pairs)
    description = (
        f"{len(pairs)} rows of an IPU next to a GPU of the same paper, network and batch. In {doubtful} of them, a "
        "figure has an error flag or implies more power than the chip is rated for. No rating is known to check "
        f"{unchecked} more."
    )
    content = join(
        tag("p", description, class_="finding"),
        list_items(*NOTES),
        tag("h2", "IPU next to GPU"),
        list_items(*_describe_scopes(pairs)),
        _format_pairs(pairs, evidence),
        tag("h2", f"All {len(rows)} figures of energy"),
        *(
            join(tag("h3", f"{network}, energy per {item or 'item'}"), _format_rows(list(own), evidence))
            for (item, network), own in groupby(rows, key=lambda row: (row["item"], row["network"]))
        ),
    )
    return Page(PATH, TITLE, description, content, "#/sql?q=SELECT+*+FROM+energy_ipu_gpu", card=(description,))


def _is_wrong(row: Row) -> bool:
    return bool(row["errors"] or row["ipu_above_rating"] or row["gpu_above_rating"])


def _is_unchecked(row: Row) -> bool:
    return not _is_wrong(row) and (row["ipu_rated_w"] is None or row["gpu_rated_w"] is None)


def _describe_scopes(pairs: Sequence[Row]) -> list[str]:
    """Say for the pairs of each two scopes what the ratio is: of like parts, a bound, or neither."""
    counts = Counter(tuple(row[f"{side}_power_scope"] or NOT_STATED for side in ("ipu", "gpu")) for row in pairs)
    return [_describe_scope(count, *scopes) for scopes, count in sorted(counts.items())]


def _describe_scope(count: int, ipu: str, gpu: str) -> str:
    rows = f"In {count} row{'' if count == 1 else 's'}"
    if ipu == gpu != NOT_STATED:
        return f"{rows}, both energies are of the {ipu}: the ratio compares like with like."
    if ipu not in SCOPES or gpu not in SCOPES:
        return f"{rows}, the scope of the IPU is {ipu}, that of the GPU {gpu}: the ratio cannot be read."
    narrower, wider = sorted((ipu, gpu), key=SCOPES.index)
    bound = "an upper" if wider == gpu else "a lower"
    return (
        f"{rows}, the energy of the IPU is of the {ipu}, that of the GPU of the {gpu}. A {wider} includes "
        f"more than a {narrower}, so the ratios are not like for like: even where both energies hold, each is "
        f"{bound} bound of GPU {narrower} over IPU {narrower}."
    )


def _format_pairs(rows: Sequence[Row], evidence: Evidence) -> Markup:
    headings = ["Work", "IPU", "J per item", "GPU", "J per item", "Power implied", "GPU / IPU", "at the GPU's rating"]
    return format_table(headings, [_format_pair(row, evidence) for row in rows])


def _format_pair(row: Row, evidence: Evidence) -> list[str]:
    ratio = f"{format_ratio(row['energy_ratio'])}×"
    doubt = "not to be quoted" if _is_wrong(row) else "not checked: no rating known" if _is_unchecked(row) else ""
    return [
        f"{row['network']}, {row['task']}, batch {row['batch_size']}, {row['publisher']}",
        row["ipu_platform"],
        _format_energy(row, "ipu_", evidence),
        row["gpu_platform"],
        _format_energy(row, "gpu_", evidence),
        _format_power(row, "gpu_"),
        join(tag("s", ratio), f" {doubt}") if doubt else ratio,
        f"{format_ratio(row['energy_ratio_at_gpu_rating'])}×" if row["energy_ratio_at_gpu_rating"] else "",
    ]


def _format_rows(rows: Sequence[Row], evidence: Evidence) -> Markup:
    headings = ["Machine", "Chips", "Work", "J per item", "Power implied", "Publisher"]
    cells = [
        [
            row["platform"],
            str(row["chips"] or ""),
            ", ".join(filter(None, (row["task"], row["variant"], f"batch {row['batch_size'] or 'not stated'}"))),
            _format_energy(row, "", evidence),
            _format_power(row, ""),
            f"{row['publisher']} ({row['relationship'] or 'relationship not known'})",
        ]
        for row in rows
    ]
    return format_table(headings, cells)


def _format_energy(row: Row, side: str, evidence: Evidence) -> Markup:
    key, column = row[f"{side}result_id"], BASIS[row[f"{side}basis"]]
    figure = evidence.format_figure(key, column, format_computed(row[f"{side}energy_per_item_j"], 4))
    return join(figure, " ", tag("small", row[f"{side}power_scope"] or f"scope {NOT_STATED}"))


def _format_power(row: Row, side: str) -> str:
    implied, rated = row[f"{side}implied_power_w"], row[f"{side}rated_w"]
    if implied is None:
        return "unknown"
    limit = f"rated {format_computed(rated, 4)} W" if rated else "no rating known"
    if not rated and row[f"{side}above_rating"]:
        limit = "more than the whole chip is rated for"
    second = row[f"{side}second_reading"]
    if not second:
        return f"{format_computed(implied, 4)} W, {limit}"
    energy, power = (row[f"{side}second_{name}"] for name in ("energy_per_item_j", "implied_power_w"))
    other = f"{format_computed(energy, 4)} J, {format_computed(power, 4)} W if read as: {second}"
    return join(f"{format_computed(implied, 4)} W, {limit}; ", tag("small", other))
