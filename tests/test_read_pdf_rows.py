"""Titles between the rows of a table, and cells that reach below the name of the next column."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from ipu_results.read import ParsedDocument
from ipu_results.read.pdf import read_pdf
from ipu_results.schema.table_headers import TableHeader
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

REGULAR, BOLD = "Times-Roman", "Times-Bold"
Text = tuple[float, float, str, str]
"""Left edge and baseline in points, text and font."""
Row = tuple[str, ...]

X = (100.0, 220.0, 330.0)
HEADER = ("Layer", "Throughput", "Latency")
NAMES = {"Layer": "model", "Throughput": "value", "Latency": "value"}
ROWS = [(f"conv{number}", f"1,{number}74.16", f"{number}.36") for number in range(1, 7)]


def read(*texts: Text, names: dict[str, str] = NAMES) -> ParsedDocument:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), invariant=1)
    for x, y, text, font in texts:
        canvas.setFont(font, 10)
        canvas.drawString(x, y, text)
    canvas.save()
    return read_pdf(out.getvalue(), [TableHeader("inference-paper", "t", tuple(names.items()), "inference")])


def set_row(y: float, row: Row, font: str = REGULAR, x: Sequence[float] = X) -> list[Text]:
    return [(at, y, text, REGULAR if n else font) for n, (at, text) in enumerate(zip(x, row, strict=True))]


def set_groups(size: int, *, title: str = BOLD, label: str = REGULAR, above: float = 20, x: float = X[0]) -> list[Text]:
    """Set groups of `size` rows, 12 points apart, each under a title that is `above` points below the row before."""
    texts, y = set_row(700, HEADER), 700.0
    for number, row in enumerate(ROWS):
        if number % size == 0:
            y -= above
            texts.append((x, y, ("ResNet", "VGG", "AlexNet")[number // size % 3], title))
        y -= 12
        texts += set_row(y, row, label)
    return texts


def list_rows(document: ParsedDocument) -> list[Row]:
    return [row.cells for table in document.tables for row in table.rows]


@pytest.mark.parametrize("size", [2, 3])
def test_titles_in_a_font_of_their_own_are_no_part_of_a_label(size: int) -> None:
    document = read(*set_groups(size))
    assert (document.problems, list_rows(document)) == ((), ROWS)


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        pytest.param(set_groups(3, title=REGULAR), {0, 3}, id="font of the labels"),
        pytest.param(set_groups(3, label=BOLD), {0, 3}, id="labels in the font of the titles"),
        pytest.param(set_groups(1, above=20), set(range(6)), id="over every row"),
        pytest.param(set_groups(6), {0}, id="a single line"),
        pytest.param(set_groups(3, above=12), {0, 2, 3}, id="as near to the row above"),
        pytest.param(set_groups(3, x=108.0), {0, 3}, id="not over the left edge"),
    ],
)
def test_line_that_may_be_a_part_of_a_label_refuses_the_row(texts: list[Text], refused: set[int]) -> None:
    document = read(*texts)
    assert list_rows(document) == [row for number, row in enumerate(ROWS) if number not in refused]
    assert [problem.reason for problem in document.problems] == ["row-width"] * len(refused)


def test_lines_in_two_other_fonts_are_not_titles() -> None:
    texts = [(x, y, text, "Times-Italic" if text == "VGG" else font) for x, y, text, font in set_groups(2)]
    assert len(list_rows(read(*texts))) == len(ROWS) - 3


# --- cells that reach below the next name


def set_ends(y: float, row: Row, ends: Sequence[float]) -> list[Text]:
    """Set a row with its label on the left and its figures at right edges."""
    return [
        (X[0], y, row[0], REGULAR),
        *((*end_at(end, text)[:1], y, text, REGULAR) for end, text in zip(ends, row[1:], strict=True)),
    ]


ENDS = (220.0, 330.0)
LONG = "2 chips on different boards and"


def test_label_that_reaches_below_the_next_name_is_read_if_every_column_has_a_cell() -> None:
    header = [(100, 700, "Layer", REGULAR), (205, 700, "Throughput in all", REGULAR), (340, 700, "Latency", REGULAR)]
    rows = [("one chip", "1,474.16", "1.36"), (LONG, "9.5", "2.82")]
    names = {"Layer": "model", "Throughput in all": "value", "Latency": "value"}
    document = read(*header, *set_ends(688, rows[0], (272, 370)), *set_ends(676, rows[1], (272, 370)), names=names)
    assert stringWidth(LONG, REGULAR, 10) > 205 - X[0]
    assert (document.problems, list_rows(document)) == ((), rows)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(("2 chips on different boards 16", "9.5", "2.82"), id="it may end with a figure"),
        pytest.param((LONG, "", "2.82"), id="a figure is missing"),
    ],
)
def test_label_that_reaches_below_the_next_name_otherwise_refuses_the_row(row: Row) -> None:
    header = [(100, 700, "Layer", REGULAR), (205, 700, "Throughput in all", REGULAR), (340, 700, "Latency", REGULAR)]
    first = ("one chip", "1,474.16", "1.36")
    names = {"Layer": "model", "Throughput in all": "value", "Latency": "value"}
    texts = [text for text in set_ends(676, row, (272, 370)) if text[2]]
    document = read(*header, *set_ends(688, first, (272, 370)), *texts, names=names)
    assert list_rows(document) == [first]
    assert [problem.reason for problem in document.problems] == ["row-width"]


@pytest.mark.parametrize(("left", "is_read"), [(318.5, True), (313.0, False)])
def test_figure_close_to_the_name_before_its_own_is_under_its_own(left: float, is_read: bool) -> None:
    """`Throughput per chip` ends at about 317: the figure begins within 2 points of it, or below it."""
    header = [
        (100, 700, "Layer", REGULAR),
        (317.4 - stringWidth("Throughput per chip", REGULAR, 10), 700, "Throughput per chip", REGULAR),
        (330, 700, "Latency", REGULAR),
        (420, 700, "Power", REGULAR),
    ]
    names = {"Layer": "model", "Throughput per chip": "value", "Latency": "value", "Power": "value"}
    first = [
        (100, 688, "conv1", REGULAR),
        (250, 688, "1,474.16", REGULAR),
        (335, 688, "1.36", REGULAR),
        (420, 688, "91.5", REGULAR),
    ]
    second = [
        (100, 676, "conv2", REGULAR),
        (250, 676, "1,500.00", REGULAR),
        (left, 676, "1175.38", REGULAR),
        (420, 676, "92.0", REGULAR),
    ]
    document = read(*header, *first, *second, names=names)
    assert list_rows(document) == [tuple(text for _, _, text, _ in row) for row in (first, second)[: 1 + is_read]]
