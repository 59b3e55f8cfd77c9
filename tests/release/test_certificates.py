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
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest
from ipu_results.kit.files import PACKAGE, hash_file

from tests.cases import read_cases
from tests.conftest import RAW, once, require
from tests.release import third_checker
from tests.release.broken_links import KINDS, break_link, find_twins
from tests.release.certificate_support import (
    FORGERIES,
    Line,
    certify,
    read_lines,
    select_by_source,
    shrink,
    write_lines,
)

CHECKER = PACKAGE / "release" / "checker.py"
SCRIPT = PACKAGE / "release" / "checker.mjs"
DRIVER = Path(__file__).with_name("judge.mjs")
MUTATIONS = read_cases(__file__, "mutations.toml")
SEED = 53
FEW = {"csv": 8, "html": 4, "pdf": 3, "minutes": 3, "recomputed": 3, "finding": 1, "relation": 2}
Job = dict[str, Any]


def load_checker(source: str) -> ModuleType:
    """Load the checker, or a mutant of it."""
    spec = importlib.util.spec_from_loader("checker", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(source, str(CHECKER), "exec"), module.__dict__)
    return module


checker = load_checker(CHECKER.read_text(encoding="utf-8"))


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
    assert hash_file(again / "certificates.jsonl") == hash_file(certified / "certificates.jsonl")


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


def run_script(script: Path, jobs: list[Job], folder: Path) -> list[Any]:
    """Return what the checker for browsers and Node.js says of each job: of each of its lines, else
    of a log or a source, else of a whole release.
    """
    require(shutil.which("node") is not None, "Node.js is not installed")
    path = folder / "jobs.json"
    path.write_text(json.dumps(jobs, default=str), encoding="utf-8")
    done = subprocess.run(
        ["node", DRIVER, script, path], capture_output=True, text=True, check=True
    )
    verdicts: list[Any] = json.loads(done.stdout)
    return verdicts


@pytest.mark.parametrize("kind", FORGERIES)
def test_forged_figures_are_refused(
    kind: str, certified: Path, lines: dict[str, list[Line]], tmp_path: Path
) -> None:
    """2,000 of each kind of source, by seed; the figures that the sources print are accepted."""
    rng = random.Random(f"{SEED} {kind}")
    sound = rng.choices(lines[kind], k=2_000)
    forged = []
    for number, line in enumerate(sound):
        forge = FORGERIES[kind][number % len(FORGERIES[kind])]
        forged.append(forge(line, rng))
    following = checker.Checker(certified, RAW)
    for line in sound:
        following.check_line(line)
    accepted = [line for line in forged if is_passed(lambda line=line: following.check_line(line))]
    assert accepted == []
    job = {"release": certified, "raw": RAW}
    verdicts = run_script(SCRIPT, [{**job, "lines": sound}, {**job, "lines": forged}], tmp_path)
    assert verdicts == [[True] * len(sound), [False] * len(forged)]


@pytest.mark.parametrize("kind", ["csv", "html", "pdf"])
def test_figures_that_a_source_no_longer_prints_are_refused(
    kind: str, certified: Path, lines: dict[str, list[Line]], tmp_path: Path
) -> None:
    """Someone changed a figure in a source, and the digest of the source in the certificate."""
    changed = 0
    small = [line for line in lines[kind] if (RAW / line["file"]).stat().st_size < 50_000]
    for line in random.Random(SEED).choices(small, k=100):
        data = (RAW / line["file"]).read_bytes()
        forged = change_figure(data, line["raw"])
        if forged == data:
            continue
        changed += 1
        source = tmp_path / str(changed) / line["file"]
        source.parent.mkdir(parents=True)
        source.write_bytes(forged)
        following = checker.Checker(certified, tmp_path / str(changed))
        other_digest = {**line, "sha256": hash_file(source)}
        for each in (line, other_digest):
            assert not is_passed(lambda each=each, to=following: to.check_line(each)), each
    assert changed > 10


def change_figure(data: bytes, printed: str) -> bytes:
    """Return a source in which a figure is another one, the same source unless it is there once."""
    if not data.startswith(b"%PDF"):
        return replace_once(data, printed.encode())
    head, packed, tail = re.split(rb"(?s)(?<=stream\n)(.*?)(?=~>)", data, maxsplit=1)
    content = zlib.decompress(base64.a85decode(packed))
    changed = replace_once(content, f"{printed}) Tj".encode())
    if changed == content:
        return data
    return head + base64.a85encode(zlib.compress(changed)) + tail


