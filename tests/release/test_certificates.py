"""Each figure is followed to the bytes of its source, and no figure that they do not print passes."""

from __future__ import annotations

import base64
import csv
import importlib.util
import json
import random
import re
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from types import ModuleType
from typing import Any

import duckdb
import pytest
from ipu_results.kit.files import PACKAGE

from tests.conftest import once, require
from tests.release import third_checker
from tests.release.certificate_support import (
    FORGERIES,
    RAW,
    Line,
    certify,
    forge_source,
    hash_path,
    read_lines,
    rewrite_cell,
    select_by_source,
    shrink,
    write_lines,
    write_sums,
)

CHECKER = PACKAGE / "release" / "checker.py"
SEED = 53
FEW = {"csv": 8, "html": 4, "pdf": 3, "minutes": 3, "recomputed": 3, "finding": 1, "relation": 2}


def load_checker(source: str | None = None) -> ModuleType:
    """Load the checker, or a mutant of it."""
    if source is None:
        source = CHECKER.read_text(encoding="utf-8")
    spec = importlib.util.spec_from_loader("checker", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(source, str(CHECKER), "exec"), module.__dict__)
    return module


checker = load_checker()


@pytest.fixture(scope="session")
def certified(
    tmp_path_factory: pytest.TempPathFactory, database: duckdb.DuckDBPyConnection
) -> Path:
    with once(tmp_path_factory, "certified") as (folder, first):
        if first:
            certify(database, folder / "release")
    return folder / "release"


@pytest.fixture(scope="session")
def lines(certified: Path) -> dict[str, list[Line]]:
    return select_by_source(read_lines(certified))


@pytest.fixture(scope="session")
def few(certified: Path, lines: dict[str, list[Line]], tmp_path_factory: Any) -> Path:
    """Make a release of a few certificates of each kind, which takes a moment to check."""
    rng = random.Random(SEED)
    chosen = []
    for kind, count in FEW.items():
        stating = [line for line in lines[kind] if "stated" in line or "files" in line]
        # a recomputation keeps the entries that it read, which then need their own certificate
        stating = [line for line in stating if "mlperf_entries.csv" not in line.get("rows", {})]
        chosen += rng.sample(stating, count)
    chosen += find_telling(lines, certified)
    return shrink(certified, tmp_path_factory.mktemp("few") / "release", chosen)


def find_telling(lines: dict[str, list[Line]], certified: Path) -> Iterator[Line]:
    """Yield a printed time, a score with a run that does not count, a figure of one chip, which two
    columns state, two rows of the same figure, and a labelled fact.
    """
    yield next(line for line in lines["html"] if line["raw"] == "23h 43m")
    yield next(line for line in lines["minutes"] if not line["logs"][0]["counted"])
    with (certified / "results.csv").open(encoding="utf-8", newline="") as file:
        alone = {row["result_id"] for row in csv.DictReader(file) if row["chip_count"] == "1"}
    stating = [line for line in lines["csv"] if line.get("in") == "throughput"]
    yield next(line for line in stating if line["key"]["result_id"] in alone)
    yield from [line for line in lines["csv"] if line.get("in") == "chip_count"][:2]
    yield next(line for line in lines["pdf"] if line["raw"] == "10,000")
    yield next(line for line in lines["csv"] if "stated" not in line)
    yield from find_twins(lines["csv"])


def find_twins(lines: list[Line]) -> tuple[Line, Line]:
    """Return two figures that two sources print in the same words at the same place."""
    seen: dict[tuple[str, str], Line] = {}
    for line in lines:
        twin = seen.setdefault((line["locator"], line["raw"]), line)
        if twin["file"] != line["file"]:
            return twin, line
    raise LookupError("no two sources print the same at one place")


def is_accepted(module: ModuleType, line: Line, release: Path, raw: Path = RAW) -> bool:
    return is_passed(lambda: module.Checker(release, raw).check_line(line))


def is_passed(check: Callable[[], object]) -> bool:
    try:
        check()
    except (ValueError, LookupError, TypeError, AttributeError, OSError):
        return False
    return True


