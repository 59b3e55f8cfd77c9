"""Change what a generated document prints: number formats, footnotes, hidden and struck text,
order, spans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random

from benchmarks.documents.tables import (
    BOLD,
    HIDDEN,
    LABELS_LEFT_BLANK,
    PLAIN,
    RAISED,
    STRUCK,
    UNREADABLE,
    Cell,
    Run,
    Table,
    columns_of,
)

HTML, PDF = frozenset({"html"}), frozenset({"pdf"})
BOTH = HTML | PDF
THOUSANDS = {
    "none": "",
    "blank": " ",
    "nbsp": "\u00a0",
    "thin space": "\u2009",
    "narrow nbsp": "\u202f",
    "apostrophe": "'",
    "high apostrophe": "’",
}
HIDE_HTML = (
    *(
        "display",
        "attribute",
        "class",
        "visibility",
        "opacity",
        "zero-size",
        "background-colour",
        "off-screen",
    ),
    *("screen-reader", "closed-details", "template", "comment", "id-rule", "clip"),
)
HIDE_PDF = ("white", "mode-3", "covered", "zero-size", "clip", "transparent")
RAISE_PDF = ("raised-large", "raised-same-size", "baseline-small")


UNDECIDABLE = "decimal comma, unproven"
"""Every figure is of the form 1,234, and nothing but the language says whether that is a decimal
comma.
"""


@dataclass(slots=True)
class Draft:
    """Tables before they are set, and how to set them: `style` is read by the dialects."""

    tables: list[Table]
    style: dict[str, str] = field(default_factory=dict)


Change = Callable[[Draft, Random], None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of a draft. `plain` ones leave no doubt about any figure and hide nothing."""

    change: Change
    formats: frozenset[str] = BOTH
    plain: bool = False


def change_figures(
    change: Callable[[Cell, Random], Cell], share: float = 1.0, but: tuple[str, ...] = ()
) -> Change:
    """Make a mutation of a function of one figure, applied to this share of them, at least to one."""

    def apply(draft: Draft, random: Random) -> None:
        places = [
            (number, row, column)
            for number, table in enumerate(draft.tables)
            for row, cells in enumerate(table.rows)
            for column, name in enumerate(table.fields)
            if cells[column].value is not None and name not in but and not cells[column].markup
        ]
        chosen = set(random.sample(places, max(1, round(share * len(places))))) if places else set()
        for number, table in enumerate(draft.tables):
            rows = tuple(
                tuple(
                    change(cell, random) if (number, row, column) in chosen else cell
                    for column, cell in enumerate(cells)
                )
                for row, cells in enumerate(table.rows)
            )
            draft.tables[number] = replace(table, rows=rows)

    return apply


def set_style(**style: str) -> Change:
    return lambda draft, _: draft.style.update(style)


# --- number formats


def _group(mark: str) -> Callable[[Cell, Random], Cell]:
    return lambda cell, _: cell.write(cell.text.replace(",", mark))


def _decimal_comma(draft: Draft, random: Random, proof: str) -> None:
    """Print decimal commas.

    Some cell of each column, or of one column, or of none, can be nothing else.
    """
    mark = random.choice(("", ".", "\u00a0"))
    proven: set[str] = set()
    for number, table in enumerate(draft.tables):
        if proof == "column":
            proven.clear()

        def change(cell: Cell, name: str) -> Cell:
            if name in ("batch_size", "time_to_train_s") and "." not in cell.text:
                return cell.write(cell.text.replace(",", mark))
            assert cell.value is not None
            decided = (proof == "column" and name not in proven) or (
                proof == "document" and not proven
            )
            proven.add(name)
            value = (
                Decimal(f"0.{random.randint(1, 999):03}")
                if decided
                else Decimal(random.randint(1, 999999)) / 1000
            )
            text = f"{value:,.3f}".translate({ord(","): mark, ord("."): ","})
            return replace(cell, value=value).write(f"{text} {cell.metric}".strip())

        draft.tables[number] = table.map_figures(change)
    draft.style["lang"] = "de"


