"""What the page's form needs to compare a run: machines, items of networks and spellings of precisions."""

from __future__ import annotations

from typing import Any

import duckdb

from ipu_results.comparison.comparable import name_precision
from ipu_results.comparison.measurement import FIGURES, load_known_words
from ipu_results.ground.physics import MIN_BATCHES_IN_FLIGHT, PER_ITEM
from ipu_results.ground.sql import run_query

PRECISIONS = "SELECT DISTINCT effective_precision AS name FROM results WHERE effective_precision IS NOT NULL ORDER BY 1"


def build_own_run(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Collect what `ipu-results compare` knows besides the rows and the rules of schema/comparison.toml."""
    words = load_known_words(connection)
    machines = {
        name: [facts["family"], facts["chip"], facts["chip_count"]] for name, facts in sorted(words.machines.items())
    }
    precisions = [row["name"] for row in run_query(connection, PRECISIONS).to_pylist()]
    return {
        "machines": machines,
        "items": dict(sorted(words.items.items())),
        "precisions": {name: name_precision(name) for name in precisions},
        "figures": FIGURES,
        "per_item": PER_ITEM,
        "min_batches_in_flight": MIN_BATCHES_IN_FLIGHT,
    }