def test_each_printed_figure_has_one_line(
    lines: dict[str, list[Line]], database: duckdb.DuckDBPyConnection
) -> None:
    printed = [line for kind in ("csv", "html", "pdf") for line in lines[kind]]
    ((count, stating),) = database.execute(
        "SELECT count(value), count(factor) FROM cells"
    ).fetchall()
    assert len(printed) == len({line["id"] for line in printed}) == count > 60_000
    assert sum("stated" in line for line in printed) == stating
    assert len(lines["minutes"]) > 2_000
    assert len(lines["recomputed"]) > 300
    assert {line["id"] for line in lines["finding"]} >= {"bow", "scaling", "forty_times"}


def test_lines_are_the_same_each_time(
    certified: Path, database: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    again = certify(database, tmp_path / "again")
    assert hash_path(again / "certificates.jsonl") == hash_path(certified / "certificates.jsonl")


def test_certificates_of_the_record_hold(certified: Path, lines: dict[str, list[Line]]) -> None:
    following = checker.Checker(certified, RAW)
    rng = random.Random(SEED)
    for kind in ("html", "pdf", "minutes", "recomputed"):
        for line in lines[kind]:
            following.check_line(line)
    for line in rng.sample(lines["csv"], 5_000):
        following.check_line(line)
    assert following.counts["logs read"] == 0
    assert following.counts["logs"] > 20_000


@pytest.mark.parametrize("kind", FORGERIES)
def test_forged_figures_are_refused(
    kind: str, certified: Path, lines: dict[str, list[Line]]
) -> None:
    """2,000 of each kind of source, by seed."""
    following = checker.Checker(certified, RAW)
    rng = random.Random(f"{SEED} {kind}")
    accepted = []
    for number in range(2_000):
        line = rng.choice(lines[kind])
        following.check_line(line)
        forge = FORGERIES[kind][number % len(FORGERIES[kind])]
        forged = forge(line, rng)
        if is_passed(lambda forged=forged: following.check_line(forged)):
            accepted.append((forge.__name__, line, forged))
    assert accepted == []


@pytest.mark.parametrize(("kind", "count"), [("csv", 40), ("html", 60), ("pdf", 100)])
def test_figures_that_a_source_no_longer_prints_are_refused(
    kind: str, count: int, certified: Path, lines: dict[str, list[Line]], tmp_path: Path
) -> None:
    rng = random.Random(f"{SEED} {kind}")
    small = [line for line in lines[kind] if (RAW / line["file"]).stat().st_size < 50_000]
    accepted = []
    for number in range(count):
        line = rng.choice(small)
        raw = tmp_path / str(number)
        forged = forge_source(line, raw, rng)
        if is_accepted(checker, forged, certified, raw) or is_accepted(
            checker, line, certified, raw
        ):
            accepted.append(line)
    assert accepted == []


# Whole releases in which one link is broken


def edit_lines(edit: Callable[[dict[str, list[Line]]], None]) -> Callable[[Path], None]:
    """Return a change of certificates, with checksums that fit."""

    def change(folder: Path) -> None:
        lines = read_lines(folder)
        edit(select_by_source(lines))
        write_lines(folder, [line for line in lines if line])

    return change


def edit_table(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text(encoding="utf-8")
        changed, count = re.subn(old, new, text, count=1)
        assert count, old
        (folder / name).write_text(changed, encoding="utf-8")
        write_sums(folder)

    return change


def name_other_row(lines: dict[str, list[Line]]) -> None:
    """Name another row that states the same figure."""
    first, second = [line for line in lines["csv"] if line.get("in") == "chip_count"][-2:]
    assert first["figure"] == second["figure"]
    first["key"] = second["key"]


def name_other_column(lines: dict[str, list[Line]]) -> None:
    """Name another column that states the same figure."""
    [*_, line] = [line for line in lines["csv"] if line.get("in") == "throughput"]
    line["in"] = "throughput_per_chip"


def leave_out_factor(lines: dict[str, list[Line]]) -> None:
    """State that no table has the figure, so that its row can hold any other."""
    line = next(line for line in lines["csv"] if "stated" in line)
    for name in ("stated", "key", "in", "figure"):
        del line[name]
    line["factor"] = None


def name_other_place(lines: dict[str, list[Line]]) -> None:
    """Name another place of the same text in the same file."""
    first, second = [line for line in lines["csv"] if line.get("in") == "chip_count"][-2:]
    assert first["file"] == second["file"]
    assert first["raw"] == second["raw"]
    first["locator"] = second["locator"]


def leave_out_slowest(lines: dict[str, list[Line]]) -> None:
    """Say that the slowest run does not count, which the mean leaves out anyway."""
    scores = [line for line in lines["minutes"] if all(log["counted"] for log in line["logs"])]
    slowest = max(scores[0]["logs"], key=lambda log: float(log["minutes"]))
    slowest["counted"] = False


def state_cell_twice(folder: Path) -> None:
    """Add a row with the key of another."""
    path = folder / "cells.csv"
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*rows, rows[-1]]), encoding="utf-8")
    write_sums(folder)


