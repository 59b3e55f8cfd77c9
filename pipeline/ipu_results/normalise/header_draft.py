"""Draft entries of `table_headers.toml` for tables whose header is not known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import tomli_w

from ipu_results.normalise.fields import CONVERTERS
from ipu_results.normalise.values import find_nearest
from ipu_results.read.document import FirstRow
from ipu_results.schema import table
from ipu_results.schema.table_headers import normalise_header, parse_unit, strip_unit
from ipu_results.schema.vocabulary import KINDS, Vocabulary
from ipu_results.sources.catalogue import PLACEHOLDER

MIN_SIMILARITY = 0.6  # of a printed column name and a known one


def format_header_entries(rows: Iterable[FirstRow], kind: str, document_id: str, vocabulary: Vocabulary) -> str:
    """Format an entry for each first row of a table; a column whose field is not certain is a placeholder."""
    known = {
        normalise_header(name): field
        for header in vocabulary.table_headers
        if KINDS[header.reader].results == "one-per-row"
        for name, field in header.fields
    }
    entries = []
    for number, (place, columns) in enumerate(rows, start=1):
        name = re.sub(r"\W+", "_", f"{document_id}-{number}")
        fields = {strip_unit(column): _guess_field(column, known, vocabulary) for column in columns}
        entry = {"reader": kind, "table": name, "task": f"{PLACEHOLDER}: training or inference", "fields": fields}
        entries.append(f"# {place}\n{tomli_w.dumps({'table_header': [entry]})}")
    if entries:
        fields_known = {*known.values(), *(CONVERTERS.keys() & table("results").without_derived().names)}
        entries.append(f"# The fields are {', '.join(sorted(fields_known))}.")
    return "\n".join(entries)


def _guess_field(column: str, known: Mapping[str, str], vocabulary: Vocabulary) -> str:
    """Return the field of a column whose name is known, else a placeholder that names a similar one."""
    if (field := known.get(normalise_header(column))) is not None:
        return field
    unit = parse_unit(column)
    names = {header.replace(" ", ""): header for header in known}
    similar = find_nearest(normalise_header(column), names, MIN_SIMILARITY)
    counted = next((field for field in vocabulary.units if unit and vocabulary.find_unit(field, unit)), None)
    nearest = counted or (known[similar] if similar else None)
    return f"{PLACEHOLDER}: a field, such as {nearest}" if nearest else f"{PLACEHOLDER}: a field"
