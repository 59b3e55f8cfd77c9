"""Make our own transcription of the tables of arXiv:2002.11670: metadata and figures, none of the paper's sentences.

Run as `python raw/qwant/make_transcription.py [TARGET]` with the developers' packages installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The typesetter belongs to the tests, which set other papers with it. Only this script needs it to make the PDF again.
sys.path.insert(0, str(HERE.parents[1]))

from tests.record.read.typeset_paper import Paper, PaperTable  # noqa: E402

TARGET = HERE / "resnext101-c2-2020-02-28.pdf"
TITLE = "Transcription of tables and setup facts: arXiv:2002.11670"

SETUP = (
    "Platform: C2",
    "Chips: 2",
    "SDK version: 1.0.136",
    "Framework: PopART",
    "Model: ResNeXt101",
    "Precision: mixed",
    "Dataset: COCO validation subset",
    "Images: 10,000",
    "Batch per chip: half of the batch size",
)

TABLES = (
    PaperTable(
        "Table 1. Latency (milliseconds per batch)",
        ("Batch size", "Latency"),
        (
            ("2", "1.36"),
            ("4", "1.94"),
            ("6", "2.82"),
            ("8", "3.32"),
            ("10", "4.13"),
            ("12", "4.75"),
        ),
    ),
    PaperTable(
        "Table 2. Throughput (images/second)",
        ("Batch size", "Throughput"),
        (
            ("2", "1474.16"),
            ("4", "2063.03"),
            ("6", "2131.01"),
            ("8", "2409.79"),
            ("10", "2421.82"),
            ("12", "2526.35"),
        ),
    ),
    PaperTable(
        "Table 3. Energy efficiency (images/second/watt)",
        ("Batch size", "Energy efficiency"),
        (
            ("2", "6.51"),
            ("4", "7.80"),
            ("6", "7.87"),
            ("8", "9.07"),
            ("10", "9.68"),
            ("12", "9.49"),
        ),
    ),
)


def make_transcription() -> bytes:
    """Return the PDF, byte for byte the same on every run."""
    paper = Paper(geometry="cvpr", page_numbers=False)
    paper.set_title(TITLE)
    paper.set_lines(("Setup", *SETUP))
    paper.next_column()
    for table in TABLES:
        paper.set_table(table)
    return paper.finish(title=TITLE)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    target.write_bytes(make_transcription())