def forge_cell_alone(folder: Path) -> None:
    """Change a value in the cell, and not in its certificate."""
    line = next(line for line in read_lines(folder) if "raw" in line)
    result_id, number = line["id"].split()
    key = {"result_id": result_id, "cell_number": number}
    rewrite_cell(folder / "cells.csv", key, "value", line["value"] + 1)
    write_sums(folder)


def spell_id_otherwise(lines: dict[str, list[Line]]) -> None:
    """Put a second certificate of one cell in the place of that of another."""
    first, second = lines["html"][:2]
    second.update(first, id=f"{first['id']} 0")


def name_other_document(lines: dict[str, list[Line]]) -> None:
    first, second = find_twins(lines["csv"])
    first["file"], first["sha256"] = second["file"], second["sha256"]


def name_other_table(table: str) -> Callable[[Path], None]:
    """Return a change that names a table of the forger's own, which states the same figure."""

    def change(folder: Path) -> None:
        shutil.copy(folder / table, folder / "more.csv")
        lines = read_lines(folder)
        line = next(line for line in lines if line.get("stated") == table)
        line["stated"] = "more.csv"
        write_lines(folder, lines)

    return change


def forge_cell(column: str) -> Callable[[Path], None]:
    """Return a change of a value or factor in a certificate and in the cell, too."""

    def change(folder: Path) -> None:
        lines = read_lines(folder)
        stating = column == "factor"
        line = next(line for line in lines if ("stated" in line) == stating and "raw" in line)
        line[column] *= 1000
        result_id, number = line["id"].split()
        key = {"result_id": result_id, "cell_number": number}
        rewrite_cell(folder / "cells.csv", key, column, line[column])
        write_lines(folder, lines)

    return change


def forge_bytes(folder: Path) -> None:
    """State other bytes of a source in its certificates and in its document."""
    lines = read_lines(folder)
    file = next(line["file"] for line in lines if line["kind"] == "printed")
    rewrite_cell(folder / "documents.csv", {"file": file}, "sha256", "0" * 64)
    for line in lines:
        if line.get("file") == file:
            line["sha256"] = "0" * 64
    write_lines(folder, lines)


def forge_score(folder: Path) -> None:
    """Change a score in its certificate and in its entry."""
    lines = read_lines(folder)
    line = next(line for line in lines if line["kind"] == "minutes")
    state_score(folder, lines, line, line["figure"] + 1)


def forge_score_factor(folder: Path) -> None:
    """Change the factor of a score, and the score to fit."""
    lines = read_lines(folder)
    line = next(line for line in lines if line["kind"] == "minutes")
    line["factor"] *= 2
    state_score(folder, lines, line, line["figure"] * 2)


def leave_out_no_run(folder: Path) -> None:
    """Make a score the mean of all of its runs."""
    lines = read_lines(folder)
    scores = [line for line in lines if line["kind"] == "minutes"]
    line = next(line for line in scores if all(log["counted"] for log in line["logs"]))
    line["drop"] = 0
    mean = fmean(log["minutes"] for log in line["logs"])
    state_score(folder, lines, line, mean * line["factor"])


def state_score(folder: Path, lines: list[Line], line: Line, figure: float) -> None:
    line["figure"] = figure
    rewrite_cell(folder / "mlperf_entries.csv", line["key"], "minutes", figure)
    write_lines(folder, lines)


def add_log(lines: dict[str, list[Line]]) -> None:
    logs = lines["minutes"][0]["logs"]
    logs.append(logs[-1])


