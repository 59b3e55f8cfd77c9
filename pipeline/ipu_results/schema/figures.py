"""The fields of a printed table whose cells are figures."""

from __future__ import annotations

from ipu_results.schema import table

KEPT_FIGURES = ("images", "chips", "n_runs", "n_success", "nodes")
"""Figures that fill no column of `results`."""
NUMERIC_FIELDS = frozenset(("value", *KEPT_FIGURES)) | {
    column.name for column in table("results").without_derived().columns if column.kind in ("integer", "double")
}
