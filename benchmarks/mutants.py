"""Plant small faults in the package, one at a time, and see which tests find each.

usage: python -m benchmarks.mutants [--count N] [--first N] [--out FILE]

A fault changes one operator, constant or condition of a Python module, or one of a statement of
`schema/`. The tests of the same room run over it, all of them, so that the outcome says which tests
find what and which find nothing. Then the warehouse is built, and its files are compared with those
of the commit: the net that needs no test. The faults are the same in each run.

The outcome is a JSON line a fault in FILE. What is there already is not run again.
"""

from __future__ import annotations

import argparse
import io
import json
import keyword
import os
import random
import re
import subprocess
import sys
import tempfile
import token
import tokenize
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from tabulate import tabulate

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("pipeline/ipu_results")
SEED = 50
COUNT = 300
WORKERS = 2
TIMEOUT_S = 900

OPERATORS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "<>": "=",
    "+": "-",
    "-": "+",
    "/": "*",
    "//": "/",
    "and": "or",
    "or": "and",
    "AND": "OR",
    "OR": "AND",
    "not": "",
    "True": "False",
    "False": "True",
    "min": "max",
    "max": "min",
    "MIN": "MAX",
    "any": "all",
    "all": "any",
}
SQL_WORD = re.compile(r"--[^\n]*|'[^']*'|<=|>=|<>|!=|[<>+/]|\b(?:AND|OR|MIN|min|max)\b|\b\d+\b")
# The tests of what has no folder of its own under tests/.
TESTS = {
    "schema/rules": "tests/record/check",
    "schema/links": "tests/record/link",
    "schema/derived": "tests/record",
    "schema/comparison": "tests/doors/comparison",
    "schema/submission": "tests/doors/submission",
    "schema/side_by_side": "tests/doors/mcp",
    "schema/serve": "tests/doors/mcp",
    "schema/views": "tests/doors/analyses",
    "schema/claims": "tests/record/recompute",
}
BUILT = ("record", "mlperf", "schema", "kit", "build.py")  # what `ingest` runs


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: the text at an offset of a file is another one."""

    file: str
    line: int
    offset: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What found a fault: the tests of its room by name, and the built warehouse."""

    mutant: Mutant
    tests: list[str]
    """The tests that fail, `timeout` where they did not end."""
    changed: list[str]
    """The files of the warehouse that differ, `failed` where it could not be built."""

    @property
    def found(self) -> bool:
        return bool(self.tests or self.changed)


def mutate_constant(text: str) -> str | None:
    """Return another number for a whole number or a decimal one, None for what is neither."""
    if text.isdecimal():
        return str(int(text) + 1)
    try:
        return repr(float(text) + 1)
    except ValueError:
        return None


