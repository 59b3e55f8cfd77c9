"""Feed broken documents to every reader: `python -m tests.record.read.fuzz --seconds 60`.

A reader may return a document or raise a DocumentError, in bounded time and memory. Anything else
is saved and reported. Make a saved file smaller by hand, and move it to tests/corpus/READER:
test_corpus.py replays it from then on.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any

from ipu_results.errors import IpuResultsError
from ipu_results.mlperf.log import read_log
from ipu_results.record.normalise import normalise
from ipu_results.record.read import ParsedDocument
from ipu_results.record.read.dispatch import Reader, read_document
from ipu_results.record.read.html import read_html
from ipu_results.record.read.pdf import read_pdf
from ipu_results.record.read.plain_text import read_plain_text
from ipu_results.record.read.records import read_csv, read_mlperf_log, read_sweep_record
from ipu_results.schema.vocabulary import load_vocabulary

from benchmarks.documents.tables import find_table
from tests.record.read.fuzz_seeds import TOKENS, make_seeds
from tests.record.read.reading_support import make_document

CORPUS = Path(__file__).resolve().parents[2] / "corpus"
CONTEXT = get_context("fork")
HANG_S = 120  # of wall time for one input, after which its process is killed
MAX_CPU_S = 20.0  # for one input; the slowest ordinary one takes about 1 s
MAX_GROWTH_MB = 400.0  # of the process, by one input
MAX_MEMORY = 4 * 2**30  # bytes of address space of a worker
MAX_SIZE = 300_000  # bytes of an input
MAX_EDITS = 6

WORDS = load_vocabulary()


class UnexpectedResultError(Exception):
    """A reader returned nothing at all, or a row of another width than its table."""


def check_document(kind: str, parsed: ParsedDocument) -> None:
    """Check what a reader returned, and normalise it.

    Raises UnexpectedResultError, or what `normalise` raises.
    """
    if not parsed.tables and not parsed.problems and not parsed.metadata:
        raise UnexpectedResultError("neither a table nor a problem")
    for table in parsed.tables:
        widths = {len(row.cells) for row in table.rows}
        if widths - {len(table.columns)}:
            raise UnexpectedResultError("a row is not as wide as its table")
    if kind not in ("", RECORD):
        normalise(make_document(kind), parsed, WORDS)


PAGE = find_table("bow_training").reader
PAPER = find_table("qwant_table_1").reader
HISTORY = find_table("bow_training_history").reader
RECORD = find_table("runs").reader


def check_reader(read: Reader, kind: str) -> Callable[[bytes], None]:
    """Return a check of a reader with the headers of a kind."""
    return lambda data: check_document(kind, read(data, WORDS.headers_of(kind)))


def _read_pdf(data: bytes) -> None:
    for kind in (PAGE, PAPER):
        try:
            check_reader(read_pdf, kind)(data)
        except IpuResultsError:
            continue


def _read_log(data: bytes) -> None:
    read_log([data[:100], data[100:]])
    read_mlperf_log(data)


READERS: dict[str, Callable[[bytes], None]] = {
    "html": check_reader(read_html, PAGE),
    "pdf": _read_pdf,
    "page-text": check_reader(read_plain_text, PAGE),
    "paper-text": check_reader(read_plain_text, PAPER),
    "csv": check_reader(read_csv, HISTORY),
    "sweep-record": check_reader(read_sweep_record, RECORD),
    "mlperf-log": _read_log,
    "dispatch": lambda data: check_document("", read_document(data, WORDS.table_headers)),
}


def run_reader(name: str, data: bytes) -> str:
    """Return what is wrong with the way in which a reader took an input, "" if nothing is."""
    memory = _measure_peak()
    start = time.process_time()
    try:
        READERS[name](data)
    except IpuResultsError as error:
        if "\n" in str(error):
            return "a message of several lines"
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    seconds = time.process_time() - start
    if seconds > MAX_CPU_S:
        return f"slow: {seconds:.0f} s"
    growth = _measure_peak() - memory
    return f"memory grew by {growth:.0f} MB" if growth > MAX_GROWTH_MB else ""


def _measure_peak() -> float:
    """Return the most memory that this process had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# --- mutation