def _write_power(cell: Cell, random: Random) -> Cell:
    """Print a figure as a product with a power of ten, in one of the usual ways."""
    exponent = random.choice((-3, -2, 2, 3, 6))
    mantissa = Decimal(random.randint(100, 999)) / 100
    value, way = mantissa.scaleb(exponent), random.randrange(4)
    raised = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    metric = f" {cell.metric}" if cell.metric else ""
    if way == 0:
        return replace(cell.write(f"{mantissa} × 10{raised}{metric}"), value=value)
    if way == 1:
        runs = (Run(f"{mantissa} × 10"), Run(str(exponent).replace("-", "−"), RAISED), Run(metric))
        return replace(cell, runs=runs, text="".join(run.text for run in runs), value=value)
    if way == 2:
        runs = (Run("10"), Run(str(abs(exponent)), RAISED), Run(metric))
        return replace(
            cell,
            runs=runs,
            text="".join(run.text for run in runs),
            value=Decimal(10) ** abs(exponent),
        )
    return replace(cell.write(f"{mantissa}e{exponent}{metric}"), value=value)


DOUBTFUL = (
    *(
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
    ),
    *("{} k", "{}x", "${}", "{}½", "{}M", "{}e3"),
)
DOUBTFUL_WITH_METRIC = 12
"""The first of them are doubtful with the name of a metric after them, too."""


def _write_doubtful(cell: Cell, random: Random) -> Cell:
    """Print something that is not one figure; nothing may be read."""
    form = random.choice(DOUBTFUL[:DOUBTFUL_WITH_METRIC] if cell.metric else DOUBTFUL)
    text = form.format(cell.text.removesuffix(cell.metric).strip(), random.randint(1, 9))
    return mark_unreadable(replace(cell, runs=(Run(f"{text} {cell.metric}".strip()),)))


def mark_unreadable(cell: Cell) -> Cell:
    """Declare that no figure may be read from a cell, only a report is right."""
    return replace(cell, text="", value=None, metric=UNREADABLE)


# --- footnotes and styles


def _add_mark(marks: str) -> Callable[[Cell, Random], Cell]:
    def change(cell: Cell, random: Random) -> Cell:
        """Add a mark, but no digit after 2 or 10: that is a power."""
        mark = random.choice(
            marks.strip("0123456789") or "*" if cell.printed in ("2", "10") else marks
        )
        return replace(cell, runs=(*cell.runs, Run(mark, RAISED)))

    return change


def _add_symbol(cell: Cell, random: Random) -> Cell:
    return replace(cell, runs=(*cell.runs, Run(random.choice("*†‡§¹²"))))


def _add_run(style: str) -> Callable[[Cell, Random], Cell]:
    """Add struck or hidden text before or after the figure."""

    def change(cell: Cell, random: Random) -> Cell:
        extra = Run(
            random.choice(
                (str(random.randint(1, 9)), f"{random.randint(1, 999)},", f"{cell.text} ")
            ),
            style,
        )
        return replace(
            cell, runs=(extra, *cell.runs) if random.random() < 0.5 else (*cell.runs, extra)
        )

    return change


def _add_technique(style: str, key: str, technique: str) -> Change:
    add = change_figures(_add_run(style), 0.3)

    def change(draft: Draft, random: Random) -> None:
        if key in draft.style:  # one technique per document
            return
        draft.style[key] = technique
        add(draft, random)

    return change


def _style_mark(technique: str) -> Change:
    add = change_figures(_add_mark("123"), 0.3)

    def change(draft: Draft, random: Random) -> None:
        draft.style.setdefault("raise", technique)
        add(draft, random)

    return change


def _hide_rows(draft: Draft, random: Random) -> None:
    draft.style.setdefault(
        "hide", random.choice(("display", "attribute", "class", "visibility", "white"))
    )
    for number, table in enumerate(draft.tables):
        if len(table.rows) > 1:
            hidden = frozenset({random.randrange(len(table.rows))})
            draft.tables[number] = replace(table, hidden_rows=hidden)


def _embolden(cell: Cell, _: Random) -> Cell:
    return replace(
        cell, runs=tuple(Run(run.text, BOLD) if run.style == PLAIN else run for run in cell.runs)
    )


def _insert_invisible(cell: Cell, random: Random) -> Cell:
    """Insert a character of no width into a figure."""
    first, *others = cell.runs
    at = random.randint(0, len(first.text))
    text = first.text[:at] + random.choice("\u200b\u2060\ufeff\u00ad") + first.text[at:]
    return replace(cell, runs=(replace(first, text=text), *others))


# --- columns and rows