def exchange(lines: dict[str, list[Line]], *names: str) -> None:
    """Exchange fields of two lines of HTML."""
    first, second = lines["html"][:2]
    for name in names:
        first[name], second[name] = second[name], first[name]


def edit_bytes(folder: Path) -> None:
    with (folder / "results.csv").open("ab") as file:
        file.write(b"\n")


def leave_out_file(folder: Path) -> None:
    (folder / "models.csv").unlink()


def edit_read_file(folder: Path) -> None:
    """Change the digest of a file that a finding read."""
    path = folder / "certificates.jsonl"
    text = path.read_text(encoding="utf-8")
    changed, count = re.subn(r'("files": \{"[^"]*": ")', r"\g<1>0", text, count=1)
    assert count
    path.write_text(changed, encoding="utf-8")
    write_sums(folder)


def add_copy(source: str, **changed: Any) -> Callable[[Path], None]:
    """Return a change that adds a copy of a line of a kind, with other fields."""

    def change(folder: Path) -> None:
        lines = read_lines(folder)
        line = next(line for line in lines if line["kind"] == source and "stated" in line)
        write_lines(folder, [*lines, {**line, **changed}])

    return change


def state_no_figure(lines: dict[str, list[Line]]) -> None:
    """Name a column that is not there, and no figure."""
    line = lines["recomputed"][0]
    del line["figure"]
    line["in"] = "nothing"


def state_null(folder: Path) -> None:
    """Name an empty cell, and null as its figure."""
    lines = read_lines(folder)
    line = next(line for line in lines if line["kind"] == "recomputed")
    key = {name: str(value) for name, value in line["key"].items()}
    rewrite_cell(folder / line["stated"], key, line["in"], "")
    line["figure"] = None
    write_lines(folder, lines)


BROKEN: dict[str, Callable[[Path], None]] = {
    "bytes of a table": edit_bytes,
    "a table is gone": leave_out_file,
    "other file was read": edit_read_file,
    "no figure": edit_lines(lambda lines: lines["html"][0].update(raw="x")),
    "other text": edit_lines(lambda lines: lines["html"][0].update(raw="1")),
    "other bytes": edit_lines(lambda lines: lines["csv"][0].update(sha256="0" * 64)),
    "other value": edit_lines(lambda lines: lines["pdf"][0].update(value=1.0)),
    "other factor": edit_lines(lambda lines: lines["csv"][0].update(factor=7.0)),
    "other figure": edit_table("mlperf_entries.csv", r"(\d+\.\d+),", r"1\1,"),
    "other id": edit_lines(lambda lines: exchange(lines, "id")),
    "other row": edit_lines(lambda lines: exchange(lines, "key", "in", "figure")),
    "other row of this figure": edit_lines(name_other_row),
    "other column of this figure": edit_lines(name_other_column),
    "other column": edit_lines(lambda lines: lines["csv"][0].update(column="x")),
    "other place": edit_lines(lambda lines: exchange(lines, "locator")),
    "other place of this text": edit_lines(name_other_place),
    "no factor": edit_lines(leave_out_factor),
    "other document": edit_lines(name_other_document),
    "other table of this figure": name_other_table("results.csv"),
    "other table of this score": name_other_table("mlperf_entries.csv"),
    "other digits": edit_lines(lambda lines: lines["csv"][0].update(digits=12)),
    "other bytes in the document, too": forge_bytes,
    "other value in the cell": forge_cell_alone,
    "a cell is there twice": state_cell_twice,
    "other value in the cell, too": forge_cell("value"),
    "other factor in the cell, too": forge_cell("factor"),
    "other minutes in the entry, too": forge_score,
    "other factor of a score": forge_score_factor,
    "mean of all runs in the entry, too": leave_out_no_run,
    "two certificates of one cell": edit_lines(spell_id_otherwise),
    "no certificate": edit_lines(lambda lines: lines["html"][0].clear()),
    "no minutes": edit_lines(lambda lines: lines["minutes"][0].clear()),
    "a certificate is there twice": add_copy("printed"),
    "a score is there twice": add_copy("minutes"),
    "an id of three words": edit_lines(
        lambda lines: lines["html"][0].update(id=f"{lines['html'][0]['id']} 0")
    ),
    "no figure of a recomputation": edit_lines(state_no_figure),
    "an empty figure": state_null,
    # kinds that the format does not have, but for which a checker has a function
    "other kind": add_copy("printed", kind="stated"),
    "other kind for the script": add_copy("printed", kind="checkStated"),
    "other log": edit_lines(lambda lines: lines["minutes"][0]["logs"][0].update(sha256="x")),
    "other run": edit_lines(lambda lines: lines["minutes"][0]["logs"][0].update(minutes=1.0)),
    "other count of runs": edit_lines(leave_out_slowest),
    "log left out": edit_lines(lambda lines: lines["minutes"][0]["logs"].pop()),
    "log added": edit_lines(add_log),
    "other drop": edit_lines(lambda lines: lines["minutes"][0].update(drop=0)),
    "row that is gone": edit_lines(
        lambda lines: next(iter(lines["recomputed"][0]["rows"].values())).append("0" * 64)
    ),
    "other recomputation": edit_lines(lambda lines: lines["recomputed"][0].update(figure=7.0)),
}


