"""The registry of document kinds, from `schema/kinds.toml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ipu_results._util.resources import load_schema_file


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """One kind of document; see the head of `schema/kinds.toml` for the fields."""

    name: str
    format: str
    results: str | None = None
    table: str | None = None
    into: str = "results"
    local: bool = False
    aliases: Sequence[str] = ()

    @property
    def is_ingested(self) -> bool:
        """Whether `ingest` accepts it; the others are for `extract` alone."""
        return self.results is not None or self.table is not None


KINDS = {name: DocumentKind(name, **entry) for name, entry in load_schema_file("kinds.toml").items()}
ALIASES: Mapping[str, str] = {alias: name for name, kind in KINDS.items() for alias in kind.aliases}
"""The kind of each former name, which sidecars and `--kind` may still use."""