def _shuffle_columns(draft: Draft, random: Random) -> None:
    for number, table in enumerate(draft.tables):
        order = random.sample(range(len(table.columns)), len(table.columns))
        rows = tuple(tuple(row[place] for place in order) for row in table.rows)
        draft.tables[number] = replace(
            table, columns=tuple(table.columns[place] for place in order), rows=rows
        )


def _blank_labels(draft: Draft, random: Random) -> None:
    for number, table in enumerate(draft.tables):
        blank = {
            (random.randrange(len(table.rows)), column)
            for column in columns_of(table, *LABELS_LEFT_BLANK)
        }
        if "variant" not in table.fields:
            continue
        rows = tuple(
            tuple(
                Cell((), "") if (row, column) in blank else cell
                for column, cell in enumerate(cells)
            )
            for row, cells in enumerate(table.rows)
        )
        draft.tables[number] = replace(table, rows=rows)


def _merge_labels(draft: Draft, _: Random) -> None:
    """Print the model of several rows once, in a cell that spans them."""
    for number, table in enumerate(draft.tables):
        for column in columns_of(table, "model"):
            first = table.rows[0][column]
            rows = [list(row) for row in table.rows]
            for row in rows:
                row[column] = replace(first, spans=(0, 0))
            rows[0][column] = replace(first, spans=(1, len(rows)))
            draft.tables[number] = replace(table, rows=tuple(map(tuple, rows)))


def _merge_figures(draft: Draft, random: Random) -> None:
    """Print one figure in a cell that spans two figure columns: nothing may be read from it."""
    for number, table in enumerate(draft.tables):
        columns = [place for place, cell in enumerate(table.rows[0]) if cell.value is not None]
        pairs = [place for place in columns if place + 1 in columns]
        if not pairs:
            continue
        at, row = random.choice(pairs), random.randrange(len(table.rows))
        rows = [list(cells) for cells in table.rows]
        rows[row][at] = replace(mark_unreadable(rows[row][at]), spans=(2, 1))
        rows[row][at + 1] = replace(rows[row][at], spans=(0, 0))
        draft.tables[number] = replace(table, rows=tuple(map(tuple, rows)))


def _add_notes(draft: Draft, random: Random) -> None:
    for number, table in enumerate(draft.tables):
        notes = (random.choice(("Measured with 4 hosts", "1 Preview", "Results of 2023")),)
        draft.tables[number] = replace(table, notes=notes)


# --- cells that only HTML has


def _write_markup(*templates: str, unreadable: bool = False) -> Change:
    """Replace the markup of some figures; {0} is the figure.

    Nothing may be read, or the figure unless `unreadable`.
    """

    def change(cell: Cell, random: Random) -> Cell:
        if len(cell.runs) > 1:  # the markup has one text only
            return cell
        changed = replace(cell, markup=random.choice(templates).format(cell.text))
        return mark_unreadable(changed) if unreadable else changed

    return change_figures(change, 0.3)


HTML_CELLS = {
    "input": (
        '<input value="{0}">',
        '<input type="text" readonly value="{0}" size=4>',
        "<output>{0}</output>",
    ),
    "image": (
        '<img alt="{0}" src="f.png">',
        '<svg><text x="0" y="9">{0}</text></svg>',
        "<object>{0}</object>",
    ),
    "cdata": ("<![CDATA[{0}]]>",),
    "nested table": (
        "<table><tr><td>{0}</td></tr></table>",
        "<table><tbody><tr><td>{0}<td></table>",
    ),
    "select": ("<select><option>1<option selected>{0}</select>",),
    "formula": (
        "<math><mn>{0}</mn></math>",
        (
            '<span class="katex"><span class="katex-mathml"><math><mn>{0}</mn></math></span><span'
            ' class="katex-html" aria-hidden="true"><span class="mord">{0}</span></span></span>'
        ),
        r"\({0}\)",
        r"<span class='MathJax'>{0}</span><script type='math/tex'>{0}</script>",
    ),
    "generated content": ('<span class="figure" data-value="{0}"></span>',),
    "custom element": ("<x-figure>{0}</x-figure>", "<slot>{0}</slot>"),
    "ruby": ("<ruby>{0}<rp>(</rp><rt>7</rt><rp>)</rp></ruby>", "{0}<sub>7</sub>"),
    "script": ("<script>document.write('{0}')</script>",),
}
HTML_UNREADABLE_CELLS = {
    "reversed": (
        "<bdo dir=rtl>{0}0</bdo>",
        "<span style='unicode-bidi:bidi-override;direction:rtl'>{0}0</span>",
    ),
    "two lines": (
        "{0}<br>{0}",
        "<p>{0}</p><p>7</p>",
        "<ul><li>{0}<li>7</ul>",
        "<section>{0}</section><nav>7</nav>",
    ),
}
HTML_PLAIN_CELLS = {
    "line break chance": ("<wbr>{0}", "<nobr>{0}</nobr>", "{0}<wbr>"),
    "link": (
        "<a href='#fig'>{0}</a>",
        "<a name=x></a>{0}",
        "<abbr title='7'>{0}</abbr>",
        "<data value=7>{0}</data>",
    ),
    "aria-hidden": (
        '<span aria-hidden="true">{0}</span>',
        '<span title="7" data-sort="7">{0}</span>',
    ),
    "comment inside": ("<!-- 7 -->{0}", "{0}<!---->"),
    "open details": (
        "<details open>{0}</details>",
        "<p>{0}</p>",
        "<main><article>{0}</article></main>",
    ),
}

