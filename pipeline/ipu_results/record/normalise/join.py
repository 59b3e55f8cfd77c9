"""From converted rows to results: which rows make one, and what the document says of them all."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ipu_results.errors import DamagedDocumentError
from ipu_results.record.normalise.by_source import Outcome
from ipu_results.record.normalise.cells import STAGED, CellRows, SharedCell, build_cells
from ipu_results.record.normalise.fields import CellContext, CellValues, convert_cell, get_column
from ipu_results.record.normalise.passthrough import NO_ROWS, PLACE, place_rows
from ipu_results.record.normalise.rows import FIGURE_FIELDS, ConvertedRows, RejectedRow, reject_row
from ipu_results.record.normalise.values import UnreadableCellError
from ipu_results.record.read.document import MetadataItem, ParsedDocument
from ipu_results.record.sources.catalogue import Document
from ipu_results.schema import table as published_table
from ipu_results.schema.frames import Integers, arrow_schema, build_array
from ipu_results.schema.vocabulary import KINDS, Vocabulary

HALF = "half of the batch size"  # how the paper on two chips states the items of each
# Their units count items, such as images.
RATE_FIELDS = tuple(
    column.name
    for column in published_table("results").as_filled().columns
    if (column.unit or "").startswith("item/")
)
ACCEPTED = "accepted"
DUPLICATE = "duplicate"
QUARANTINED = "quarantined"
TABLE_STRIDE = 2**32  # above the number of any row: rows are sorted by table, then by number
NOTHING_READ = ParsedDocument(())
SOURCE_ROWS = pa.schema([*PLACE, ("status", pa.string()), ("result_id", pa.string())])


@cache
def filled_schema(name: str) -> pa.Schema:
    """Return the columns of a table that sources fill; before the gate any may be null."""
    filled = arrow_schema(published_table(name).as_filled())
    return pa.schema([(field.name, field.type) for field in filled])


@dataclass(frozen=True, slots=True)
class DocumentSetup:
    """Values of `results` that hold for the whole document, and the cells that state them."""

    values: dict[str, Any]
    cells: Sequence[SharedCell]
    halved_batch: bool
    """Whether the items of a chip are half of the batch, which must be even."""


def parse_setup(
    document: Document, items: Iterable[MetadataItem], vocabulary: Vocabulary
) -> DocumentSetup:
    """Convert the items with known labels.

    Raises DamagedDocumentError for an item that cannot be read, since it would hold for every
    result.
    """
    values: dict[str, Any] = {}
    cells: list[SharedCell] = []
    halved = False
    fields = vocabulary.metadata.get(document.reader, {})
    for item in items:
        field = fields.get(item.label)
        if field is None:
            continue
        try:
            converted = convert_cell(field, item.text, CellContext(vocabulary, None, False))
        except UnreadableCellError as error:
            message = f"{item.label}: {error}"
            name = document.document_id
            raise DamagedDocumentError(message, document=name, place=item.locator) from error
        values |= converted.values
        cell: SharedCell = {
            "column_name": get_column(field),
            "header": item.label,
            "raw_text": item.text,
            "value": converted.figure,
            "unit": converted.unit,
            "factor": converted.factor,
            "locator": item.locator,
        }
        cells.append(cell)
        if field == "batch_per_chip" and item.text == HALF:
            halved = True
    return DocumentSetup(values, cells, halved)


@dataclass(frozen=True)
class NormalisedDocument:
    """What one document's rows became, in Arrow."""

    document: Document
    parsed: ParsedDocument = NOTHING_READ
    """What it was made of; a row that the gate refuses goes to quarantine as it is there."""
    results: pa.Table = field(default_factory=filled_schema("results").empty_table)
    """Rows of the table that its kind makes, as far as sources fill it."""
    source_rows: pa.Table = field(default_factory=SOURCE_ROWS.empty_table)
    """The rows that make results up or repeat them."""
    cells: pa.Table = field(default_factory=STAGED.empty_table)
    """The cells of the rows that make results up."""
    rejected: Sequence[RejectedRow] = ()
    passthrough: pa.Table = field(default_factory=lambda: NO_ROWS)
    """Rows that have a table of their own, with or without a result; see `passthrough_schema`."""

    @property
    def document_id(self) -> str:
        return self.document.document_id

    def drop_rows(self) -> NormalisedDocument:
        """Return the document without what is in tables by now: it would fill the memory."""
        parsed = self.parsed if len(self.passthrough) else NOTHING_READ
        return NormalisedDocument(
            self.document, parsed, rejected=self.rejected, passthrough=self.passthrough
        )


def list_passthrough(documents: Iterable[NormalisedDocument], name: str) -> list[Any]:
    """Return the rows that documents have for a table as they are, each with its place."""
    rows = []
    for document in documents:
        if KINDS[document.document.reader].table == name:
            rows += document.passthrough.to_pylist()
    return rows


def list_keys(source_rows: pa.Table) -> list[tuple[str, int]]:
    """Return table and number of each row."""
    tables = source_rows["table_name"].to_pylist()
    return list(zip(tables, source_rows["row_number"].to_pylist(), strict=True))


