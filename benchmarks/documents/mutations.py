"""Change what a generated document prints: number formats, footnotes, order, spans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random

from benchmarks.documents.tables import (
    BOLD,
    LABELS_LEFT_BLANK,
    RAISED,
    UNREADABLE,
    Cell,
    Run,
    Table,
    columns_of,
    to_cell,
)

HTML = frozenset({"html"})
BOTH = frozenset({"html", "pdf"})
THOUSANDS = {
    "blank": " ",
    "nbsp": "\u00a0",
    "thin space": "\u2009",
    "narrow nbsp": "\u202f",
    "apostrophe": "'",
    "high apostrophe": "’",
}
CHARSETS = {
    "cp1252": "windows-1252",
    "utf-16": "utf-16",
    "utf-8-sig": "utf-8",
    "undeclared": "",
    "gb18030": "gb18030",
    "x-sjis": "shift_jis",
}
"""Encodings of a page, and how it declares each."""
UNDECIDABLE = "decimal comma, unproven"
"""Every figure is of the form 1,234, and nothing but the language says whether that is a decimal
comma.
"""
RAISED_DIGITS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
DOUBTFUL = (
    "{} ± 0.01",
    "~{}",
    "<{}",
    "{}–{}",
    "{} → {}",
    "{}/{}",
    "≈ {}",
    "−{}",
    "{}…",
    "{}\u202e{}",
    "{};{}",
    "{} ({})",
)
"""Forms that are no figure, also with the name of a metric after them."""
DOUBTFUL_ALONE = ("{} k", "{}x", "${}", "{}½", "{}M", "{}e3")


@dataclass(slots=True)
class Draft:
    """Tables before they are set, with the language and the encoding of their page."""

    tables: list[Table]
    language: str = "en"
    charset: str = "utf-8"


Change = Callable[[Draft, Random], None]
ChangeCell = Callable[[Cell, Random], Cell]
ChangeTable = Callable[[Table, Random], None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of a draft. `plain` ones leave no doubt about any figure and hide nothing."""

    change: Change
    formats: frozenset[str] = BOTH
    plain: bool = False


def _list_figures(draft: Draft) -> Iterator[tuple[Table, list[Cell], int, str]]:
    """Yield the table, the row, the place in it and the field of each figure."""
    for table in draft.tables:
        for row in table.rows:
            for place, name in enumerate(table.fields):
                if row[place].value is not None:
                    yield table, row, place, name


def _change_figures(change: ChangeCell, share: float = 1.0) -> Change:
    """Return a change of this share of the figures, at least of one."""

    def apply(draft: Draft, random: Random) -> None:
        figures = list(_list_figures(draft))
        count = max(1, round(share * len(figures)))
        # an earlier change may have left no figure
        for _, row, place, _ in random.sample(figures, min(count, len(figures))):
            row[place] = change(row[place], random)

    return apply


def _change_tables(change: ChangeTable) -> Change:
    def apply(draft: Draft, random: Random) -> None:
        for table in draft.tables:
            change(table, random)

    return apply


def _encode(charset: str) -> Change:
    def apply(draft: Draft, _: Random) -> None:
        draft.charset = charset

    return apply


# Number formats


def _group(mark: str) -> ChangeCell:
    return lambda cell, _: cell.write(cell.text.replace(",", mark))


def _print_commas(proofs: int) -> Change:
    """Print decimal commas, of which so many columns have a cell that can be nothing else."""

    def apply(draft: Draft, random: Random) -> None:
        mark = random.choice(("", ".", "\u00a0"))
        draft.language = "de"
        proven: set[tuple[str, str]] = set()
        for table, row, place, name in _list_figures(draft):
            cell = row[place]
            column = (table.header.table, name)
            if name in ("batch_size", "time_to_train_s") and "." not in cell.text:
                row[place] = cell.write(cell.text.replace(",", mark))
                continue
            value = Decimal(random.randint(1, 999_999)) / 1000
            if len(proven) < proofs and column not in proven:
                value = Decimal(random.randint(1, 999)) / 1000
                proven.add(column)
            text = f"{value:,.3f}".translate({ord(","): mark, ord("."): ","})
            row[place] = replace(cell, value=value).write(f"{text} {cell.metric}".strip())

    return apply


def _write_power(cell: Cell, random: Random) -> Cell:
    """Print a figure as a product with a power of ten, in one of the usual ways."""
    if "." not in cell.text:  # a batch is a whole number
        return cell
    exponent = random.choice((-3, -2, 2, 3, 6))
    mantissa = Decimal(random.randint(100, 999)) / 100
    metric = f" {cell.metric}" if cell.metric else ""
    figure = replace(cell, value=mantissa.scaleb(exponent))
    raised = Run(str(exponent).replace("-", "−"), RAISED)
    ways = (
        (Run(f"{mantissa} × 10{str(exponent).translate(RAISED_DIGITS)}{metric}"),),
        (Run(f"{mantissa} × 10"), raised, Run(metric)),
        (Run(f"{mantissa}e{exponent}{metric}"),),
    )
    runs = random.choice(ways)
    return replace(figure, runs=runs, text="".join(run.text for run in runs))


