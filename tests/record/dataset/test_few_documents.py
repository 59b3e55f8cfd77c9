"""A folder with any few documents is built, or refused with an error that names what is missing."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from ipu_results.build import IngestConfig, ingest
from ipu_results.errors import IpuResultsError
from ipu_results.record.sources.catalogue import Document, load_catalogue

from tests.conftest import RAW

DOCUMENTS = {document.file: document for document in load_catalogue(RAW)}
MISSING = re.compile(
    r"no document of raw/ has"
    r"|which raw/ does not have"
    r"|have no entry|which has no entry"
    r"|there is no such row"
    r"|unknown (claim|contradiction) '"
    r"|is missing: the run is incomplete"
)
ONCE_WRONG = [
    "graphcore/data-loading.csv",  # R46 ended with KeyError
    "independent/trackr.csv",
    "claims/qwant-c2-report-2020-02-28.csv",  # refers to a document that is not there
]
REFUSED = {
    "claims/contradictions.csv": "unknown claim 'sdk14-mcmc-speedup-17'",
    "claims/qwant-c2-report-2020-02-28.csv": (
        "the claims are of qwant-c2-report-2020-02-28, which raw/ does not have"
    ),
    "graphcore/public-configurations.csv": (
        "graphcore-performance-2023-07-04 bow_training 1: there is no such row"
    ),
    "mlperf/training-v2.0-entries.csv": ("the entry says 10 runs, and no document of raw/ has one"),
    "runs/20261121-130806-openvino-cpu-a954/points.csv": (
        "20261121-130806-openvino-cpu-a954: record.json: is missing"
    ),
}


def copy_document(document: Document, raw: Path) -> None:
    """Copy a document with its sidecar and attachments."""
    sidecar = document.path.with_name(f"{document.path.name}.toml")
    for path in (document.path, sidecar, *document.attached):
        target = raw / path.relative_to(RAW)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)


def build_few(folder: Path, *files: str) -> str:
    """Build a warehouse from a few documents; return the error, "" if there is none."""
    for file in files:
        copy_document(DOCUMENTS[file], folder / "raw")
    try:
        summary = ingest(IngestConfig(folder / "raw", folder / "warehouse"))
    except IpuResultsError as error:
        assert not (folder / "warehouse" / "results.parquet").exists()
        return str(error)
    assert {document.document_id for document in summary.documents} == {
        DOCUMENTS[file].document_id for file in files
    }
    return ""


def check_few(folder: Path, *files: str) -> None:
    error = build_few(folder, *files)
    if not error:
        return
    assert MISSING.search(error), error
    ids = {DOCUMENTS[file].document_id for file in files}
    runs = {Path(file).parent.name for file in files if file.startswith("runs/")}
    assert error.partition(":")[0] in ids | runs, error


@pytest.mark.parametrize("file", ONCE_WRONG)
def test_one_document_is_built_or_its_error_names_what_is_missing(
    file: str, tmp_path: Path
) -> None:
    check_few(tmp_path, file)


@pytest.mark.parametrize("file", REFUSED)
def test_error_names_the_document_that_is_missing(file: str, tmp_path: Path) -> None:
    assert REFUSED[file] in build_few(tmp_path, file)


def list_unlike() -> list[str]:
    """List three documents of each reader, kind and publisher: AWS alone has 44 of one."""
    counts: Counter[tuple[str, str, str]] = Counter()
    files = []
    for file, document in DOCUMENTS.items():
        group = (document.reader, document.kind, document.publisher)
        counts[group] += 1
        if counts[group] <= 3:
            files.append(file)
    return files


@pytest.mark.slow
@pytest.mark.parametrize("file", list_unlike())
def test_each_document_is_built_alone(file: str, tmp_path: Path) -> None:
    check_few(tmp_path, file)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_documents_are_built_in_pairs_by_seed(seed: int, tmp_path: Path) -> None:
    check_few(tmp_path, *random.Random(seed).sample([*DOCUMENTS], 2))
