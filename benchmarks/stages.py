"""The pipeline behind the readers, stage by stage, over generated rows: does the time per row stay the same?"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks.child import Outcome, Step, in_child
from benchmarks.environment import peak_mb
from benchmarks.generate import BOW, BOW_GAIN, COLUMNS, Cells, rows
from benchmarks.options import Options
from benchmarks.report import Report, Table, Target

if TYPE_CHECKING:
    from ipu_results.read import ParsedDocument
    from ipu_results.read import SourceTable as Printed
    from ipu_results.sources.catalogue import Document

SIZES, QUICK_SIZES = (10_000, 100_000, 1_000_000), (200, 1_000)
ROWS_A_DOCUMENT = 10_000
STAGES = ("normalise", "check", "arrow", "write")
TIMEOUT_S = 1500.0
LIMIT = 1.25

Output = TypeVar("Output")


def measure(count: int) -> Iterator[Step]:
    """Run each stage that `ingest` runs after the readers, on tables that were never printed."""
    from ipu_results.build import LoadedDocument, check_documents  # noqa: PLC0415
    from ipu_results.check.tables import build_document_frame  # noqa: PLC0415
    from ipu_results.normalise import normalise  # noqa: PLC0415
    from ipu_results.schema import table  # noqa: PLC0415
    from ipu_results.schema.frames import build_frame  # noqa: PLC0415
    from ipu_results.schema.vocabulary import load_vocabulary  # noqa: PLC0415
    from ipu_results.store.tables import build_arrow_tables, write_warehouse  # noqa: PLC0415

    vocabulary, parsed = (
        load_vocabulary(),
        {document.document_id: (document, tables) for document, tables in _documents(count)},
    )
    documents = [document for document, _ in parsed.values()]
    yield {"stage": "start", "seconds": 0.0, "peak": peak_mb()}
    seconds = 0.0

    def load(document: Document) -> LoadedDocument:
        nonlocal seconds
        _, tables = parsed[document.document_id]
        normalised, step = _timed("normalise", lambda: normalise(document, tables, vocabulary))
        seconds += step["seconds"]
        return LoadedDocument(tables, normalised)

    checked, step = _timed("check", lambda: check_documents(documents, load, vocabulary))
    yield {"stage": "normalise", "seconds": seconds, "peak": step["peak"]}
    frames = checked.frames
    results, flags = frames["results"], frames["flags"]
    flagged = {"results": len(results), "flagged": int(flags["result_id"].nunique()), "flags": len(flags)}
    yield {**step, "seconds": step["seconds"] - seconds, **flagged}
    frames["documents"] = build_document_frame(documents)
    frames["capture_differences"] = build_frame(table("capture_differences"), [])
    tables, step = _timed("arrow", lambda: build_arrow_tables(frames, ""))
    yield step
    with tempfile.TemporaryDirectory() as folder:
        _, step = _timed("write", lambda: write_warehouse(tables, Path(folder)))
        yield {**step, "megabytes": sum(path.stat().st_size for path in Path(folder).iterdir()) / 1e6}


def _timed(stage: str, run_stage: Callable[[], Output]) -> tuple[Output, Step]:
    start = time.perf_counter()
    output = run_stage()
    return output, {"stage": stage, "seconds": time.perf_counter() - start, "peak": peak_mb()}


def _documents(count: int) -> list[tuple[Document, ParsedDocument]]:
    return [
        _document(number, min(ROWS_A_DOCUMENT, count - first))
        for number, first in enumerate(range(0, count, ROWS_A_DOCUMENT))
    ]


def _document(number: int, count: int) -> tuple[Document, ParsedDocument]:
    """One page with the same configurations on the machines of two generations, a table each."""
    from ipu_results.read import ParsedDocument  # noqa: PLC0415
    from ipu_results.sources.catalogue import Document  # noqa: PLC0415

    tables = (
        _table("pod_inference", rows(count // 2, number)),
        _table("bow_inference", rows(count - count // 2, number, BOW, BOW_GAIN)),
    )
    document_id = f"generated-{number:03}"
    document = Document(
        document_id=document_id,
        title=document_id,
        publisher="generated",
        url="https://example.org",
        kind="transcription",
        licence="CC-BY-4.0",
        sha256=f"{number:064x}",
        reader="graphcore-performance",
        note="generated",
        path=Path(document_id),
        file=document_id,
        published_on=date(2023, 7, 4) + timedelta(days=number),
    )
    return document, ParsedDocument(tables)


def _table(name: str, made: Iterable[Cells]) -> Printed:
    from ipu_results.read import SourceRow  # noqa: PLC0415
    from ipu_results.read import SourceTable as Printed  # noqa: PLC0415

    body = (SourceRow(at, cells, f"{name}, row {at}") for at, cells in enumerate(made, start=1))
    return Printed(name, COLUMNS, tuple(body), name)


def run(options: Options) -> Report:
    sizes = QUICK_SIZES if options.quick else SIZES
    outcomes = {size: in_child(measure, TIMEOUT_S, count=size) for size in sizes}
    return Report(
        "stages",
        "normalise, check, convert and write generated rows",
        [_times(outcomes), _growth(outcomes)],
        _targets(outcomes),
        [*_notes(outcomes), "Each size in a fresh process, run once; the tables stand ready in memory at the start."],
    )


def _steps(outcome: Outcome) -> dict[str, Step]:
    return {step["stage"]: step for step in outcome.steps if step["stage"] in STAGES}


def _times(outcomes: dict[int, Outcome]) -> Table:
    body = [
        (f"{size:,}", stage, step["seconds"], size / step["seconds"], 1e6 * step["seconds"] / size, step["peak"])
        for size, outcome in outcomes.items()
        for stage, step in _steps(outcome).items()
    ]
    for size, outcome in outcomes.items():
        if len(steps := _steps(outcome)) == len(STAGES):
            total = sum(step["seconds"] for step in steps.values())
            body.append((f"{size:,}", "all four", total, size / total, 1e6 * total / size, steps["write"]["peak"]))
    columns = ("rows", "stage", "s", "rows/s", "µs/row", "peak MB after it")
    return Table("Time and peak resident memory by stage", columns, body)


def _growth(outcomes: dict[int, Outcome]) -> Table:
    """Time per row at each size against the size before; 1 is linear, less a fixed cost that weighs less."""
    pairs = list(pairwise(outcomes))
    body = [(stage, *(_ratio(outcomes, stage, *pair) for pair in pairs)) for stage in STAGES]
    columns = ("stage", *(f"{large:,} / {small:,}" for small, large in pairs))
    return Table("Time per row against that of the next smaller size (1 is linear)", columns, body)


def _ratio(outcomes: dict[int, Outcome], stage: str, small: int, large: int) -> float | None:
    before, after = (_steps(outcomes[count]).get(stage) for count in (small, large))
    if before is None or after is None:
        return None
    return float(after["seconds"] / large / (before["seconds"] / small))


def _targets(outcomes: dict[int, Outcome]) -> list[Target]:
    *_, small, large = outcomes
    ratios = {stage: _ratio(outcomes, stage, small, large) for stage in STAGES}
    return [
        Target(f"{stage}: time per row, {large:,} / {small:,} rows", ratio, LIMIT)
        for stage, ratio in ratios.items()
        if ratio is not None
    ]


def _notes(outcomes: dict[int, Outcome]) -> Iterator[str]:
    for size, outcome in outcomes.items():
        if outcome.failure is not None:
            done = list(_steps(outcome))
            yield f"{size:,} rows: {outcome.failure}, in {STAGES[len(done)]}."
        if check := _steps(outcome).get("check"):
            yield f"{size:,} rows: {check['results']:,} results, {check['flagged']:,} of them flagged."