def check_broken(module: ModuleType, few: Path, folder: Path, kind: str) -> bool:
    """Return whether a release passes in which one link is broken."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(few, folder)
    BROKEN[kind](folder)
    return is_passed(module.Checker(folder, RAW).check_all)


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_link_is_found(kind: str, few: Path, tmp_path: Path) -> None:
    assert is_passed(checker.Checker(few, RAW).check_all)
    assert not check_broken(load_checker(), few, tmp_path / "broken", kind)


def test_exchanged_certificates_that_fit_are_found_by_the_root_digest(
    few: Path, tmp_path: Path
) -> None:
    """Nothing inside a release tells that two of its rows changed places with all that names them."""
    folder = Path(shutil.copytree(few, tmp_path / "exchanged"))
    first, second, *_ = [line["key"]["result_id"] for line in read_lines(few)[8:12]]
    lines = []
    for path in folder.rglob("*.*"):
        if path.is_file() and path.suffix in {".csv", ".jsonl"}:
            text = path.read_text(encoding="utf-8")
            parts = [part.replace(second, first) for part in text.split(first)]
            path.write_text(second.join(parts), encoding="utf-8")
    lines = read_lines(folder)
    write_lines(folder, lines)
    assert hash_path(folder / "certificates.jsonl") != hash_path(few / "certificates.jsonl")
    root = hash_path(few / "SHA256SUMS")
    assert is_passed(load_checker().Checker(few, RAW, root).check_all)
    assert is_passed(load_checker().Checker(folder, RAW).check_all)
    with pytest.raises(ValueError, match="SHA256SUMS has other bytes"):
        load_checker().Checker(folder, RAW, root).check_all()


@pytest.mark.parametrize("kind", ["", *BROKEN])
def test_checker_written_from_the_page_says_the_same(kind: str, few: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(few, tmp_path / "release"))
    if kind:
        BROKEN[kind](folder)
    root = hash_path(folder / "SHA256SUMS")
    try:
        third_checker.check(folder, RAW, root)
    except (AssertionError, ValueError, LookupError, TypeError, OSError, duckdb.Error):
        assert kind
    else:
        assert not kind


def test_checker_says_yes_or_the_first_broken_link(few: Path, tmp_path: Path) -> None:
    """It runs alone: without the package, and with the standard library only."""
    program = Path(shutil.copy(CHECKER, tmp_path / "checker.py"))
    said = run_checker(program, few)
    assert said.startswith("yes, for root ")
    assert "'printed': 23" in said
    assert said.endswith("no statement was run")
    folder = Path(shutil.copytree(few, tmp_path / "broken"))
    BROKEN["other text"](folder)
    assert re.match(
        r"no: line \d+: ValueError\(.* at table \d+, row \d+", run_checker(program, folder)
    )


def run_checker(program: Path, release: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-S", program, release, RAW],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == int(done.stdout == "")
    return done.stdout.strip() or done.stderr.strip()


TIMES = (("run_start", 1_000), ("run_start", 61_000), ("run_stop", 241_000), ("run_stop", 9_999))
LOG = "".join(f'0 :::MLLOG {{"key": "{key}", "time_ms": {time}}}\n' for key, time in TIMES)


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log with two starts and two ends: the last start before the first end counts."""
    path = tmp_path_factory.mktemp("logs") / "v9.9" / "a" / "b.txt"
    path.parent.mkdir(parents=True)
    path.write_text(LOG, encoding="utf-8")
    return path


