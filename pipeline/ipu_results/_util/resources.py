"""Locate and load the data that travels with the package: the schema files and the committed dataset.

An installed wheel carries both inside the package. In a checkout they are in folders next to the source root.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parents[1]


def find_folder(packaged: str, checkout: str) -> Path:
    """Return the folder of the wheel if there is one, else that of the checkout."""
    installed = PACKAGE / packaged
    return installed if installed.is_dir() else CHECKOUT / checkout


SCHEMA = find_folder("_schema", "schema")
DATASET = find_folder("_data", "warehouse")


def load_schema_file(path: str) -> dict[str, Any]:
    """Load a TOML file under `schema/`, such as `vocabulary/units.toml`."""
    return tomllib.loads((SCHEMA / path).read_text(encoding="utf-8"))
