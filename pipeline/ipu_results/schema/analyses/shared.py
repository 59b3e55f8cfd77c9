"""Columns that several analyses have."""

from __future__ import annotations

from dataclasses import replace

from ipu_results.schema.columns import Column, double
from ipu_results.schema.results import RESULTS


def sides(names: str, **sides: str) -> tuple[Column, ...]:
    """The named columns of `results` once for each side: prefix of the name, and what the description adds."""
    return tuple(
        replace(column, name=f"{side}_{name}", description=f"{column.description} {said}", required=False)
        for name in names.split()
        for column in (RESULTS.column(name),)
        for side, said in sides.items()
    )


def ratio(description: str) -> Column:
    return double("throughput_ratio", description, above=0)