MUTATIONS: Mapping[str, Mutation] = {
    "column order": Mutation(_shuffle_columns, plain=True),
    "no thousands mark": Mutation(change_figures(_group("")), plain=True),
    "blank labels": Mutation(_blank_labels, plain=True),
    "footnote raised": Mutation(change_figures(_add_mark("123abc*†"), 0.3)),
    "footnote symbol": Mutation(change_figures(_add_symbol, 0.3)),
    "bold": Mutation(change_figures(_embolden, 0.3), plain=True),
    "zero width": Mutation(change_figures(_insert_invisible, 0.3), HTML),
    "merged labels": Mutation(_merge_labels, HTML, plain=True),
    "notes row": Mutation(_add_notes, plain=True),
    **{
        f"cell: {name}": Mutation(_write_markup(*templates), HTML, plain=True)
        for name, templates in HTML_PLAIN_CELLS.items()
    },
    **{
        f"charset: {name}": Mutation(set_style(charset=name), HTML, plain=True)
        for name in ("cp1252", "utf-16", "utf-8-sig", "undeclared", "gb18030", "x-sjis")
    },
    "charset: utf-16-be": Mutation(set_style(charset="utf-16-be"), HTML),
    **{
        f"thousands: {name}": Mutation(change_figures(_group(mark)))
        for name, mark in THOUSANDS.items()
        if mark
    },
    "decimal comma": Mutation(lambda draft, random: _decimal_comma(draft, random, "column")),
    "decimal comma, proven in one column": Mutation(
        lambda draft, random: _decimal_comma(draft, random, "document")
    ),
    UNDECIDABLE: Mutation(lambda draft, random: _decimal_comma(draft, random, "")),
    "power of ten": Mutation(change_figures(_write_power, 0.3, ("batch_size",))),
    "doubtful": Mutation(change_figures(_write_doubtful, 0.2)),
    "struck": Mutation(_add_technique(STRUCK, "strike", "line")),
    **{
        f"struck: {name}": Mutation(_add_technique(STRUCK, "strike", name), HTML)
        for name in ("del", "s", "strike", "style", "class")
    },
    **{
        f"hidden: {name}": Mutation(_add_technique(HIDDEN, "hide", name), HTML)
        for name in HIDE_HTML
    },
    **{f"hidden: {name}": Mutation(_add_technique(HIDDEN, "hide", name), PDF) for name in HIDE_PDF},
    "hidden rows": Mutation(_hide_rows),
    "merged figures": Mutation(_merge_figures, HTML),
    **{
        f"cell: {name}": Mutation(_write_markup(*templates), HTML)
        for name, templates in HTML_CELLS.items()
    },
    **{
        f"cell: {name}": Mutation(_write_markup(*templates, unreadable=True), HTML)
        for name, templates in HTML_UNREADABLE_CELLS.items()
    },
    **{f"footnote: {name}": Mutation(_style_mark(name), PDF) for name in RAISE_PDF},
    "footnote: span": Mutation(_style_mark("span"), HTML),
    "double-struck": Mutation(set_style(double="yes"), PDF),
    "glyph by glyph": Mutation(set_style(glyphs="yes"), PDF, plain=True),
    "letter-spaced": Mutation(set_style(spaced="yes"), PDF, plain=True),
}
"""Every mutation by its name."""
