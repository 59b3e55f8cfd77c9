"""Locate the data that travels with the package: the schema files and the committed dataset.

An installed wheel carries both inside the package; in a checkout they lie beside the source root.
"""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]


def find_folder(packaged: str, checkout: str) -> Path:
    """Return the folder of the wheel where there is one, else that of the checkout."""
    installed = PACKAGE / packaged
    return installed if installed.is_dir() else CHECKOUT / checkout


SCHEMA = find_folder("_schema", "schema")
DATASET = find_folder("_data", "warehouse")