def check_log(module: ModuleType, few: Path, log: Path, **changed: Any) -> dict[str, int]:
    following = module.Checker(few, RAW)
    said = {"file": log.name, "sha256": hash_path(log), "minutes": 3.0, **changed}
    following.check_log(log.parents[1], log.parent.name, said, said["minutes"])
    return dict(following.counts)


def test_lines_of_a_log_are_read(few: Path, log: Path) -> None:
    assert check_log(checker, few, log) == {"logs": 1, "logs read": 1}
    with pytest.raises(ValueError, match=r"has times of 3\.0"):
        check_log(checker, few, log, minutes=3.001)
    with pytest.raises(ValueError, match="has other bytes"):
        check_log(checker, few, log, sha256="0" * 64)


# The checker for browsers and Node.js

SCRIPT = PACKAGE / "release" / "checker.mjs"
DRIVER = Path(__file__).with_name("judge.mjs")


def run_script(script: Path, jobs: list[dict[str, Any]], folder: Path) -> list[Any]:
    """Return what the checker says of each job: of each of its lines, else of a whole release."""
    require(shutil.which("node") is not None, "Node.js is not installed")
    path = folder / "jobs.json"
    path.write_text(json.dumps(jobs), encoding="utf-8")
    done = subprocess.run(
        ["node", DRIVER, script, path], capture_output=True, text=True, check=True
    )
    verdicts: list[Any] = json.loads(done.stdout)
    return verdicts


@pytest.mark.parametrize("kind", FORGERIES)
def test_forged_figures_are_refused_by_the_script(
    kind: str, certified: Path, lines: dict[str, list[Line]], tmp_path: Path
) -> None:
    """2,000 of each kind of source, by seed, and the figures that the sources print accepted."""
    rng = random.Random(f"{SEED} {kind}")
    sound = rng.choices(lines[kind], k=2_000)
    forged = [
        FORGERIES[kind][number % len(FORGERIES[kind])](line, rng)
        for number, line in enumerate(sound)
    ]
    job = {"release": str(certified), "raw": str(RAW)}
    jobs = [{**job, "lines": sound}, {**job, "lines": forged}]
    accepted, refused = run_script(SCRIPT, jobs, tmp_path)
    assert accepted == [True] * len(sound)
    assert refused == [False] * len(forged)


