"""Compare a record of 1.x names with one of 2.0, field by field: what compare_tables.py --names does.

Each column of BASE is read under its new name (schema/renamed.toml). Wide columns that became rows
of `figures` are compared there. What has another value on purpose is listed in CHANGED with its
reason; every other difference is printed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

Names = Mapping[str, Any]
Row = tuple[Any, ...]

ID = re.compile(r"(^|_)(result_id|microbenchmark_id|same_as)$|^(ipu|other)_id$")
ID_TEXT = re.compile(r"[0-9a-f]{16}")
PRECISIONS = {"16.16": "FP16", "32.32": "FP32", "half": "FP16", "single": "FP32"}
PATH = re.compile(r"(^|_)(path|round)$")
# of a figure that is computed of figures with 12 digits, and of a percentage near 0
TOLERANCE = 1e-10
PERCENT_TOLERANCE = 1e-8
# Of several old columns that became one, this is the one to compare with; the others were its print.
CANONICAL = frozenset(
    "network dataset_canonical effective_precision accelerator_canonical comparable_model".split()
)
SCOPES = {
    "power_w": "power_scope",
    "energy_per_item_j": "power_scope",
    "run_energy_j": "run_energy_of",
    "quality_value": "quality_metric",
}
CANONICAL_CHIP = "one name for a chip: MLPerf's spellings are gone, forms of an A100 told apart"
SUSPECT = "rule R47 flags what was a column"
WITHOUT_ERRORS = "the view holds no row with an error any more"
WORK = "`work` says all that was run, of which it was the variant"
CHANGED = {
    "*.chip": CANONICAL_CHIP,
    "*.gpu_chip": CANONICAL_CHIP,
    "*.conditions": "the compiler of 44 rows is a condition",
    "*.warnings": SUSPECT,
    "*.precision": "FP16 is also 16.16 of a machine whose view had only the other column",
    "*.model": "one name for a network, in views that had only the printed one",
    "*.dataset": "one name for a dataset, in views that had only the printed one",
    "*.platform": "IPU systems of MLPerf have their canonical name",
    "*.best_chip": CANONICAL_CHIP,
    "*.ipu_chip": CANONICAL_CHIP,
    "*.other_chip": CANONICAL_CHIP,
    "*.m2000_dataset": "one name for a dataset, in views that had only the printed one",
    "*.c2_dataset": "one name for a dataset, in views that had only the printed one",
    "*.work": WORK,
    "*.ipu_platform": "IPU systems of MLPerf have their canonical name",
    "*.other_platform": "IPU systems of MLPerf have their canonical name",
    "mlperf_per_chip.attribution": "it says chip minutes, as the column does",
    "flags.(rows)": SUSPECT,
    "models.(rows)": "networks that results.model tells apart have a row",
    "columns.*": "the dictionary of the new names",
    "cells.column_name": "of a run's points, `device` is still the device of a backend",
    "contradicted.condition": "it is SQL over the new names",
    "device_pairs.other": CANONICAL_CHIP,
    "build.(rows)": "figures and relations are new",
    "build.row_count": "flags, models, columns and others have other rows",
    "build.build_id": "another build",
    "platforms.family": "more chips have a known family, since they have one name",
    "platforms.source": CANONICAL_CHIP,
    "documents.sha256": "three of our files of claims name columns",
    "microbenchmarks.relationship": "the maker of 32 rows is known by the name of the chip",
    "energy_per_item.(rows)": WITHOUT_ERRORS,
    "peak_shares.(rows)": WITHOUT_ERRORS,
    "energy_ipu_gpu.(rows)": "no pair may be quoted: `unanswered` says why",
    "unanswered.(rows)": "one row for the pairs of energy that may not be quoted",
    "replications.(rows)": "two parties spell a chip in two ways: 58 pairs more",
    "replication_summary.*": "of those pairs",
    "latency_lowest.(rows)": "two rows of a packed dataset stand with the packed ones",
    "latency_lowest.rows": "two rows of a packed dataset stand with the packed ones",
    "latency_front.on_front": "two rows of a packed dataset stand with the packed ones",
    "per_dollar.gpu_fastest_figure": CANONICAL_CHIP,
    "per_dollar.gpu_fastest_entry": CANONICAL_CHIP,
}


def rename_tables(
    base: Mapping[str, pa.Table], head: Mapping[str, pa.Table], names: Names
) -> Iterator[tuple[str, pa.Table, pa.Table]]:
    """Yield each relation that both have: BASE under the names of HEAD, and HEAD."""
    for name, rows in sorted(base.items()):
        if name in head:
            own = {**names["columns"], **names["relation"].get(name, {})}
            renamed = _rename(rows, head[name].column_names, own)
            yield name, _rename_named_columns(renamed, names), head[name]
    yield "figures", _unpivot(base["results"], head["figures"]), head["figures"]


def _rename(rows: pa.Table, wanted: list[str], own: Mapping[str, str]) -> pa.Table:
    """Return the columns that have a place in HEAD, under their names there."""
    sources: dict[str, list[str]] = {}
    for old in rows.column_names:
        new = own.get(old, old)
        if new not in wanted and old in wanted:
            new = old  # a view that has the column on
        if new in wanted:
            sources.setdefault(new, []).append(old)
    columns = {}
    for new, olds in sources.items():
        canonical = [old for old in olds if old in CANONICAL] or olds
        values = rows[canonical[0]].to_pylist()
        for old in canonical[1:]:
            others = rows[old].to_pylist()
            values = [
                other if value is None else value
                for value, other in zip(values, others, strict=True)
            ]
        columns[new] = [_convert(new, value) for value in values]
    return pa.table(columns)


def _rename_named_columns(rows: pa.Table, names: Names) -> pa.Table:
    """Return a table whose `column_name` has the new names of columns of `results`."""
    if "column_name" not in rows.column_names or "description" in rows.column_names:
        return rows
    known = {**names["columns"], **names["relation"]["mlperf_entries"]}
    new = [known.get(old, old) for old in rows["column_name"].to_pylist()]
    kept = [
        name if re.fullmatch(r"\w+", name) else old
        for name, old in zip(new, rows["column_name"].to_pylist(), strict=True)
    ]
    position = rows.column_names.index("column_name")
    return rows.set_column(position, "column_name", pa.array(kept))


def _convert(column: str, value: Any) -> Any:
    """Return a value as HEAD spells it: ids with their letter, precisions under one name."""
    if isinstance(value, str):
        if ID.search(column) or column == "key":
            return re.sub(rf"^(?={ID_TEXT.pattern}$)", "r", value)
        if column.endswith("precision"):
            return PRECISIONS.get(value, value)
    return value


def _unpivot(results: pa.Table, figures: pa.Table) -> pa.Table:
    """Return the figures of BASE, which were columns, as rows."""
    rows = []
    for metric in sorted(set(figures["metric"].to_pylist())):
        scopes = results[SCOPES[metric]].to_pylist() if metric in SCOPES else [None] * len(results)
        values = zip(
            results["result_id"].to_pylist(), results[metric].to_pylist(), scopes, strict=True
        )
        for result_id, value, scope in values:
            if value is not None:
                row = {"result_id": f"r{result_id}", "metric": metric, "value": value}
                rows.append({**row, "scope": scope})
    return pa.Table.from_pylist(rows)


def compare_rows(old: pa.Table, new: pa.Table, key: list[str]) -> tuple[int, Counter[str]]:
    """Return the number of fields compared, and of differences by column.

    A figure that differs in its last digits alone is counted as `(rounded)`.
    """
    shared = [column for column in old.column_names if column in new.column_names]
    first, second = (rows.select(shared).to_pylist() for rows in (old, new))
    stable = [name for name in shared if f"*.{name}" not in CHANGED]
    names = _find_key(first, second, [name for name in key if name in shared] or stable)
    differences: Counter[str] = Counter()
    by_key = {_get(row, names): row for row in second}
    compared = 0
    for row in first:
        other = by_key.pop(_get(row, names), None)
        if other is None:
            differences["(rows)"] += 1
            continue
        for column in shared:
            compared += 1
            kind = _compare(column, row[column], other[column])
            if kind:
                differences[column if kind == "differs" else "(rounded)"] += 1
    differences["(rows)"] += len(by_key)
    return compared, +differences


def _find_key(
    first: list[dict[str, Any]], second: list[dict[str, Any]], names: list[str]
) -> list[str]:
    """Return the first columns that together name each row; figures do not."""
    key: list[str] = []
    ids = [name for name in names if ID.search(name) or PATH.search(name)]
    for name in [*ids, *names]:
        if key and all(
            len({_get(row, key) for row in rows}) == len(rows) for rows in (first, second)
        ):
            break
        if name not in key and not any(_is_figure(row[name]) for row in [*first, *second]):
            key.append(name)
    return key


def _is_figure(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


def _get(row: Mapping[str, Any], names: list[str]) -> Row:
    return tuple(row[name] for name in names)


def _compare(column: str, old: Any, new: Any) -> str | None:
    """Return `rounded` or `differs` for two values that are not equal."""
    if old == new:
        return None
    if not isinstance(old, float) or not isinstance(new, float):
        return "differs"
    distance = abs(old - new)
    is_near = distance <= TOLERANCE * abs(old)
    if column.endswith("percent"):
        is_near |= distance <= PERCENT_TOLERANCE
    return "rounded" if is_near else "differs"


def find_reason(relation: str, column: str) -> str | None:
    """Return why a column has other values on purpose."""
    names = (f"{relation}.{column}", f"{relation}.*", f"*.{column}")
    return next((CHANGED[name] for name in names if name in CHANGED), None)