EDITS = ("delete", "repeat", "flip", "insert", "insert", "splice", "truncate")
NUMBERS = (b"0", b"-1", b"1e999", b"9" * 400, b"4294967296", "٣".encode(), b"NaN")


def mutate(data: bytes, others: Sequence[bytes], tokens: Sequence[bytes], random: Random) -> bytes:
    """Edit an input a few times at random places."""
    for _ in range(random.randint(1, MAX_EDITS)):
        data = _edit(data, others, tokens, random)[:MAX_SIZE]
    return data


def _edit(data: bytes, others: Sequence[bytes], tokens: Sequence[bytes], random: Random) -> bytes:
    start = random.randint(0, len(data))
    stop = min(len(data), start + int(random.paretovariate(0.7)))
    before = data[:start]
    part = data[start:stop]
    after = data[stop:]
    match random.choice(EDITS):
        case "delete":
            part = b""
        case "repeat":
            part *= random.choice((2, 3, 50, 3000))
        case "flip":
            first = (part or b"\0")[0] ^ (1 << random.randrange(8))
            part = bytes([first]) + part[1:]
        case "insert":
            token = random.choice([*tokens, *NUMBERS])
            part = token * random.choice((1, 1, 1, 2, 400)) + part
        case "splice":
            other = random.choice(others)
            after = other[random.randint(0, len(other)) :]
        case "truncate":
            after = b""
    return before + part + after


def generate_inputs(name: str, seed: int) -> Iterator[bytes]:
    """Yield broken inputs of a reader without end: the seeds, then edits of them."""
    random = Random(f"{name} {seed}")
    seeds = make_seeds(name)
    for path in sorted((CORPUS / name).glob("*")):
        seeds.append(path.read_bytes())
    yield from seeds
    while True:
        yield mutate(random.choice(seeds), seeds, TOKENS[name], random)


# --- watching workers


def _work(name: str, seed: int, stop: float, count: Any, last: Path, told: Path) -> None:
    """Read inputs up to the first failure, which is told, or until the time is over; each is on
    disk before it is read.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    failure = ""
    for data in generate_inputs(name, seed):
        last.write_bytes(data)
        signal.alarm(HANG_S)  # it ends the process, whatever library has the control
        failure = run_reader(name, data)
        signal.alarm(0)
        count.value += 1
        if failure or time.monotonic() > stop:
            break
    told.write_text(failure)


def fuzz_reader(name: str, seed: int, seconds: float) -> tuple[int, dict[str, bytes]]:
    """Return how many inputs a reader took, and an input for each kind of failure."""
    failures: dict[str, bytes] = {}
    count = CONTEXT.Value("i", 0)
    stop = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        last = Path(folder, "input")
        told = Path(folder, "failure")
        while not count.value or time.monotonic() < stop:
            told.write_text("the process died")
            arguments = (name, seed + count.value, stop, count, last, told)
            process = CONTEXT.Process(target=_work, args=arguments)
            process.start()
            process.join()
            failure = told.read_text()
            if process.exitcode == -signal.SIGALRM:
                failure = f"no answer in {HANG_S} s"
            if process.exitcode:
                count.value += 1
            if failure:
                failures.setdefault(failure.split(":")[0], last.read_bytes())
    return count.value, failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz every reader in turn; return 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.record.read.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all readers together")
    parser.add_argument("--seed", type=int, default=0, help="where the random edits start")
    parser.add_argument("--reader", choices=READERS, action="append", help="default all")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="of what is found")
    options = parser.parse_args(arguments)
    readers = options.reader or list(READERS)
    found = 0
    for name in readers:
        count, failures = fuzz_reader(name, options.seed, options.seconds / len(readers))
        print(f"{name}: {count:,} inputs, {len(failures)} kinds of failure", flush=True)
        for number, (failure, data) in enumerate(failures.items()):
            options.out.mkdir(parents=True, exist_ok=True)
            path = options.out / f"{name}-{number}"
            path.write_bytes(data)
            print(f"  {failure}: {len(data):,} bytes in {path}", flush=True)
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