@pytest.fixture(scope="session")
def broken(few: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Make a sound release and one with each kind of broken link, as jobs."""
    folder = tmp_path_factory.mktemp("broken")
    folders = [few]
    for kind, tamper in BROKEN.items():
        folders.append(Path(shutil.copytree(few, folder / kind)))
        tamper(folders[-1])
    jobs = [{"release": str(each), "raw": str(RAW)} for each in folders]
    return [*jobs, {**jobs[0], "root": "0" * 64}]


def test_broken_links_are_found_by_the_script(broken: list[dict[str, str]], tmp_path: Path) -> None:
    sound, *refused = run_script(SCRIPT, broken, tmp_path)
    assert sound
    assert not any(refused), dict(zip([*BROKEN, "root"], refused, strict=True))


def test_both_checkers_say_the_same(few: Path, log: Path) -> None:
    """They read the same logs and count the same certificates."""
    logs = log.parents[2]
    said = checker.Checker(few, RAW, "", logs)
    said.check_all()
    require(shutil.which("node") is not None, "Node.js is not installed")
    done = subprocess.run(
        ["node", SCRIPT, few, RAW, "", logs], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"yes, for root {said.root}: ")
    counts = json.loads(done.stdout[done.stdout.index("{") : done.stdout.index("}") + 1])
    assert {name: count for name, count in counts.items() if count} == said.counts


@pytest.mark.slow
def test_whole_release_is_followed_by_both(release: Path) -> None:
    require(shutil.which("node") is not None, "Node.js is not installed")
    root = hash_path(release / "SHA256SUMS")
    for program in (
        [sys.executable, "-I", release / "checker.py"],
        ["node", release / SCRIPT.name],
    ):
        done = subprocess.run(
            [*program, release, RAW, root], capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith(f"yes, for root {root}: ")


# Mutants of the checkers

PAGES = (b'<table><tr><th>a<tr><td rowspan="2">1</td></table>', b"<!-- <table> -->")
RAGGED = b"a,b\n1\n"
BLANK = b"a,b\n\n1,2\n"
QUOTED = b'a,b\n1,2"\n'
SHOWN = b"/F2 10 Tf 12 TL ET\nBT 1 0 0 1 58.5 700 Tm (2) Tj\n"
PACKED = base64.a85encode(zlib.compress(SHOWN))
PDF = (
    b"1 0 obj /Kids [ 2 0 R 2 0 R ] endobj"
    b"2 0 obj /MediaBox [ 0 0 612 792 ] /Contents 3 0 R endobj"
    b"3 0 obj stream\n" + base64.a85encode(zlib.compress(SHOWN + SHOWN)) + b"~> endobj"
)
TWO_PAGES = PDF.replace(base64.a85encode(zlib.compress(SHOWN + SHOWN)), PACKED) * 2

SCRIPT_MUTATIONS = [
    ("* 3600", "* 360"),
    ('replaceAll(",", "")', 'replaceAll(",", ".")'),
    ("column ${index + 1}", "column ${index}"),
    ("row ${at + 1}`, header", "row ${at}`, header"),
    ("0.783", "0.217"),
    ("height - y -", "y -"),
    ("if (line.factor === null) return;\n  const isNear", "return;\n  const isNear"),
    ("if (line.factor === null) return;\n    await", "return;\n    await"),
    ("isRow && isColumn", "isRow || isColumn"),
    ("isScore && isFactor", "isScore || isFactor"),
    ("isFactor && isDrop", "isFactor || isDrop"),
    ("this.seen.minutes.add(key);", ""),
    ("runs.length - line", "minutes.length - line"),
    ("slice(line.drop,", "slice(0,"),
    ("/ kept.length", "/ minutes.length"),
    ('padEnd(5, "u")', 'padEnd(5, "!")'),
    ('split(": ").at(-1)', 'split(": ")[0]'),
    # what a certificate says is compared with its row, field by field
    ('column: "column_name", ', ""),
    ('locator: "locator", ', ""),
    ('value: "value", ', ""),
    (', factor: "factor" }', " }"),
    ('OF_DOCUMENT, "documents.csv"', '{}, "documents.csv"'),
    ('sha256: "sha256", counted', "counted"),
    ('counted: "counted", ', ""),
    (', minutes: "minutes" }', " }"),
]


def list_script_mutants() -> dict[str, str]:
    """Return the script without each of its checks, and with each of the mutations."""
    source = SCRIPT.read_text(encoding="utf-8")
    mutants = {}
    for number, match in enumerate(re.finditer(r"(?<!function )require\(", source)):
        call = source[match.start() :].split("\n")[0]
        text = f"{source[: match.start()]}(() => {{}})({source[match.end() :]}"
        mutants[f"{number} without {call}"] = text
    for old, new in SCRIPT_MUTATIONS:
        assert source.count(old) == 1, old
        mutants[f"{old} is {new}"] = source.replace(old, new)
    return mutants


@pytest.mark.slow
def test_mutants_of_the_script_are_caught(
    broken: list[dict[str, str]], log: Path, tmp_path: Path
) -> None:
    said = {"file": log.name, "sha256": hash_path(log), "minutes": 3.0}
    jobs = [
        *broken,
        {**broken[0], "log": said, "folder": str(log.parent)},
        {**broken[0], "log": {**said, "minutes": 3.001}, "folder": str(log.parent)},
        {**broken[0], "log": {**said, "sha256": "0" * 64}, "folder": str(log.parent)},
    ]
    sources = {"a.html": PAGES[0], "b.html": PAGES[1], "c.pdf": PDF, "d.csv": RAGGED}
    sources |= {"e.pdf": TWO_PAGES, "f.csv": BLANK, "g.csv": QUOTED}
    for name, content in sources.items():
        file = tmp_path / name
        file.write_bytes(content)
        jobs.append({**broken[0], "source": file.name, "folder": str(tmp_path)})
    right = [True, *[False] * (len(broken) - 1), True, False, False, *[False] * len(sources)]
    assert run_script(SCRIPT, jobs, tmp_path) == right
    survivors = []
    for number, (name, source) in enumerate(list_script_mutants().items()):
        mutant = tmp_path / f"mutant{number}.mjs"
        mutant.write_text(source, encoding="utf-8")
        if run_script(mutant, jobs, tmp_path) == right:
            survivors.append(name)
    assert not survivors, "\n".join(survivors)


MUTATIONS = [
    ("* 3600", "* 360"),
    ('.replace(",", "")', '.replace(",", ".")'),
    ("zip(header, row, strict=True), 1", "zip(header, row, strict=True), 2"),
    ("rows[2:], 1", "rows[2:], 2"),
    ("0.783", "0.217"),
    ("float(height) - float(y)", "float(y)"),
    ('if line["factor"] is not None', "if False"),
    ('is_own &= line["in"]', 'is_own |= line["in"]'),
    ('is_own &= line["stated"]', 'is_own |= line["stated"]'),
    ('self.seen["minutes"].add(key)', "pass"),
    ("set(digests) <=", "set(digests) >="),
    ('is_own &= line["factor"]', 'is_own |= line["factor"]'),
    ('is_own &= line["drop"]', 'is_own |= line["drop"]'),
    ("len(runs) - line", "len(minutes) - line"),
    ('line["drop"] : len', "0 : len"),
    ("len(kept) *", "len(minutes) *"),
    # what a certificate says is compared with its row, field by field
    ('"column": "column_name", ', ""),
    ('"locator": "locator", ', ""),
    ('"value": "value", ', ""),
    (', "factor": "factor"}', "}"),
    ('OF_DOCUMENT, "documents.csv"', '{}, "documents.csv"'),
    ('("file", "sha256", "counted", "minutes")', '("file", "counted", "minutes")'),
    ('("file", "sha256", "counted", "minutes")', '("file", "sha256", "minutes")'),
    ('("file", "sha256", "counted", "minutes")', '("file", "sha256", "counted")'),
]


def list_mutants() -> dict[str, str]:
    """Return the checker without each of its checks, and with each of the mutations."""
    source = CHECKER.read_text(encoding="utf-8")
    mutants = {}
    for number, match in enumerate(re.finditer(r"(?<!def )require\(", source)):
        call = source[match.start() :].split("\n")[0]
        text = f"{source[: match.end()]}True or {source[match.end() :]}"
        mutants[f"{number} without {call}"] = text
    for old, new in MUTATIONS:
        assert source.count(old) == 1, old
        mutants[f"{old} is {new}"] = source.replace(old, new)
    return mutants


def find_wrong_verdict(module: ModuleType, few: Path, log: Path, folder: Path) -> str | None:
    """Return the first verdict of a checker that is wrong, None if all are right."""
    if not is_passed(module.Checker(few, RAW).check_all):
        return "a sound release"
    for kind in BROKEN:
        if check_broken(module, few, folder / kind, kind):
            return kind
    if is_passed(module.Checker(few, RAW, "0" * 64).check_all):
        return "other root"
    for page in PAGES:
        if is_passed(lambda page=page: module.read_html(page)):
            return "a page that is not read"
    if is_passed(lambda: module.read_csv(RAGGED)):
        return "a row with too few cells"
    if is_passed(lambda: module.read_pdf(PDF)):
        return "two texts at one place"
    if is_passed(lambda: module.read_pdf(TWO_PAGES)):
        return "two pages"
    if not is_passed(lambda: check_log(module, few, log)):
        return "a sound log"
    if is_passed(lambda: check_log(module, few, log, minutes=3.001)):
        return "a log of other minutes"
    return None


@pytest.mark.slow
def test_mutants_of_the_checker_are_caught(few: Path, log: Path, tmp_path: Path) -> None:
    assert find_wrong_verdict(checker, few, log, tmp_path / "checker") is None
    survivors = []
    for number, (name, source) in enumerate(list_mutants().items()):
        mutant = load_checker(source)
        if find_wrong_verdict(mutant, few, log, tmp_path / str(number)) is None:
            survivors.append(name)
    assert not survivors, "\n".join(survivors)