def join_rows(
    document: Document, outcomes: Iterable[Outcome], setup: DocumentSetup
) -> NormalisedDocument:
    """Group the rows by identity; rows of one identity with different figures are all rejected."""
    parts: list[ConvertedRows] = []
    places: list[Integers] = []  # of each row: the number of its table, and its number in that
    rejected: list[RejectedRow] = []
    for number, outcome in enumerate(outcomes):
        refused = list(outcome.rejected)
        for rows in outcome.converted:
            kept = _drop_contradicting(rows, setup, refused)
            parts.append(kept)
            places.append(kept.numbers + number * TABLE_STRIDE)
        rejected += sorted(refused, key=attrgetter("row_number"))
    if not any(map(len, places)):
        return NormalisedDocument(document, rejected=rejected)
    order = np.argsort(np.concatenate(places), kind="stable")
    name = KINDS[document.reader].into
    key = published_table(name).key[0]
    values = [_list_values(document, part, name) for part in parts]
    located = [_list_places(number, part) for number, part in enumerate(parts)]
    # one row of each for each source row, in the order of the document
    rows = pa.concat_tables(values).take(order)
    sources = pa.concat_tables(located).take(order)
    fates = _find_fates(rows, key, sources, parts, rejected)
    is_accepted = fates == ACCEPTED
    results = _merge(rows.filter(is_accepted), key)
    result_ids = results[key].combine_chunks()
    owners = pc.index_in(rows[key], result_ids).to_numpy()  # the position of the result of each
    part_numbers = sources["part"].to_numpy()
    positions = sources["position"].to_numpy()
    cell_rows = []
    for number, part in enumerate(parts):
        ranks = np.flatnonzero((part_numbers == number) & is_accepted)
        cell_rows.append(CellRows(part, positions[ranks], owners[ranks], ranks))
    source_rows = sources.select(PLACE.names)
    source_rows = source_rows.append_column("status", pa.array(fates))
    source_rows = source_rows.append_column("result_id", rows[key])
    is_kept = fates != QUARANTINED
    return NormalisedDocument(
        document,
        results=_add_setup(results, setup),
        source_rows=source_rows.filter(is_kept).cast(SOURCE_ROWS),
        cells=build_cells(document, cell_rows, setup.cells, result_ids),
        rejected=rejected,
    )


def _list_values(document: Document, rows: ConvertedRows, name: str) -> pa.Table:
    """Return the rows in the columns of the published table that they fill."""
    values = {
        **rows.values,
        "row_number": pa.array(rows.numbers),
        published_table(name).key[0]: pa.array(digest_identities(document.document_id, rows)),
    }
    schema = filled_schema(name)
    count = len(rows.positions)
    columns = [values.get(field.name, pa.nulls(count, field.type)) for field in schema]
    return pa.table(columns, schema=schema)


def _list_places(number: int, rows: ConvertedRows) -> pa.Table:
    """Return where each row is: in the document, and in which of its parts."""
    table = rows.table
    columns = place_rows(table.name, table.numbers, table.locators)
    columns["part"] = pa.repeat(number, len(table.numbers))
    columns["position"] = pa.array(np.arange(len(table.numbers)))
    return pa.table(columns).take(rows.positions)


def _merge(rows: pa.Table, key: str) -> pa.Table:
    """Make one row of those with the same key: the values of the first, else of the next one that
    has a value.
    """
    ids = pc.unique(rows[key])
    if len(ids) == len(rows):  # the usual case
        return rows
    others = [name for name in rows.column_names if name != key]
    merged = rows.group_by(key, use_threads=False).aggregate([(name, "first") for name in others])
    ordered = merged.take(pc.index_in(ids, merged[key]))  # groups come in any order
    return ordered.rename_columns([key, *others]).select(rows.column_names)


