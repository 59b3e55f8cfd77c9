"""Read thousands of generated documents, and count what was read exactly."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from random import Random

from benchmarks.documents.browser import is_installed
from benchmarks.documents.hostile import find_contradicted, run_hostile, run_ordinary
from benchmarks.documents.hostile_pdf import run_hostile_pdf
from benchmarks.documents.judge import EXACT, REPORTED, SILENT, Trial, read_and_judge
from benchmarks.documents.mutations import UNDECIDABLE
from benchmarks.documents.recipes import build_document, draw_recipe
from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value

DOCUMENTS = 5_200
HOSTILE_HTML = 2_000
HOSTILE_PDF = 800
ORDINARY = 200
QUICK = 12  # documents of each kind
SEED = 14
PLAIN_HTML = "html, plain"
PLAIN_PDF = "pdf, plain"
ORDINARY_HTML = "html, ordinary"
# Percent that are read exactly. More than half of the plain pages have styles or scripts, and are
# reported where no browser has shown them; of ordinary ones, 65 of 75.
MIN_EXACT = {PLAIN_HTML: 40.0, PLAIN_PDF: 80.0, ORDINARY_HTML: 87.0}
OUTCOMES = (EXACT, REPORTED, SILENT)
COLUMNS = ("kind", "documents", *OUTCOMES, "exact %")


def run_trials(count: int, seed: int = SEED) -> Iterator[Trial]:
    """Build, read and judge documents, in which number formats or spans leave a doubt or not."""
    random = Random(seed)
    for _ in range(count):
        recipe = draw_recipe(random)
        data, tables = build_document(recipe)
        kind = f"{recipe.file_format}, {'plain' if recipe.is_plain else 'others'}"
        name = ", ".join([recipe.dialect, *recipe.mutations])
        yield Trial(kind, name, data, tables, read_and_judge(data, tables))


def run(options: Options) -> Report:
    """Compare the readers with the known figures."""
    limit = QUICK if options.quick else DOCUMENTS
    trials = list(run_trials(limit))
    trials += run_hostile(min(limit, HOSTILE_HTML))
    trials += run_hostile_pdf(min(limit, HOSTILE_PDF))
    if is_installed():
        trials += run_ordinary(min(limit, ORDINARY))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for trial in trials:
        counts[trial.kind][trial.verdict.outcome] += 1
    report = Report(
        "documents",
        f"exact, reported or silently wrong, {len(trials):,} generated documents",
        [ReportTable("Documents by kind", COLUMNS, _format_rows(counts))],
    )
    for kind in counts.keys() & MIN_EXACT.keys():
        exact = _measure_share(counts[kind])
        name = f"exact documents, {kind}, %"
        report.targets.append(ReportTarget(name, exact, MIN_EXACT[kind], at_least=True))
    silent = [trial for trial in trials if trial.verdict.outcome == SILENT]
    wrong = [trial for trial in silent if UNDECIDABLE not in trial.name]
    report.targets.append(ReportTarget("silently wrong documents", len(wrong), 0))
    notes = {f"{trial.name}: {trial.verdict.reason}" for trial in wrong}
    if is_installed():
        contradicted = find_contradicted(limit)
        notes.update(f"{name}: a browser does not show its figures" for name in contradicted)
    for trial in trials:
        # an ordinary page that is not read is of interest, too
        if trial.kind == ORDINARY_HTML and trial.verdict.outcome == REPORTED:
            notes.add(f"{trial.name}: {trial.verdict.reason}")
    report.notes += sorted(notes)
    report.notes += [
        f"Not counted: {len(silent) - len(wrong)} silently wrong documents with {UNDECIDABLE!r}.",
        f"Read and judged with Chromium: {'yes' if is_installed() else 'no, set CHROMIUM to one'}.",
    ]
    return report


def _format_rows(counts: Mapping[str, Counter[str]]) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for name, count in sorted(counts.items()):
        outcomes = [count[outcome] for outcome in OUTCOMES]
        rows.append([name, count.total(), *outcomes, _measure_share(count)])
    return rows


def _measure_share(count: Counter[str]) -> float:
    """Return the percentage that is exact."""
    return 100 * count[EXACT] / count.total()