def list_python_mutants(path: Path, text: str) -> Iterator[Mutant]:
    """Yield the faults of a module, also those with which it cannot be compiled."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    before = ""
    for found in tokenize.generate_tokens(io.StringIO(text).readline):
        word = found.string
        new = OPERATORS.get(word)
        if found.type == token.NUMBER:
            new = mutate_constant(word)
        is_name = before.isidentifier() and not keyword.iskeyword(before)
        follows_value = is_name or before.endswith((")", "]")) or before[:1].isdecimal()
        is_sign = word in ("+", "-") and not follows_value
        if new is not None and not is_sign:
            row, column = found.start
            yield Mutant(str(path), row, starts[row - 1] + column, word, new)
        if word.strip():
            before = word


def apply(mutant: Mutant, text: str) -> str:
    """Return the text of a file with a fault in it."""
    return text[: mutant.offset] + mutant.new + text[mutant.offset + len(mutant.old) :]


def is_runnable(mutant: Mutant) -> bool:
    """Say whether the file with a fault is still a module, or a statement."""
    if not mutant.file.endswith(".py"):
        return True
    try:
        compile(apply(mutant, (ROOT / mutant.file).read_text(encoding="utf-8")), "mutant", "exec")
    except SyntaxError:
        return False
    return True


def list_sql_mutants(path: Path, text: str) -> Iterator[Mutant]:
    """Yield the faults of a statement. Comments and texts stay."""
    for found in SQL_WORD.finditer(text):
        word = found[0]
        new = OPERATORS.get(word) or mutate_constant(word)
        if new is not None and not word.startswith(("-", "'")):
            line = text.count("\n", 0, found.start()) + 1
            yield Mutant(str(path), line, found.start(), word, new)


def choose_mutants(count: int) -> list[Mutant]:
    """Choose faults at random, the same in each run; a room has as many as its size gives."""
    mutants: list[Mutant] = []
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        mutants += list_python_mutants(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    for folder in TESTS:
        for path in sorted((ROOT / folder).rglob("*.sql")):
            mutants += list_sql_mutants(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    random.Random(SEED).shuffle(mutants)
    return list(islice(filter(is_runnable, mutants), count))


def find_tests(file: str) -> str:
    """Return the folder of tests of a file: that of its room, else of the room around it."""
    for folder, tests in TESTS.items():
        if file.startswith(folder):
            return tests
    room = Path(file).relative_to(PACKAGE).parent
    if room == Path():
        return "tests/record/dataset"  # build.py, add.py and api.py
    while not (ROOT / "tests" / room).is_dir():
        room = room.parent
    return f"tests/{room}"


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a module of the checkout in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "pipeline")}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def plant(folder: Path, mutant: Mutant) -> Outcome:
    """Plant one fault in a clone, run the tests of its room and build the warehouse."""
    path = folder / mutant.file
    path.write_text(apply(mutant, path.read_text(encoding="utf-8")), encoding="utf-8")
    try:
        tests = run_tests(folder, find_tests(mutant.file))
        built = mutant.file.startswith("schema") or Path(mutant.file).parts[2] in BUILT
        changed = build(folder) if built else []
    finally:
        restore(folder)
    return Outcome(mutant, tests, changed)


def restore(folder: Path) -> None:
    """Bring a clone back to its commit: what a fault changed, and what it added to the warehouse."""
    subprocess.run(["git", "checkout", "--quiet", "."], cwd=folder, check=True)
    subprocess.run(["git", "clean", "-fdq", "warehouse"], cwd=folder, check=True)


def run_tests(folder: Path, tests: str) -> list[str]:
    """Run a folder of tests; return the names of those that fail."""
    try:
        done = run(folder, "pytest", "-q", "-m", "not slow", "-rfE", "--tb=no", tests)
    except subprocess.TimeoutExpired:
        return ["timeout"]
    names = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    return sorted(set(names)) or (["collection"] if done.returncode else [])


def build(folder: Path) -> list[str]:
    """Build the warehouse; return the files that differ from the committed ones."""
    try:
        done = run(folder, "ipu_results", "ingest")
    except subprocess.TimeoutExpired:
        return ["timeout"]
    if done.returncode:
        return ["failed"]
    status = ["git", "status", "--short", "warehouse"]
    listed = subprocess.run(status, cwd=folder, capture_output=True, text=True, check=True).stdout
    return [line.split()[-1] for line in listed.splitlines()]


def plant_all(mutants: list[Mutant], out: Path) -> list[Outcome]:
    """Plant each fault that `out` does not have yet, in clones side by side."""
    outcomes = []
    for line in out.read_text(encoding="utf-8").splitlines() if out.exists() else ():
        entry = json.loads(line)
        outcomes.append(Outcome(Mutant(**entry["mutant"]), entry["tests"], entry["changed"]))
    done = {outcome.mutant for outcome in outcomes}
    left = [mutant for mutant in mutants if mutant not in done]
    with tempfile.TemporaryDirectory() as temporary:
        clones: SimpleQueue[Path] = SimpleQueue()
        for number in range(WORKERS):
            clone = Path(temporary) / str(number)
            subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, clone], check=True)
            clones.put(clone)

        def plant_in_a_clone(mutant: Mutant) -> Outcome:
            clone = clones.get()
            try:
                return plant(clone, mutant)
            finally:
                clones.put(clone)

        with ThreadPoolExecutor(WORKERS) as pool:
            for outcome in pool.map(plant_in_a_clone, left):
                outcomes.append(outcome)
                with out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
                print(f"{len(outcomes)} of {len(mutants)}", file=sys.stderr, flush=True)
    return [outcome for outcome in outcomes if outcome.mutant in set(mutants)]


def format_outcomes(outcomes: list[Outcome]) -> str:
    """Format the faults by room: how many tests find, how many the build alone, and the rest."""
    rooms: dict[str, list[Outcome]] = {}
    survivors = []
    for outcome in outcomes:
        mutant = outcome.mutant
        rooms.setdefault(find_tests(mutant.file), []).append(outcome)
        if not outcome.found:
            survivors.append(f"{mutant.file}:{mutant.line}: {mutant.old} → {mutant.new or 'gone'}")
    rows = [(name, *count_found(rooms[name])) for name in sorted(rooms)]
    rows.append(("all", *count_found(outcomes)))
    columns = ("tests", "planted", "found by tests", "by the build", "by neither")
    table = tabulate(rows, columns, "github")
    return "\n".join([table, "", "By neither:", *sorted(survivors)])


def count_found(outcomes: list[Outcome]) -> tuple[int, ...]:
    """Count the faults, those that tests found, those that the build found, and the others."""
    by_tests = sum(bool(outcome.tests) for outcome in outcomes)
    by_build = sum(bool(outcome.changed) for outcome in outcomes)
    missed = sum(not outcome.found for outcome in outcomes)
    return len(outcomes), by_tests, by_build, missed


def main() -> None:
    """Plant the faults and print what found them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help="faults to choose")
    parser.add_argument("--first", type=int, help="plant only the first of them")
    parser.add_argument("--out", type=Path, default=Path("build/mutants.jsonl"))
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    mutants = choose_mutants(args.count)[: args.first]
    print(format_outcomes(plant_all(mutants, args.out)))


if __name__ == "__main__":
    main()
