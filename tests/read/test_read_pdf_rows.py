"""Titles between the rows of a table, and cells that reach below the name of the next column."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ipu_results.read import ParsedDocument
from reportlab.pdfbase.pdfmetrics import stringWidth

from tests.read.pdf_support import Row, Text, list_rows, read_texts

REGULAR, BOLD = "Times-Roman", "Times-Bold"

X = (100.0, 220.0, 330.0)
HEADER = ("Layer", "Throughput", "Latency")
NAMES = {"Layer": "model", "Throughput": "value", "Latency": "value"}
ROWS = [(f"conv{number}", f"1,{number}74.16", f"{number}.36") for number in range(1, 7)]


def read(*texts: Text, names: dict[str, str] = NAMES) -> ParsedDocument:
    return read_texts(names, texts)


def set_row(y: float, row: Row, font: str = REGULAR, x: Sequence[float] = X) -> list[Text]:
    return [
        (at, y, text, REGULAR if n else font)
        for n, (at, text) in enumerate(zip(x, row, strict=True))
    ]


def set_groups(
    size: int, *, title: str = BOLD, label: str = REGULAR, above: float = 20, x: float = X[0]
) -> list[Text]:
    """Set groups of `size` rows, 12 points apart, each under a title that is `above` points below
    the row before.
    """
    texts, y = set_row(700, HEADER), 700.0
    for number, row in enumerate(ROWS):
        if number % size == 0:
            y -= above
            texts.append((x, y, ("ResNet", "VGG", "AlexNet")[number // size % 3], title))
        y -= 12
        texts += set_row(y, row, label)
    return texts


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        pytest.param(set_groups(2), set(), id="titles of two rows"),
        pytest.param(set_groups(3), set(), id="titles of three rows"),
        pytest.param(set_groups(3, title=REGULAR), {0, 3}, id="font of the labels"),
        pytest.param(set_groups(3, label=BOLD), {0, 3}, id="labels in the font of the titles"),
        pytest.param(set_groups(1, above=20), set(range(6)), id="over every row"),
        pytest.param(set_groups(6), {0}, id="a single line"),
        pytest.param(set_groups(3, above=12), {0, 2, 3}, id="as near to the row above"),
        pytest.param(set_groups(3, x=108.0), {0, 3}, id="not over the left edge"),
        pytest.param(
            [
                (x, y, text, "Times-Italic" if text == "VGG" else font)
                for x, y, text, font in set_groups(2)
            ],
            {0, 2, 4},
            id="two other fonts",
        ),
    ],
)
def test_line_that_may_be_a_part_of_a_label_and_is_no_title_refuses_the_row(
    texts: list[Text], refused: set[int]
) -> None:
    document = read(*texts)
    assert list_rows(document) == [row for number, row in enumerate(ROWS) if number not in refused]
    assert [problem.reason for problem in document.problems] == ["row-width"] * len(refused)


def test_line_of_two_cells_is_not_a_title() -> None:
    names = {
        "Layer": "model",
        "Place": "place",
        "Throughput": "value",
        "Latency": "value",
        "Power": "value",
    }
    x = (100, 180, 260, 340, 420)
    texts, rows = (
        set_row(700, tuple(names), x=x),
        [(row[0], "board", *row[1:], "91.5") for row in ROWS],
    )
    for group in (0, 1):
        texts += set_row(680 - 60 * group, ("ResNet", "all of it"), x=x[:2], font=BOLD)
        for number, row in enumerate(rows[3 * group : 3 * group + 3], 1):
            texts += set_row(680 - 60 * group - 12 * number, row, x=x)
    assert list_rows(read(*texts, names=names)) == [*rows[1:3], *rows[4:]]


@pytest.mark.parametrize(
    ("mark", "dx", "dy", "refused"),
    [
        ("7", 0, -4, True),
        ("k", 0, -4, True),
        ("7", 6, -4, True),
        ("7", 0, 4, True),
        ("7", 12, -4, False),
    ],
)
def test_text_set_lower_or_higher_beyond_the_column_refuses_its_figure(
    mark: str, dx: float, dy: float, refused: bool
) -> None:
    row = ("conv1", "1,174.16", "123,456,789.36")
    end = X[2] + stringWidth(row[2], REGULAR, 10)
    document = read(*set_row(700, HEADER), *set_row(688, row), (end + dx, 688 + dy, mark))
    assert list_rows(document) == ([] if refused else [row])
    assert len(document.problems) == refused


# --- cells that reach below the next name


LONG = "2 chips on different boards and"
WIDE_HEADER = ("Layer", "Throughput in all", "Latency")
WIDE = {"Layer": "model", "Throughput in all": "value", "Latency": "value"}
FIRST_ROW = ("one chip", "1,474.16", "1.36")


def set_wide_table(*rows: Row, end: float = 272) -> list[Text]:
    """Set rows with figures at right edges: the second name begins at 205, where a long label has
    not ended.
    """
    texts = set_row(700, WIDE_HEADER, x=(X[0], 205, 340))
    for number, row in enumerate(rows, 1):
        ends = X[0] + stringWidth(row[0], REGULAR, 10), end if row[0] == LONG else 272, 370
        places = [end - stringWidth(text, REGULAR, 10) for end, text in zip(ends, row, strict=True)]
        texts += [text for text in set_row(700 - 12 * number, row, x=places) if text[2]]
    return texts


def test_label_that_reaches_below_the_next_name_is_read_if_every_column_has_a_cell() -> None:
    rows = [FIRST_ROW, (LONG, "9.5", "2.82")]
    document = read(*set_wide_table(*rows), names=WIDE)
    assert stringWidth(LONG, REGULAR, 10) > 205 - X[0]
    assert (document.problems, list_rows(document)) == ((), rows)


@pytest.mark.parametrize(
    ("row", "end"),
    [
        pytest.param(
            ("2 chips on different boards 16", "9.5", "2.82"), 272, id="it may end with a figure"
        ),
        pytest.param((LONG, "", "2.82"), 272, id="a figure is missing"),
        pytest.param((LONG, "9.5", "2.82"), 300, id="no figure under the name"),
    ],
)
def test_label_that_reaches_below_the_next_name_otherwise_refuses_the_row(
    row: Row, end: float
) -> None:
    document = read(*set_wide_table(FIRST_ROW, row, end=end), names=WIDE)
    assert list_rows(document) == [FIRST_ROW]
    assert [problem.reason for problem in document.problems] == ["row-width"]


@pytest.mark.parametrize(("left", "is_read"), [(318.5, True), (313.0, False)])
def test_figure_close_to_the_name_before_its_own_is_under_its_own(
    left: float, is_read: bool
) -> None:
    """The name before ends at 317.4 points: the figure begins within 2 points of it, or below it."""
    header = ("Layer", "Throughput per chip", "Latency", "Power")
    start = 317.4 - stringWidth(header[1], REGULAR, 10)
    rows = [("conv1", "1,474.16", "1.36", "91.5"), ("conv2", "1,500.00", "1175.38", "92.0")]
    texts = [
        *set_row(700, header, x=(100, start, 330, 420)),
        *set_row(688, rows[0], x=(100, 250, 335, 420)),
    ]
    document = read(
        *texts,
        *set_row(676, rows[1], x=(100, 250, left, 420)),
        names=dict.fromkeys(header, "value") | {"Layer": "model"},
    )
    assert list_rows(document) == rows[: 1 + is_read]
