"""What the tests of rows and cells share."""

from __future__ import annotations

from ipu_results.normalise import Cell, Result


def list_cells(result: Result) -> list[Cell]:
    """Return the cells of a result's own document."""
    return [*(cell for fragment in result.accepted for cell in fragment.cells), *result.setup_cells]