def _write_doubtful(cell: Cell, random: Random) -> Cell:
    """Print something that is not one figure; nothing may be read."""
    form = random.choice(DOUBTFUL if cell.metric else DOUBTFUL + DOUBTFUL_ALONE)
    text = form.format(cell.text.removesuffix(cell.metric).strip(), random.randint(1, 9))
    return mark_unreadable(cell.write(f"{text} {cell.metric}".strip()))


def mark_unreadable(cell: Cell) -> Cell:
    """Declare that no figure may be read from a cell, only a report is right."""
    return replace(cell, text="", value=None, metric=UNREADABLE)


# Footnotes and type


def _add_mark(marks: str, style: str = RAISED) -> ChangeCell:
    def change(cell: Cell, random: Random) -> Cell:
        mark = Run(random.choice(marks), style)
        # a digit after 2 or 10 is a power
        if cell.printed in ("2", "10"):
            mark = Run("*", style)
        return replace(cell, runs=(*cell.runs, mark))

    return change


def _embolden(cell: Cell, _: Random) -> Cell:
    first, *others = cell.runs
    return replace(cell, runs=(replace(first, style=BOLD), *others))


def _insert_invisible(cell: Cell, random: Random) -> Cell:
    """Insert a character of no width into a figure."""
    first, *others = cell.runs
    at = random.randint(0, len(first.text))
    text = first.text[:at] + random.choice("\u200b\u2060\ufeff\u00ad") + first.text[at:]
    return replace(cell, runs=(replace(first, text=text), *others))


# Columns and rows


def _shuffle_columns(table: Table, random: Random) -> None:
    order = random.sample(range(len(table.columns)), len(table.columns))
    table.columns = tuple(table.columns[place] for place in order)
    table.rows = [[row[place] for place in order] for row in table.rows]


def _blank_labels(table: Table, random: Random) -> None:
    if "variant" not in table.fields:
        return
    for column in columns_of(table, *LABELS_LEFT_BLANK):
        random.choice(table.rows)[column] = to_cell("")


def _merge_labels(table: Table, _: Random) -> None:
    """Print the model of several rows once, in a cell that spans them."""
    for column in columns_of(table, "model"):
        first = table.rows[0][column]
        for row in table.rows:
            row[column] = replace(first, spans=(0, 0))
        table.rows[0][column] = replace(first, spans=(1, len(table.rows)))


def _merge_figures(table: Table, random: Random) -> None:
    """Print one figure in a cell that spans two columns of figures: nothing may be read from it."""
    row = random.choice(table.rows)
    figures = [place for place, cell in enumerate(row) if cell.value is not None]
    pairs = [place for place in figures if place + 1 in figures]
    if pairs:
        at = random.choice(pairs)
        merged = mark_unreadable(row[at])
        row[at] = replace(merged, spans=(2, 1))
        row[at + 1] = replace(merged, spans=(0, 0))


def _add_note(table: Table, random: Random) -> None:
    table.note = random.choice(("Measured with 4 hosts", "1 Preview", "Results of 2023"))


MUTATIONS = {
    "column order": Mutation(_change_tables(_shuffle_columns), plain=True),
    "no thousands mark": Mutation(_change_figures(_group("")), plain=True),
    "blank labels": Mutation(_change_tables(_blank_labels), plain=True),
    "footnote raised": Mutation(_change_figures(_add_mark("123abc*†"), 0.3)),
    "footnote symbol": Mutation(_change_figures(_add_mark("*†‡§¹²", ""), 0.3)),
    "bold": Mutation(_change_figures(_embolden, 0.3), plain=True),
    "zero width": Mutation(_change_figures(_insert_invisible, 0.3), HTML),
    "merged labels": Mutation(_change_tables(_merge_labels), HTML, plain=True),
    "merged figures": Mutation(_change_tables(_merge_figures), HTML),
    "notes row": Mutation(_change_tables(_add_note), plain=True),
    "decimal comma": Mutation(_print_commas(proofs=99)),
    "decimal comma, proven in one column": Mutation(_print_commas(proofs=1)),
    UNDECIDABLE: Mutation(_print_commas(proofs=0)),
    "power of ten": Mutation(_change_figures(_write_power, 0.3)),
    "doubtful": Mutation(_change_figures(_write_doubtful, 0.2)),
    "charset: utf-16-be": Mutation(_encode("utf-16-be"), HTML),
}
MUTATIONS |= {f"charset: {name}": Mutation(_encode(name), HTML, plain=True) for name in CHARSETS}
MUTATIONS |= {
    f"thousands: {name}": Mutation(_change_figures(_group(mark)))
    for name, mark in THOUSANDS.items()
}
"""Every mutation by its name."""
