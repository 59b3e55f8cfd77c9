"""Read thousands of generated documents, and the same ones with other programs, and count what was
read exactly.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from benchmarks.documents.browser import is_installed
from benchmarks.documents.contenders import CONTENDERS, SLOW_CONTENDERS, judge_grids
from benchmarks.documents.hostile import run_hostile, run_ordinary
from benchmarks.documents.hostile_pdf import run_hostile_pdf
from benchmarks.documents.judge import EXACT, REPORTED, SILENT, Verdict, read_and_judge
from benchmarks.documents.mutations import MUTATIONS, UNDECIDABLE
from benchmarks.documents.recipes import QUICK_DIALECTS, Recipe, build_document, draw_recipe
from benchmarks.documents.tables import Table
from benchmarks.documents.typesetters import TYPESETTERS
from benchmarks.report import Options, Report, ReportTable, ReportTarget, Value

DOCUMENTS, QUICK_DOCUMENTS = 5_200, 60
HOSTILE, QUICK_HOSTILE = {"HTML": 2_000, "PDF": 800}, 60
ORDINARY, QUICK_ORDINARY = 200, 24
MIN_ORDINARY = 87.0  # percent of the ordinary pages that are read exactly: 65 of 75
CONTENDED, QUICK_CONTENDED = 400, 12  # documents of each format that the other programs read, too
SLOWLY_CONTENDED = 60
SEED = 14
# Percent of the plain documents. More than half of the pages have styles or scripts, and are told
# here, where no browser has shown them: `ordinary.toml` has the share that is read with evidence.
MIN_EXACT = {"html": 40.0, "pdf": 80.0}
OURS = "ipu-results"
MAX_NOTES = 8
OUTCOMES = (EXACT, REPORTED, SILENT)
COLUMNS = ("documents", *OUTCOMES, "exact %")


@dataclass(frozen=True, slots=True)
class Trial:
    """One document with its verdict."""

    recipe: Recipe
    data: bytes
    tables: list[Table]
    verdict: Verdict


def run_trials(count: int, seed: int = SEED) -> Iterator[Trial]:
    """Build, read and judge documents."""
    random = Random(seed)
    for _ in range(count):
        recipe = draw_recipe(random, QUICK_DIALECTS)
        data, tables = build_document(recipe)
        yield Trial(recipe, data, tables, read_and_judge(data, tables))


def run(options: Options) -> Report:
    """Compare the readers with the known figures and with other programs."""
    trials = list(run_trials(QUICK_DOCUMENTS if options.quick else DOCUMENTS))
    plain = [trial for trial in trials if trial.recipe.is_plain]
    others = [trial for trial in trials if not trial.recipe.is_plain]
    report = Report(
        "documents",
        f"exact, reported or silently wrong, {len(trials):,} generated documents",
        [
            _count(
                "Documents without doubt or hidden parts",
                "dialect",
                plain,
                lambda trial: [trial.recipe.dialect],
            ),
            _count("All other documents", "dialect", others, lambda trial: [trial.recipe.dialect]),
            _count("By mutation", "mutation", trials, lambda trial: trial.recipe.mutations),
            _contend(trials, options.quick),
        ],
    )
    for file_format, limit in MIN_EXACT.items():
        verdicts = [trial.verdict for trial in plain if trial.recipe.file_format == file_format]
        share = 100 * sum(verdict.outcome == EXACT for verdict in verdicts) / max(1, len(verdicts))
        report.targets.append(
            ReportTarget(f"exact plain {file_format} documents, %", share, limit, at_least=True)
        )
    silent = [trial for trial in trials if trial.verdict.outcome == SILENT]
    decidable = [trial for trial in silent if UNDECIDABLE not in trial.recipe.mutations]
    report.targets.append(ReportTarget("silently wrong documents", len(decidable), 0))
    for file_format, judge in {"HTML": run_hostile, "PDF": run_hostile_pdf}.items():
        judged = [*judge(QUICK_HOSTILE if options.quick else HOSTILE[file_format])]
        counts = Counter(verdict.outcome for _, verdict in judged)
        title = f"hostile {file_format} documents"
        report.notes.append(f"{title}: {', '.join(f'{counts[name]} {name}' for name in OUTCOMES)}")
        report.targets.append(ReportTarget(f"silently wrong {title}", counts[SILENT], 0))
        wrong = {name: verdict.reason for name, verdict in judged if verdict.outcome == SILENT}
        report.notes += [f"{title}, {name}: {reason}" for name, reason in wrong.items()]
    if is_installed():
        ordinary = [*run_ordinary(QUICK_ORDINARY if options.quick else ORDINARY)]
        exact = 100 * sum(verdict.outcome == EXACT for _, verdict in ordinary) / len(ordinary)
        misread = sum(verdict.outcome == SILENT for _, verdict in ordinary)
        report.targets += [
            ReportTarget("exact ordinary HTML documents, %", exact, MIN_ORDINARY, at_least=True),
            ReportTarget("silently wrong ordinary HTML documents", misread, 0),
        ]
        told = {name: verdict.reason for name, verdict in ordinary if verdict.outcome == REPORTED}
        report.notes += [f"ordinary page, {name}: {reason}" for name, reason in told.items()]
    report.notes.append(
        f"Judged by what Chromium shows: {'yes' if is_installed() else 'no, set CHROMIUM to one'}."
    )
    report.notes += [
        f"{trial.recipe}: {trial.verdict.reason}" for trial in _pick_shortest(decidable)
    ]
    report.notes.append(
        f"Not counted: {len(silent) - len(decidable)} silently wrong documents with"
        f" {UNDECIDABLE!r}, where nothing tells a decimal comma from a thousands mark."
    )
    report.notes.append(
        f"Optional typesetters that are installed: {', '.join(TYPESETTERS) or 'none'}."
    )
    return report


def _count(title: str, what: str, trials: Iterable[Trial], keys: object) -> ReportTable:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for trial in trials:
        for key in (*keys(trial), f"all {trial.recipe.file_format}"):  # type: ignore[operator]
            counts[key][trial.verdict.outcome] += 1
    rows = [
        _format_row(key, counts[key])
        for key in sorted(counts, key=lambda key: (key.startswith("all"), key))
    ]
    return ReportTable(title, (what, *COLUMNS), rows)


def _format_row(name: str, count: Counter[str]) -> list[Value]:
    return [
        name,
        count.total(),
        *(count[outcome] for outcome in OUTCOMES),
        100 * count[EXACT] / max(1, count.total()),
    ]


def _contend(trials: Iterable[Trial], quick: bool) -> ReportTable:
    """Let the other programs read the first documents of each format."""
    rows: list[list[Value]] = []
    trials = list(trials)
    for file_format, contenders in CONTENDERS.items():
        read = [trial for trial in trials if trial.recipe.file_format == file_format]
        read = read[: QUICK_CONTENDED if quick else CONTENDED]
        rows.append(
            _format_row(f"{file_format}: {OURS}", Counter(trial.verdict.outcome for trial in read))
        )
        for name, reader in contenders.items():
            some = read[:SLOWLY_CONTENDED] if name in SLOW_CONTENDERS else read
            outcomes = Counter(
                judge_grids(reader, trial.data, trial.tables).outcome for trial in some
            )
            rows.append(_format_row(f"{file_format}: {name}", outcomes))
    return ReportTable("The same documents, read by other programs", ("program", *COLUMNS), rows)


def _pick_shortest(trials: Iterable[Trial]) -> list[Trial]:
    """Return one document a mutation or dialect, the simplest first."""
    picked: dict[object, Trial] = {}
    for trial in sorted(trials, key=lambda trial: (len(trial.recipe.mutations), trial.recipe.rows)):
        risky = [name for name in trial.recipe.mutations if not MUTATIONS[name].plain]
        picked.setdefault(risky[0] if risky else trial.recipe.dialect, trial)
    return list(picked.values())[:MAX_NOTES]
