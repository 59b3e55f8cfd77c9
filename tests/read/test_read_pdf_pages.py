"""Tables of a performance page in a PDF: named after their machines, and no row of them lost
without a report.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ipu_results.read import ParsedDocument
from ipu_results.read.pdf import read_pdf
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont

from tests.read.pdf_support import Row, place_rows, read_paper, set_texts
from tests.read.reading_support import LAYOUTS, TRAINING, problems

STEPS = (40, 140, 200, 270, 340, 410, 480, 550, 610)
Line = tuple[float, Sequence[str]]
"""Height on the page, and a text for each column, `""` for none."""


def make_row(model: str, platform: str, figure: str, variant: str = "SL128") -> Row:
    return (model, variant, platform, "SDK 2.4.0", "PyTorch", "SQuAD", "16", "16.16", figure)


POD = [make_row("BERT-Base", "IPU-POD16", "1,000.5"), make_row("GPT2", "IPU-POD64", "2,000")]
BOW = [make_row("BERT-Base", "Bow Pod16", "3,000"), make_row("GPT2", "Bow Pod64", "4,000")]


def list_lines(
    header: Sequence[str], rows: Sequence[Row], y: float = 700, pitch: float = 14
) -> list[Line]:
    return [(y - pitch * place, texts) for place, texts in enumerate((header, *rows))]


def read(*pages: Sequence[Line]) -> ParsedDocument:
    placed = [
        [text for y, texts in lines for text in place_rows(y, [texts], STEPS)] for lines in pages
    ]
    return read_pdf(set_texts(*placed, font="Helvetica", size=8, width=792), LAYOUTS)


def list_tables(document: ParsedDocument) -> dict[str, list[Row]]:
    return {table.name: [row.cells for row in table.rows] for table in document.tables}


def test_tables_with_one_header_are_named_after_their_machines() -> None:
    document = read([*list_lines(TRAINING, POD), *list_lines(TRAINING, BOW, 500)])
    assert list_tables(document) == {"pod_training": POD, "bow_training": BOW}
    assert document.problems == ()


def test_row_with_a_machine_of_another_table_is_a_problem() -> None:
    document = read(list_lines(TRAINING, [*POD, BOW[0]]))
    assert list_tables(document) == {"pod_training": POD}
    assert problems(document) == [("pod_training", 3, "row-width")]


@pytest.mark.parametrize("pitch", [14, 24, 60])
def test_rows_at_any_distance_are_read(pitch: float) -> None:
    document = read(list_lines(TRAINING, POD, pitch=pitch))
    assert list_tables(document) == {"pod_training": POD}


def test_rows_under_an_unknown_header_are_a_problem_and_not_read() -> None:
    other = [make_row("BERT-Large", "IPU-POD16", "7"), make_row("ResNet-50", "IPU-POD64", "8")]
    document = read([*list_lines(TRAINING, POD), *list_lines((*["Name"] * 8, "Speed"), other, 600)])
    assert list_tables(document) == {"pod_training": POD}
    assert problems(document) == [("pod_training", None, "rows-below")]


@pytest.mark.parametrize("offset", [-9, 9])
def test_row_with_a_cell_of_two_lines_is_a_problem(offset: float) -> None:
    lines = list_lines(TRAINING, [*POD, make_row("GPT2", "IPU-POD16", "5")], pitch=24)
    document = read([*lines, (lines[2][0] - offset, ("", "configuration"))])
    assert [row[-1] for row in list_tables(document)["pod_training"]] == ["1,000.5", "5"]
    assert problems(document) == [("pod_training", 2, "row-width")]


def test_note_below_a_table_leaves_its_rows_alone() -> None:
    lines = list_lines(TRAINING, POD)
    document = read([*lines, (lines[-1][0] - 22, ("1 Preview",))])
    assert list_tables(document) == {"pod_training": POD}
    assert document.problems == ()


def test_blank_label_is_blank_unless_another_row_of_the_model_has_it() -> None:
    blank = make_row("GPT2", "IPU-POD64", "2,000", variant="")
    assert list_tables(read(list_lines(TRAINING, [POD[0], blank])))["pod_training"] == [
        POD[0],
        blank,
    ]
    merged = read(
        list_lines(TRAINING, [POD[0], make_row("BERT-Base", "IPU-POD64", "2,000", variant="")])
    )
    assert problems(merged) == [("pod_training", 2, "row-width")]


def test_names_too_close_for_cells_are_a_problem_next_to_a_table() -> None:
    close = (*TRAINING[:7], "Precision Throughput")
    document = read([*list_lines(TRAINING, POD), *list_lines(close, BOW, 500)])
    assert list_tables(document) == {"pod_training": POD}
    assert [problem for problem in problems(document) if problem[2] == "unknown-header"]


def test_digit_that_its_font_draws_raised_is_a_footnote_mark() -> None:
    pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
    texts = place_rows(
        700, [("Batch size", "Latency"), ("2", "1.36\u00b9"), ("4", "1.94")], (100, 200), 20
    )
    plain = set_texts(texts, font="Vera", pageCompression=0)
    data = plain.replace(b"<00B9>", b"<0031>")
    assert data != plain
    (table,) = read_paper(data).tables
    assert [row.cells for row in table.rows] == [("2", "1.36"), ("4", "1.94")]
    assert table.rows[0].footnotes == ((1, "1"),)
