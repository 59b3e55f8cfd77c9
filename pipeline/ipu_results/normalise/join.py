"""Parse the facts that a document states once about its set-up and that hold for each of its
results.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ipu_results.errors import DamagedDocumentError
from ipu_results.normalise.fields import CellContext, CellValues, convert_cell, get_column
from ipu_results.normalise.rows import (
    FIGURE_FIELDS,
    Cell,
    Fragments,
    PassthroughRow,
    RejectedRow,
    RowFragment,
)
from ipu_results.normalise.values import UnreadableCellError
from ipu_results.read.document import ColumnTable, MetadataItem
from ipu_results.schema.frames import EncodedColumn, Integers
from ipu_results.schema.vocabulary import Vocabulary
from ipu_results.sources.catalogue import Document

HALF = "half of the batch size"  # how the paper on two chips states the items of each


@dataclass(frozen=True, slots=True)
class DocumentSetup:
    """Values of `results` that hold for the whole document, and the cells that state them."""

    values: dict[str, Any]
    cells: tuple[Cell, ...]
    halved_batch: bool

    def get_micro_batch_size(self, batch_size: int | None) -> int | None:
        """Return the items per chip if the document gives them as half of the batch, which must be
        even.
        """
        if not self.halved_batch or batch_size is None or batch_size % 2:
            return None
        return batch_size // 2


def parse_setup(
    document: Document, items: Iterable[MetadataItem], vocabulary: Vocabulary
) -> DocumentSetup:
    """Convert the items with known labels.

    Raises DamagedDocumentError for an item that cannot be read, since it would hold for every
    result.
    """
    values: dict[str, Any] = {}
    cells: list[Cell] = []
    halved = False
    for item in items:
        field = vocabulary.metadata.get(document.reader, {}).get(item.label)
        if field is None:
            continue
        try:
            converted = convert_cell(field, item.text, CellContext(vocabulary, None, False))
        except UnreadableCellError as error:
            message = f"{item.label}: {error}"
            raise DamagedDocumentError(
                message, document=document.document_id, place=item.locator
            ) from error
        values.update(converted.values)
        column = get_column(field)
        cells.append(Cell(column, item.label, item.text, *converted[1:], None, item.locator))
        halved |= field == "batch_per_chip" and item.text == HALF
    return DocumentSetup(values, tuple(cells), halved)


RATE_FIELDS = ("throughput", "efficiency")  # their units count items, such as images


@dataclass(frozen=True, slots=True)
class Result:
    """One row of `results` before it is checked; see `Results`."""

    result_id: str
    values: Mapping[str, Any]
    accepted: Sequence[RowFragment]
    duplicates: Sequence[RowFragment]
    setup_cells: Sequence[Cell]
    cited: Sequence[tuple[str, Cell]]

    @property
    def fragments(self) -> Iterator[RowFragment]:
        """Its source rows, accepted ones first."""
        yield from self.accepted
        yield from self.duplicates


class SourceRows(NamedTuple):
    """The source rows of results, in the order of the results, accepted ones first.

    `owner` is the position of the result, `part` that of the Fragments that the row is in, and
    `place` its place there.
    """

    owner: Integers
    part: Integers
    place: Integers
    is_duplicate: npt.NDArray[np.bool_]

    def take(self, rows: Any) -> SourceRows:
        owner, part, place, is_duplicate = self
        return SourceRows(owner[rows], part[rows], place[rows], is_duplicate[rows])


NO_ROWS = SourceRows(np.zeros(0, int), np.zeros(0, int), np.zeros(0, int), np.zeros(0, bool))


@dataclass(frozen=True, slots=True, eq=False)
class Results(Sequence[Result]):
    """The results of a document, by column; a Result is made only where one is looked at.

    `sources` are the rows that make them up or repeat them. `setup_cells` are cells of the document
    that hold for every result. `cited` are cells of other documents that add to a result, by its
    position, each with its document.
    """

    ids: Sequence[str] = ()
    columns: Mapping[str, EncodedColumn] = field(default_factory=dict)
    parts: Sequence[Fragments] = ()
    sources: SourceRows = NO_ROWS
    setup_cells: Sequence[Cell] = ()
    cited: Mapping[int, Sequence[tuple[str, Cell]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return self.take(range(len(self))[position])
        position = range(len(self))[position]
        values = {name: column.get(position) for name, column in self.columns.items()}
        rows: tuple[list[RowFragment], list[RowFragment]] = ([], [])
        first, last = np.searchsorted(self.sources.owner, [position, position + 1])
        for source in range(first, last):
            fragment = self.parts[self.sources.part[source]].get(int(self.sources.place[source]))
            rows[int(self.sources.is_duplicate[source])].append(fragment)
        values = {name: value for name, value in values.items() if value is not None}
        return Result(
            self.ids[position], values, *rows, self.setup_cells, self.cited.get(position, ())
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def take(self, positions: Sequence[int]) -> Results:
        """Return the results at some positions, with their source rows."""
        chosen = np.arange(len(self))[np.asarray(positions, int)]
        first = np.searchsorted(self.sources.owner, chosen)
        counts = np.searchsorted(self.sources.owner, chosen, "right") - first
        owner = np.repeat(np.arange(len(chosen)), counts)
        rows = np.arange(len(owner)) + np.repeat(first - (np.cumsum(counts) - counts), counts)
        return replace(
            self,
            ids=[self.ids[position] for position in positions],
            columns={name: column.take(chosen) for name, column in self.columns.items()},
            sources=self.sources.take(rows)._replace(owner=owner),
            cited={
                new: self.cited[old] for new, old in enumerate(chosen.tolist()) if old in self.cited
            },
        )

    def set_values(self, name: str, values: Mapping[int, Any]) -> Results:
        """Return the results with other values in one column, by position."""
        if not values:
            return self
        codes = np.zeros(len(self), np.int32)
        codes[list(values)] = np.arange(1, len(values) + 1)
        column = EncodedColumn(codes, [None, *values.values()])
        if name in self.columns:
            column = self.columns[name].overlay(column)
        return replace(self, columns={**self.columns, name: column})


@dataclass(frozen=True)
class NormalisedDocument:
    """What one document's rows became; `passthrough` rows have a table of their own, with or
    without a result.

    All rows of `columnar` tables do, and none makes a result.
    """

    document: Document
    results: Results = field(default_factory=Results)
    rejected: Sequence[RejectedRow] = ()
    passthrough: Sequence[PassthroughRow] = ()
    columnar: Sequence[ColumnTable] = ()

    @cached_property
    def passthrough_only(self) -> list[PassthroughRow]:
        """Passthrough rows that neither make a result nor were rejected."""
        if not self.passthrough:
            return []
        used = {(row.table_name, row.row_number) for row in self.rejected}
        sources = self.results.sources
        for number, part in enumerate(self.results.parts):
            rows = part.rows[sources.place[sources.part == number]].tolist()
            used |= {(part.table.name, part.table.numbers[position]) for position in rows}
        return [row for row in self.passthrough if (row.table_name, row.row_number) not in used]


def join_rows(
    document: Document,
    outcomes: Iterable[tuple[list[Fragments], list[RejectedRow]]],
    setup: DocumentSetup,
) -> tuple[Results, list[RejectedRow]]:
    """Group the rows by identity; rows of one identity with different figures are all rejected."""
    parts: list[Fragments] = []
    # of each row in the document: number of its table, and its number in that
    places: list[Integers] = []
    rejected: list[RejectedRow] = []
    for number, (converted, unreadable) in enumerate(outcomes):
        refused = [*unreadable]
        for fragments in converted:
            kept, contradicting = _split_contradicting(fragments, setup)
            refused += contradicting
            parts.append(kept)
            places.append(np.array(kept.table.numbers, int)[kept.rows] + (number << 32))
        rejected += sorted(refused, key=attrgetter("row_number"))
    parts = [part for part in parts if len(part.rows)]
    places = [rows for rows in places if len(rows)]
    if not parts:
        return Results(setup_cells=setup.cells), rejected
    order = np.argsort(np.concatenate(places), kind="stable")
    part = np.repeat(np.arange(len(parts)), [len(rows) for rows in places])[order]
    index = np.concatenate([np.arange(len(rows)) for rows in places])[order]
    row_ids = [
        row_id
        for fragments in parts
        for row_id in digest_identities(document.document_id, fragments)
    ]
    ids = [row_ids[row] for row in order.tolist()]
    groups: Sequence[tuple[list[int], list[int]]] = ()
    if len(set(ids)) == len(ids):  # the usual case: each row is one result
        first = owner = rows = np.arange(len(ids))
        is_duplicate = np.zeros(len(ids), bool)
    else:
        groups = [*_group_rows(ids, SourceRows(order, part, index, order > 0), parts, rejected)]
        first = np.array([accepted[0] for accepted, _ in groups], int)
        sizes = [len(accepted) + len(duplicates) for accepted, duplicates in groups]
        owner = np.repeat(np.arange(len(groups)), sizes)
        rows = np.array([row for group in groups for rows in group for row in rows], int)
        is_duplicate = np.array(
            [flag for group in groups for flag, rows in enumerate(group) for _ in rows], bool
        )
    names = dict.fromkeys(name for fragments in parts for name in fragments.values)
    columns = {name: _concat(parts, name).take(order) for name in names}
    merged = {name: _merge(column, first, groups) for name, column in columns.items()}
    numbers = np.concatenate(places)[order][first] & 0xFFFF_FFFF
    results = Results(
        [ID_START + ids[row][:ID_DIGITS] for row in first.tolist()],
        {
            **_add_setup(merged, setup, len(first)),
            "row_number": EncodedColumn(numbers, range(int(max(numbers, default=0)) + 1)),
        },
        parts,
        SourceRows(owner, part[rows], index[rows], is_duplicate),
        setup.cells,
    )
    return results, rejected


def _concat(parts: Sequence[Fragments], name: str) -> EncodedColumn:
    absent = EncodedColumn(np.zeros(0, np.int32), [None])
    return EncodedColumn.concat(
        [
            part.values.get(name) or replace(absent, codes=np.zeros(len(part.rows), np.int32))
            for part in parts
        ]
    )


def _merge(
    column: EncodedColumn, first: Integers, groups: Sequence[tuple[list[int], list[int]]]
) -> EncodedColumn:
    """Return the values of results: those of their first row, else of the next one that has a
    value.
    """
    merged = column.take(first)
    joined = [
        (number, accepted[1:]) for number, (accepted, _) in enumerate(groups) if len(accepted) > 1
    ]
    if not joined or not merged.find_nulls().any():
        return merged
    codes = merged.codes.copy()
    is_null = column.find_nulls()
    for number, others in joined:
        if is_null[first[number]]:
            codes[number] = next(
                (column.codes[row] for row in others if not is_null[row]), codes[number]
            )
    return replace(merged, codes=codes)


def _add_setup(
    columns: Mapping[str, EncodedColumn], setup: DocumentSetup, count: int
) -> dict[str, EncodedColumn]:
    """Fill what rows leave out with what holds for the whole document."""
    filled = dict(columns)
    for name, value in setup.values.items():
        constant = EncodedColumn.repeat(value, count)
        filled[name] = (
            filled[name].overlay(constant, filled[name].find_nulls())
            if name in filled
            else constant
        )
    if setup.halved_batch and "batch_size" in filled:
        batch = filled["batch_size"]
        micro = replace(batch, values=[setup.get_micro_batch_size(value) for value in batch.values])
        own = filled.get("micro_batch_size", replace(batch, codes=np.zeros(count, np.int32)))
        filled["micro_batch_size"] = own.overlay(micro, ~micro.find_nulls())
    return filled


def _split_contradicting(
    fragments: Fragments, setup: DocumentSetup
) -> tuple[Fragments, list[RejectedRow]]:
    """Reject each row of which the unit of a rate counts other items than its model, or the
    document's, has.
    """
    counted = {
        name: _get_items(fragments, name)
        for name in ("model", *RATE_FIELDS)
        if name in fragments.fields
    }
    own = counted.pop("model", np.full(len(fragments.rows), None))
    implied = setup.values.get("item")
    items = np.where(own == None, implied, own) if implied else own  # noqa: E711 (element by element)
    faults: dict[int, str] = {}
    for name, others in counted.items():
        for index in np.flatnonzero(
            (others != items) & (others != None) & (items != None)  # noqa: E711
        ).tolist():
            named = fragments.values.get("model_printed")
            printed = None if named is None else named.get(index)
            model = printed or setup.values.get("model_printed")
            message = (
                f"the unit of {name} counts {others[index]}, but an item of {model} is"
                f" {items[index]}"
            )
            faults.setdefault(index, message)
    rejected = [
        fragments.reject(index, "item-contradicts-model", message)
        for index, message in faults.items()
    ]
    refused = np.zeros(len(fragments.rows), bool)
    refused[list(faults)] = True
    return fragments.split(refused)[0], rejected


def _get_items(fragments: Fragments, name: str) -> npt.NDArray[np.object_]:
    """Return what the cells of a column imply that an item is, None for nothing."""
    column = fragments.fields.index(name)
    values = [
        dict(cell.values) if isinstance(cell, CellValues) else {}
        for cell in fragments.converted[column]
    ]
    return np.array([own.get("item") for own in values], object)[fragments.list_codes(column)]


def _group_rows(
    ids: Sequence[str], rows: SourceRows, parts: Sequence[Fragments], rejected: list[RejectedRow]
) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the accepted and the duplicate rows of each result; the rows of a contradiction are
    rejected.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for row, row_id in enumerate(ids):
        groups[row_id].append(row)
    for group in groups.values():
        accepted = group[:1]
        duplicates = []
        for row in group[1:]:
            if any(_is_copy(rows, parts, other, row) for other in accepted):
                duplicates.append(row)
            elif conflict := [other for other in accepted if _conflict(rows, parts, other, row)]:
                fragments = {own: parts[rows.part[own]].get(int(rows.place[own])) for own in group}
                pair = (
                    f"{fragments[own].table.name} row {fragments[own].row.number}"
                    for own in (conflict[0], row)
                )
                message = f"{' and '.join(pair)} have one configuration and different figures"
                rejected += [
                    fragment.reject("conflicting-rows", message) for fragment in fragments.values()
                ]
                break
            else:
                accepted.append(row)
        else:
            yield accepted, duplicates


def _is_copy(rows: SourceRows, parts: Sequence[Fragments], *pair: int) -> bool:
    """Check whether two rows of one table have the same text in each cell."""
    if rows.part[pair[0]] != rows.part[pair[1]]:
        return False
    part = parts[rows.part[pair[0]]]
    first, second = (part.rows[rows.place[row]] for row in pair)
    return all(texts.codes[first] == texts.codes[second] for texts in part.table.texts)


def _conflict(rows: SourceRows, parts: Sequence[Fragments], *pair: int) -> bool:
    """Check whether two rows cannot make up one result: each has the same figure, or they are not
    to be joined.
    """
    first, second = (parts[rows.part[row]].values for row in pair)
    places = [rows.place[row] for row in pair]
    return not parts[rows.part[pair[1]]].joins or any(
        first[name].codes[places[0]] and second[name].codes[places[1]]
        for name in FIGURE_FIELDS & first.keys() & second.keys()
    )


# of the digest: with 64 bits a few thousand results never share an id, and the gate refuses two
# that do
ID_DIGITS = 16
ID_START = "r"  # a spreadsheet reads digits alone, and digits with an e between, as a number


def digest_identities(document_id: str, fragments: Fragments) -> list[str]:
    """Return a digest for each row that depends on the printed configuration, not on figures or
    position.

    It is the sha256 of `[document, table, [[field, text], ...]]` as JSON, of which each text is
    encoded once.
    """
    start = json.dumps(
        [document_id, fragments.result_table], ensure_ascii=False, separators=(",", ":")
    )[:-1]
    pairs = []
    for column in sorted(fragments.identifying, key=lambda column: fragments.fields[column]):
        name = encode_basestring(fragments.fields[column])
        encoded = [
            f"[{name},{encode_basestring(text)}]" for text in fragments.table.texts[column].distinct
        ]
        pairs.append([encoded[code] for code in fragments.list_codes(column).tolist()])
    keys = map(",".join, zip(*pairs, strict=True)) if pairs else [""] * len(fragments.rows)
    return [hashlib.sha256(f"{start},[{key}]]".encode()).hexdigest() for key in keys]