def replace_once(data: bytes, printed: bytes) -> bytes:
    if data.count(printed) != 1:
        return data
    return data.replace(printed, printed.translate(bytes.maketrans(b"0123456789", b"1234567891")))


# Whole releases in which one link is broken, logs and sources


@pytest.fixture(scope="session")
def broken(few: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Make a release with each kind of broken link."""
    folder = tmp_path_factory.mktemp("broken")
    return {kind: break_link(few, folder / kind, kind) for kind in KINDS}


TIMES = (("run_start", 1_000), ("run_start", 61_000), ("run_stop", 241_000), ("run_stop", 9_999))
LOG = "".join(f'0 :::MLLOG {{"key": "{key}", "time_ms": {time}}}\n' for key, time in TIMES)


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a log with two starts and two ends: the last start before the first end counts."""
    path = tmp_path_factory.mktemp("logs") / "v9.9" / "a" / "b.txt"
    path.parent.mkdir(parents=True)
    path.write_text(LOG, encoding="utf-8")
    return path


def write_pdf(shown: bytes) -> bytes:
    packed = base64.a85encode(zlib.compress(shown))
    return (
        b"1 0 obj /Kids [ 2 0 R 2 0 R ] endobj"
        b"2 0 obj /MediaBox [ 0 0 612 792 ] /Contents 3 0 R endobj"
        b"3 0 obj stream\n" + packed + b"~> endobj"
    )


SHOWN = b"/F2 10 Tf 12 TL ET\nBT 1 0 0 1 58.5 700 Tm (2) Tj\n"
# What no checker reads, as it could be read in two ways.
SOURCES = {
    "span.html": b'<table><tr><th>a<tr><td rowspan="2">1</td></table>',
    "comment.html": b"<!-- <table> -->",
    "two-texts-at-one-place.pdf": write_pdf(SHOWN + SHOWN),
    "two-pages.pdf": write_pdf(SHOWN) * 2,
    "ragged.csv": b"a,b\n1\n",
}
# These the checker in Python reads as its module `csv` does.
SCRIPT_SOURCES = {"blank-line.csv": b"a,b\n\n1,2\n", "quote.csv": b'a,b\n1,2"\n'}


@pytest.fixture(scope="session")
def jobs(
    few: Path, broken: dict[str, Path], log: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Job]:
    """List what the checkers are asked, and whether it holds."""
    job = {"release": few, "raw": RAW, "root": ""}
    jobs = [{**job, "name": "sound", "holds": True}]
    jobs += [{**job, "name": kind, "release": folder} for kind, folder in broken.items()]
    jobs.append({**job, "name": "other root", "root": "0" * 64})
    said = {"file": log.name, "sha256": hash_file(log), "minutes": 3.0}
    job["folder"] = log.parent
    jobs.append({**job, "name": "sound log", "log": said, "holds": True})
    jobs.append({**job, "name": "other minutes", "log": {**said, "minutes": 3.001}})
    jobs.append({**job, "name": "other bytes of a log", "log": {**said, "sha256": "0" * 64}})
    job["folder"] = tmp_path_factory.mktemp("sources")
    for name, content in {**SOURCES, **SCRIPT_SOURCES}.items():
        (job["folder"] / name).write_bytes(content)
        jobs.append({**job, "name": name, "source": name})
    return jobs


def list_wrong(jobs: list[Job], verdicts: Iterable[bool]) -> Iterator[str]:
    for job, verdict in zip(jobs, verdicts, strict=True):
        if verdict != job.get("holds", False):
            yield job["name"]


def judge(module: ModuleType, jobs: list[Job]) -> Iterator[bool]:
    """Yield what a checker in Python says of each job."""
    for job in jobs:
        following = module.Checker(job["release"], job["raw"], job["root"])
        check = following.check_all
        if "log" in job:
            said = job["log"]
            check = partial(following.check_log, job["folder"], "", said, said["minutes"])
        if "source" in job:
            path = job["folder"] / job["source"]
            check = partial(module.read_source, path, hash_file(path))
        yield is_passed(check)


@pytest.fixture(scope="session")
def python_jobs(jobs: list[Job]) -> list[Job]:
    return [job for job in jobs if job["name"] not in SCRIPT_SOURCES]


def test_broken_links_are_found(jobs: list[Job], python_jobs: list[Job], tmp_path: Path) -> None:
    assert list(list_wrong(python_jobs, judge(checker, python_jobs))) == []
    assert list(list_wrong(jobs, run_script(SCRIPT, jobs, tmp_path))) == []


def test_checker_written_from_the_page_says_the_same(jobs: list[Job]) -> None:
    for job in jobs:
        if "log" in job or "source" in job:
            continue
        root = job["root"] or hash_file(job["release"] / "SHA256SUMS")
        check = partial(third_checker.check, job["release"], RAW, root)
        assert is_passed(check) == job.get("holds", False), job["name"]


def test_exchanged_certificates_that_fit_are_found_by_the_root_digest(
    few: Path, tmp_path: Path
) -> None:
    """Nothing inside a release tells that two of its rows changed places with all that names
    them.
    """
    folder = Path(shutil.copytree(few, tmp_path / "exchanged"))
    first, second, *_ = [line["key"]["result_id"] for line in read_lines(few)[8:12]]
    for path in [*folder.rglob("*.csv"), *folder.rglob("*.jsonl")]:
        parts = []
        for part in path.read_text(encoding="utf-8").split(first):
            parts.append(part.replace(second, first))
        path.write_text(second.join(parts), encoding="utf-8")
    write_lines(folder, read_lines(folder))
    assert read_lines(folder) != read_lines(few)
    root = hash_file(few / "SHA256SUMS")
    checker.Checker(few, RAW, root).check_all()
    checker.Checker(folder, RAW).check_all()
    with pytest.raises(ValueError, match="SHA256SUMS has other bytes"):
        checker.Checker(folder, RAW, root).check_all()


def test_checker_says_yes_or_the_first_broken_link(
    few: Path, broken: dict[str, Path], tmp_path: Path
) -> None:
    """It runs alone: without the package, and with the standard library only."""
    program = Path(shutil.copy(CHECKER, tmp_path / "checker.py"))
    said = run_checker(program, few)
    assert said.startswith("yes, for root ")
    assert "'printed': 23" in said
    assert said.endswith("no statement was run")
    refused = run_checker(program, broken["other text"])
    assert re.match(r"no: line \d+: ValueError\(.* at table \d+, row \d+", refused)


def run_checker(program: Path, release: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-I", "-S", program, release, RAW],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == int(done.stdout == "")
    return done.stdout.strip() or done.stderr.strip()


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
@pytest.mark.parametrize(
    "program", [[sys.executable, "-I", "checker.py"], ["node", "checker.mjs"]], ids=" ".join
)
def test_whole_release_is_followed(program: list[str], release: Path) -> None:
    require(shutil.which(program[0]) is not None, f"{program[0]} is not installed")
    root = hash_file(release / "SHA256SUMS")
    done = subprocess.run(
        [*program, ".", RAW, root], cwd=release, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(f"yes, for root {root}: ")


# Mutants of the checkers


def list_mutants(path: Path, name: str, disabled: str) -> Iterator[tuple[str, str]]:
    """Yield a checker without each of its checks, and with each of the mutations, by name."""
    source = path.read_text(encoding="utf-8")
    for match in re.finditer(r"(?<!def )(?<!function )require\(", source):
        call = source[match.start() :].split("\n")[0]
        yield f"without {call}", source[: match.start()] + disabled + source[match.end() :]
    for mutation in MUTATIONS[name]:
        assert source.count(mutation["old"]) == 1, mutation
        yield str(mutation), source.replace(mutation["old"], mutation["new"])


@pytest.mark.slow
def test_mutants_of_the_script_are_caught(jobs: list[Job], tmp_path: Path) -> None:
    survivors = []
    for number, (name, source) in enumerate(list_mutants(SCRIPT, "script", "(() => {})(")):
        mutant = tmp_path / f"mutant{number}.mjs"
        mutant.write_text(source, encoding="utf-8")
        if not any(list_wrong(jobs, run_script(mutant, jobs, tmp_path))):
            survivors.append(name)
    assert survivors == []


@pytest.mark.slow
def test_mutants_of_the_checker_are_caught(python_jobs: list[Job]) -> None:
    survivors = []
    for name, source in list_mutants(CHECKER, "python", "require(True or "):
        if not any(list_wrong(python_jobs, judge(load_checker(source), python_jobs))):
            survivors.append(name)
    assert survivors == []
