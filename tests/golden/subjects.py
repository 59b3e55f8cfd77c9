"""What is compared: each subject makes texts by name, in a folder of its own in which paths are
relative.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ipu_results

from tests.golden.access import (
    ROOT,
    ask_all,
    list_commands,
    read_generated,
    run_cli,
)
from tests.golden.masks import Masks, list_files
from tests.golden.store import DATA

COMMANDS = Path(__file__).with_name("commands.txt")
EVERY, FAST_EVERY = 1, 40
# Of the terminal, of the language and of the time zone: error boxes and tables are as wide as the
# terminal
SETTINGS = {"COLUMNS": "120", "LINES": "40", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
FEW = ("graphcore/performance-2023-07-04.html", "qwant/resnext101-c2-2020-02-28.pdf")
PREDICTED = ("predict", "sweep")
DATED = ("sweep", "submit", "add", "mlperf", "ingest")

Pairs = Iterator[tuple[str, str]]


@contextmanager
def workspace(warehouse: Path) -> Iterator[Path]:
    """Enter a folder with the inputs, with links to the documents and the warehouse, and with
    settings of its own.
    """
    here = Path.cwd()
    outer = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name)
        # ours, so it is trusted: links and a pipe are among the hostile bundles
        with tarfile.open(DATA / "inputs.tar.xz") as archive:
            archive.extractall(folder, filter="fully_trusted")
        (folder / "raw").symlink_to(ROOT / "raw")
        (folder / "corpus").symlink_to(ROOT / "tests/corpus")
        (folder / "warehouse").symlink_to(warehouse)
        for document in FEW:
            for file in (document, f"{document}.toml"):
                (folder / "few" / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / "raw" / file, folder / "few" / file)
        # of concurrent sweeps
        os.environ.update(SETTINGS | {"IPU_RESULTS_LOCKS": str(folder / "locks")})
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(outer)


def run_line(line: str, masks: Masks) -> Pairs:
    """Run one command line; yield its output and each file that it wrote under `out`, which is
    removed.
    """
    name = line.split(maxsplit=1)[0]
    Path("out").mkdir()
    options: dict[str, Any] = {"emulated": name in PREDICTED, "today": name in DATED}
    yield line, masks.apply(run_cli(*shlex.split(line)), **options)
    for path, text in list_files(Path("out"), is_visible):
        yield masks.apply(f"{line} → {path}", today=True), masks.apply(text, **options)
    shutil.rmtree("out")


def is_visible(path: Path) -> bool:
    """Tell locks and unfinished files from what a user reads."""
    return not any(part.startswith(".") for part in path.parts)


def make_documents(_: Masks, fast: bool) -> Pairs:
    for path in sorted(Path("corpus").glob("*/*")):
        if path.suffix != ".json":
            yield path.name, run_cli("extract", str(path), "--format", "json")
    yield from read_generated(FAST_EVERY if fast else EVERY)


def make_cli(masks: Masks, fast: bool) -> Pairs:
    stated = COMMANDS.read_text(encoding="utf-8").splitlines()
    lines = [line for line in stated if line and line[0] != "#"]
    unused = []
    for path, options in list_commands():
        yield f"{' '.join(path)} --help", run_cli(*path, "--help")
        used = {"-h", "--help"}
        for line in lines:
            command, *words = line.removeprefix("~ ").split()
            if command in path:
                used.update(words)
        if path:
            unused += [f"{path[-1]} {option}" for option in options if option not in used]
    yield "options that no line of commands.txt uses", "\n".join(unused)
    for line in lines:
        if not (fast and line.startswith("~ ")):
            yield from run_line(line.removeprefix("~ "), masks)


def make_mcp(masks: Masks, _: bool) -> Pairs:
    text = (DATA.parents[1] / "data/mcp_questions.toml").read_text(encoding="utf-8")
    questions = tomllib.loads(text)
    calls = [*questions["question"], *questions["trap"]]
    tools, answers = ask_all("warehouse", calls)
    named = {f"tool {tool['name']}": tool for tool in tools}
    for call, answer in zip(calls, answers, strict=True):
        named[call["ask"]] = answer
    for name, value in named.items():
        yield name, masks.apply(json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True))


def make_submission(masks: Masks, fast: bool) -> Pairs:
    every = 8 if fast else 1
    for path in sorted([*Path("good").iterdir(), *Path("bad").iterdir()])[::every]:
        yield from run_line(f"check-submission {path} --raw few --warehouse warehouse", masks)
    options = "--who Ada --licence CC-BY-4.0 --how idle --warehouse warehouse --out out"
    for path in sorted(Path("files").iterdir())[::every]:
        yield from run_line(f"submit {path} {options}", masks)


def make_sweep(masks: Masks, _: bool) -> Pairs:
    shared = "sweep --backend emulator --model tiny.onnx --images images --out out"
    for options in (
        "--batch-sizes 2,4 --set network=resnext101-32x4d",
        "--batch-sizes 4 --target m2000 --set sessions=4 --format json",
    ):
        yield from run_line(f"{shared} --warehouse warehouse {options}", masks)


@dataclass(frozen=True)
class Subject:
    """How a subject is made, and whether only digests of its items are kept, because there are
    thousands.

    The suite holds the subjects that are `held`, all slow. The others take minutes,
    and other tests hold their parts: run them with `python -m tests.golden check` before and after
    code is moved.
    """

    make: Callable[[Masks, bool], Pairs]
    compact: bool = False
    held: bool = False


SUBJECTS = {
    "documents": Subject(make_documents, compact=True, held=True),
    "cli": Subject(make_cli),
    "mcp": Subject(make_mcp, held=True),
    "submission": Subject(make_submission),
    "sweep": Subject(make_sweep),
}


def make(subject: str, warehouse: Path, fast: bool = False) -> dict[str, str]:
    """Make the texts of a subject from the code of this tree and a warehouse that it built."""
    masks = Masks.of(warehouse, ipu_results.__version__)
    with workspace(warehouse.resolve()):
        texts: dict[str, str] = {}
        for name, text in SUBJECTS[subject].make(masks, fast):
            if texts.setdefault(name, text) != text:
                raise ValueError(f"{subject}: two texts have the name {name!r}")
        return texts
