"""Run the pipeline behind the readers stage by stage over generated rows and compare the time per
row.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from ipu_results.build import IngestConfig, check_documents
from ipu_results.record.normalise import NormalisedDocument, normalise
from ipu_results.record.read import ParsedDocument, SourceRow, SourceTable
from ipu_results.record.recompute.evaluate import evaluate_claims
from ipu_results.record.sources.catalogue import Document
from ipu_results.record.store.tables import WarehouseWriter
from ipu_results.schema.vocabulary import load_vocabulary

from benchmarks.generate import BOW, BOW_GAIN, COLUMNS, Cells, generate_rows
from benchmarks.processes import Outcome, Step, read_peak_mb, run_in_child
from benchmarks.report import Options, Report, ReportTable, ReportTarget

SIZES = (10_000, 100_000, 1_000_000)
QUICK_SIZES = (200, 1_000)
ROWS_PER_DOCUMENT = 10_000
STAGES = ("normalise", "check", "claims", "write")
MAX_GROWTH = 1.25

Output = TypeVar("Output")
Steps = dict[str, Step]  # by stage


def measure(count: int) -> Iterator[Step]:
    """Run each stage that `ingest` runs after the readers, on generated tables."""
    vocabulary = load_vocabulary()
    documents = list(_generate_documents(count))
    seconds = 0.0
    generating = 0.0

    def load(document: Document) -> NormalisedDocument:
        nonlocal seconds, generating
        tables, step = _time_stage("generate", lambda: _generate_tables(document, count))
        generating += step["seconds"]
        normalised, step = _time_stage("normalise", lambda: normalise(document, tables, vocabulary))
        seconds += step["seconds"]
        return normalised

    limits = {"memory_limit": IngestConfig().memory_limit}
    with (
        tempfile.TemporaryDirectory() as folder,
        WarehouseWriter(Path(folder), limits) as writer,
    ):
        writer.start()
        checked, step = _time_stage(
            "check", lambda: check_documents(documents, map(load, documents), vocabulary, writer)
        )
        yield {"stage": "normalise", "seconds": seconds, "peak": step["peak"]}
        yield {**step, "seconds": step["seconds"] - seconds - generating}
        claims, step = _time_stage(
            "claims", lambda: evaluate_claims(writer.engine, checked.documents, checked.tables)
        )
        yield step
        writer.add(claims)
        yield _time_stage("write", lambda: writer.finish(""))[1]


def _time_stage(stage: str, run_stage: Callable[[], Output]) -> tuple[Output, Step]:
    start = time.perf_counter()
    output = run_stage()
    return output, {"stage": stage, "seconds": time.perf_counter() - start, "peak": read_peak_mb()}


def _generate_documents(count: int) -> Iterator[Document]:
    for number in range(math.ceil(count / ROWS_PER_DOCUMENT)):
        document_id = f"generated-{number:03}"
        yield Document(
            document_id=document_id,
            title=document_id,
            publisher="generated",
            url="https://example.org",
            kind="transcription",
            licence="CC-BY-4.0",
            sha256=f"{number:064x}",
            reader="performance-page",
            note="generated",
            path=Path(document_id),
            file=document_id,
            published_on=date(2023, 7, 4) + timedelta(days=number),
        )


def _generate_tables(document: Document, count: int) -> ParsedDocument:
    """Generate a page of `count` rows in all, with the same configurations on the machines of two
    generations, a table each.
    """
    number = int(document.sha256, 16)
    size = min(ROWS_PER_DOCUMENT, count - number * ROWS_PER_DOCUMENT)
    pod = generate_rows(size // 2, number)
    bow = generate_rows(size - size // 2, number, BOW, BOW_GAIN)
    return ParsedDocument((_build_table("pod_inference", pod), _build_table("bow_inference", bow)))


def _build_table(name: str, rows: Iterable[Cells]) -> SourceTable:
    body = (
        SourceRow(number, cells, f"{name}, row {number}")
        for number, cells in enumerate(rows, start=1)
    )
    return SourceTable.from_rows(name, COLUMNS, list(body), name)


def run(options: Options) -> Report:
    """Measure each size once, in a fresh process."""
    sizes = QUICK_SIZES if options.quick else SIZES
    outcomes = {}
    steps = {}
    for size in sizes:
        outcomes[size] = run_in_child(measure, count=size)
        steps[size] = {step["stage"]: step for step in outcomes[size].steps}
    growth = []
    columns = ["stage"]
    for small, large in pairwise(sizes):
        growth.append(_compare_sizes(steps, small, large))
        columns.append(f"{large:,} / {small:,}")
    rows = [(stage, *(ratios.get(stage) for ratios in growth)) for stage in STAGES]
    last = growth[-1]
    return Report(
        "stages",
        "normalise, check and write generated rows",
        [
            _tabulate_times(steps),
            ReportTable(
                "Time per row relative to the next smaller size (1 is linear)", columns, rows
            ),
        ],
        [
            ReportTarget(f"{stage}: time per row, {columns[-1]} rows", ratio, MAX_GROWTH)
            for stage, ratio in last.items()
        ],
        [
            *_list_notes(outcomes),
            "Each size in a fresh process, run once. Generating the tables is not counted.",
        ],
    )


def _tabulate_times(steps_of: dict[int, Steps]) -> ReportTable:
    rows = []
    for size, steps in steps_of.items():
        for stage, step in steps.items():
            seconds = step["seconds"]
            speed = size / seconds
            rows.append((f"{size:,}", stage, seconds, speed, 1e6 / speed, step["peak"]))
        if "write" in steps:
            seconds = sum(step["seconds"] for step in steps.values())
            speed = size / seconds
            peak = steps["write"]["peak"]
            rows.append((f"{size:,}", "all four", seconds, speed, 1e6 / speed, peak))
    columns = ("rows", "stage", "s", "rows/s", "µs/row", "peak MB after it")
    return ReportTable("Time and peak resident memory by stage", columns, rows)


def _compare_sizes(steps: dict[int, Steps], small: int, large: int) -> dict[str, float]:
    """Return the ratio of times per row by stage: 1 where time is linear, below it where a fixed
    cost weighs less.
    """
    ratios = {}
    for stage in STAGES:
        if stage in steps[small] and stage in steps[large]:
            before = steps[small][stage]["seconds"] / small
            ratios[stage] = steps[large][stage]["seconds"] / large / before
    return ratios


def _list_notes(outcomes: dict[int, Outcome]) -> Iterator[str]:
    for size, outcome in outcomes.items():
        if outcome.failure is not None:
            yield f"{size:,} rows: {outcome.failure}, in {STAGES[len(outcome.steps)]}."