def set_column(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return the rows with other values in one column."""
    at = rows.column_names.index(name)
    return rows.set_column(at, rows.schema.field(at), values)


def _add_setup(results: pa.Table, setup: DocumentSetup) -> pa.Table:
    """Fill what rows leave out with what holds for the whole document."""
    for name, value in setup.values.items():
        [constant] = build_array(published_table("results"), results.schema.field(name), [value])
        results = set_column(results, name, pc.coalesce(results[name], constant))
    if not setup.halved_batch:
        return results
    batch = results["batch_size"]
    is_even = pc.equal(pc.bit_wise_and(batch, 1), 0)
    halves = pc.if_else(is_even, pc.divide(batch, 2), None)
    return set_column(results, "micro_batch_size", pc.coalesce(halves, results["micro_batch_size"]))


def _drop_contradicting(
    rows: ConvertedRows, setup: DocumentSetup, rejected: list[RejectedRow]
) -> ConvertedRows:
    """Reject each row of which the unit of a rate counts other items than its model, or the
    document's, has; return the others.
    """
    of_document = pa.scalar(setup.values.get("item"), pa.string())
    items = pc.coalesce(_get_items(rows, "model"), of_document)
    kept = np.ones(len(rows.positions), bool)
    for name in RATE_FIELDS:
        counted = _get_items(rows, name)
        # an output-token is a token
        kinds = pc.replace_substring_regex(counted, "^.*-", "")
        differs = pc.fill_null(pc.not_equal(kinds, items), False)
        for index in pc.indices_nonzero(differs).to_pylist():
            if not kept[index]:
                continue
            kept[index] = False
            message = (
                f"the unit of {name} counts {counted[index]}, but an item of"
                f" {_name_model(rows, setup, index)} is {items[index]}"
            )
            rejected.append(rows.reject(index, "item-contradicts-model", message))
    return rows.filter(kept)


def _name_model(rows: ConvertedRows, setup: DocumentSetup, index: int) -> str | None:
    """Return the printed model of a row, else that of the document."""
    of_document: str | None = setup.values.get("model_printed")
    if "model_printed" not in rows.values:
        return of_document
    return rows.values["model_printed"][index].as_py() or of_document


def _get_items(rows: ConvertedRows, name: str) -> pa.Array:
    """Return the items that each row's cell of a field is about, null if it names none."""
    if name not in rows.fields:
        return pa.nulls(len(rows.positions), pa.string())
    column = rows.fields.index(name)
    items = []
    for cell in rows.converted[column]:
        items.append(cell.values.get("item") if isinstance(cell, CellValues) else None)
    return pa.array(items, pa.string()).take(rows.list_codes(column))


class Member(NamedTuple):
    """A row of a document: what it was converted with, and its position in the printed table."""

    part: ConvertedRows
    position: int

    @property
    def name(self) -> str:
        table = self.part.table
        return f"{table.name} row {table.numbers[self.position]}"

    def copies(self, other: Member) -> bool:
        """Check whether another row of the same table has the same text in each cell."""
        if self.part is not other.part:
            return False
        texts = self.part.table.texts
        return all(column.codes[self.position] == column.codes[other.position] for column in texts)

    def reject(self, reason: str, message: str) -> RejectedRow:
        return reject_row(self.part.table, self.position, reason, message)


def _find_fates(
    rows: pa.Table,
    key: str,
    sources: pa.Table,
    parts: Sequence[ConvertedRows],
    rejected: list[RejectedRow],
) -> npt.NDArray[np.str_]:
    """Return the fate of each row; those of a contradiction are rejected."""
    longest = len(QUARANTINED)
    fates = np.full(len(rows), ACCEPTED, dtype=f"U{longest}")
    groups: dict[str, list[int]] = defaultdict(list)
    for row, row_id in enumerate(rows[key].to_pylist()):
        groups[row_id].append(row)
    if len(groups) == len(rows):  # the usual case: each row is one result
        return fates
    members = []
    for source in sources.select(["part", "position"]).to_pylist():
        members.append(Member(parts[source["part"]], source["position"]))
    # of each column of figures, which rows have one
    have_figure = [
        rows[name].is_valid().to_numpy() for name in rows.column_names if name in FIGURE_FIELDS
    ]

    def contradict(one: int, other: int) -> bool:
        """Check whether two rows of one identity cannot make one result.

        Rows of the tables of a paper can, each with figures of its own.
        """
        if not members[other].part.header.joins:
            return True
        return any(has_figure[one] and has_figure[other] for has_figure in have_figure)

    for group in groups.values():
        accepted = group[:1]
        for row in group[1:]:
            if any(members[known].copies(members[row]) for known in accepted):
                fates[row] = DUPLICATE
                continue
            rivals = [known for known in accepted if contradict(known, row)]
            if not rivals:
                accepted.append(row)
                continue
            fates[group] = QUARANTINED
            pair = f"{members[rivals[0]].name} and {members[row].name}"
            message = f"{pair} have one configuration and different figures"
            for each in group:
                rejected.append(members[each].reject("conflicting-rows", message))
            break
    return fates


# of the digest: with 64 bits a few thousand results never share an id, and the gate refuses two
# that do
ID_DIGITS = 16
ID_START = "r"  # a spreadsheet reads digits alone, and digits with an e between, as a number
LEFT_OUT = ""  # in place of a field and its text


def digest_identities(document_id: str, rows: ConvertedRows) -> list[str]:
    """Return an id for each row that depends on the printed configuration, not on figures or
    position.

    It is of the sha256 of `[document, table, [[field, text], ...]]` as JSON, of which each text is
    encoded once.
    """
    place = f"{encode_basestring(document_id)},{encode_basestring(rows.result_table)}"
    columns = []
    for column in rows.list_identifying():
        name = encode_basestring(rows.name_identity(column))
        texts = rows.table.texts[column].distinct
        pairs = [f"[{name},{encode_basestring(text)}]" for text in texts]
        if rows.is_condition(column) and "" in texts:
            # so that a condition which a page adds later leaves the ids of its older rows
            pairs[texts.index("")] = LEFT_OUT
        columns.append([pairs[code] for code in rows.list_codes(column).tolist()])
    ids = []
    for row in range(len(rows.positions)):
        pairs = [column[row] for column in columns if column[row] != LEFT_OUT]
        identity = f"[{place},[{','.join(pairs)}]]"
        ids.append(ID_START + hashlib.sha256(identity.encode()).hexdigest()[:ID_DIGITS])
    return ids
