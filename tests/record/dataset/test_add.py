"""`ipu-results add`: a drafted sidecar, all unknown words at once, and a dry run that writes
nothing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from ipu_results.add import AddConfig, add_source, draft_source, preview_source
from ipu_results.errors import CatalogueError, UnrecognisedDocumentError
from ipu_results.record.normalise import normalise
from ipu_results.record.read.document import MetadataItem, ParsedDocument
from ipu_results.record.sources.catalogue import load_catalogue

from tests.cases import every_case, read_cases
from tests.conftest import check_raw, copy_documents, get_failure, read_files, run_cli, run_ingest
from tests.record.read.reading_support import (
    GPT2,
    RESNET,
    WORDS,
    make_document,
    make_table,
    rejections,
    training_page,
)

Put = Callable[[str, bytes], Path]
GPT2_ALONE = [*GPT2[:6], "", "16.16", "1"]
RESNET_51 = ["ResNet-51 v1.5", "", "Bow Pod17", *RESNET[3:]]
BERT_JAX = ["BERT-Larger", "", "Bow Pod17", "SDK 3.0", "PyTorrch", "", "8", "16.16b", "100"]
CASES = read_cases(__file__)
UNKNOWN_WORDS = CASES["unknown_words"]
FILLED = {
    "title": "t",
    "publisher": "p",
    "url": "https://example.org",
    "licence": "l",
    "note": "n",
    "means": "as printed",
}


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a document into a folder of `raw`."""

    def put(name: str, data: bytes) -> Path:
        path = tmp_path / "raw" / "somebody" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return put


def add(path: Path, *options: object) -> tuple[int, str, str]:
    done = run_cli("add", path, "--raw", path.parents[1], *options)
    return done.returncode, done.stdout, done.stderr


def fill_in(path: Path) -> None:
    """Replace the placeholders of a drafted sidecar, as a person would."""
    sidecar = path.with_name(f"{path.name}.toml")
    lines = []
    for line in sidecar.read_text(encoding="utf-8").splitlines():
        key = line.partition(" = ")[0]
        filled = f'"{FILLED[key]}"' if key in FILLED else "2026-11-22"
        lines.append(f"{key} = {filled}" if '"TODO' in line else line)
    sidecar.write_text("\n".join(lines) + "\n", encoding="utf-8")


# the draft


def test_drafted_sidecar_has_digest_kind_and_tables_and_is_refused_until_filled_in(
    put: Put,
) -> None:
    path = put("page.html", training_page(GPT2, RESNET))
    status, output, errors = add(path)
    assert (status, errors) == (0, "")
    assert "page.html: performance-page, sha256 " in output
    assert "table bow_training: 2 rows" in output
    entry = tomllib.loads(path.with_name("page.html.toml").read_text(encoding="utf-8"))
    assert (entry["document_id"], entry["kind"]) == ("somebody-page", "transcription")
    assert entry["reader"] == "performance-page"
    assert entry["tables"] == {"bow_training": {"rows": 2}}
    unfilled = "title, publisher, url, published_on, retrieved_on, licence, note, means"
    assert f"fill in {unfilled}\n" in output
    message = f"html.toml: the sidecar is a draft: fill in {unfilled}, which begin with TODO"
    with pytest.raises(CatalogueError, match=message):
        load_catalogue(path.parents[1])
    fill_in(path)
    [document] = load_catalogue(path.parents[1])
    assert document.read_bytes() == path.read_bytes()


def test_existing_sidecar_is_kept_unless_forced_and_then_keeps_what_was_filled_in(put: Put) -> None:
    path = put("page.html", training_page(GPT2))
    assert add(path)[0] == 0
    fill_in(path)
    sidecar = path.with_name("page.html.toml")
    sidecar.write_text(f'decimal_mark = "comma"\n{sidecar.read_text("utf-8")}', "utf-8")
    path.write_bytes(training_page(GPT2, RESNET))
    before = read_files(path.parent)
    status, output, errors = add(path)
    assert (status, output) == (1, "")
    assert "html.toml: exists: --dry-run reads the file with it, --force drafts it again" in errors
    assert read_files(path.parent) == before
    assert add(path, "--force")[0] == 0
    [document] = load_catalogue(path.parents[1])
    assert (document.title, document.tables["bow_training"].rows) == ("t", 2)
    assert document.decimal_mark is None  # it was read on other bytes
    assert document.read_bytes() == path.read_bytes()


@every_case(__file__, "unknown_header")
def test_unknown_header_gives_an_entry_to_complete_and_no_sidecar(
    put: Put, name: str, text: str, expected: list[str]
) -> None:
    path = put(name, text.encode())
    for options in ((), ("--dry-run",)):
        status, output, errors = add(path, *options)
        assert status == 1
        assert [words for words in expected if words not in output] == []
        [line] = errors.splitlines()
        assert line.startswith(f"error: {name}: ")
    assert list(read_files(path.parent)) == [name]


def test_missing_file_is_named(tmp_path: Path) -> None:
    line = get_failure("add", tmp_path / "none.html")
    assert line == "error: none.html: cannot be read: No such file or directory"


# unknown words


def test_every_unknown_word_of_all_rows_is_named_at_once_with_the_nearest(put: Put) -> None:
    path = put("page.html", training_page(RESNET_51, BERT_JAX))
    config = AddConfig(path, path.parents[1])
    assert draft_source(config).words == (UNKNOWN_WORDS, [])
    assert preview_source(config).words == (UNKNOWN_WORDS, [])
    add(path)
    fill_in(path)
    done = run_ingest(path.parents[1])
    assert done.returncode == 0
    findings = [line for line in done.stderr.splitlines() if "finding: unknown" in line]
    assert findings == [f"finding: {line}" for line in UNKNOWN_WORDS]
    assert "unknown model 'BERT-Larger' in model; unknown platform 'Bow Pod17' in" in done.stderr


def test_unknown_words_of_a_table_that_is_not_strict_are_kept_as_printed(put: Put) -> None:
    header = (
        b"model,variant,platform,sdk_version,framework,dataset,batch_size,precision,throughput"
        b" (widgets/s)\n"
    )
    path = put("a.csv", header + b"Foo-9,,Bar 7,SDK 3.3,PyTorch,,8,16.16,5\n")
    draft = add_source(AddConfig(path, path.parents[1]))
    [refused] = draft.words.refused
    model, platform = draft.words.kept
    assert refused.startswith("unknown unit 'widgets/s' for ")
    assert model.startswith("unknown model 'Foo-9' for ")
    assert platform.startswith("unknown platform 'Bar 7' for ")


# the dry run


def test_dry_run_shows_rows_quarantine_and_flags_and_writes_nothing(put: Put) -> None:
    unreadable = [*RESNET[:-1], "4,4O7"]
    blank = [*GPT2[:6], "4", "", "9.5"]
    path = put("page.html", training_page(GPT2, RESNET_51, unreadable, blank))
    before = read_files(path.parent)
    status, output, errors = add(path, "--dry-run")
    assert (status, errors) == (0, "")
    counts = "4 rows, 2 accepted, 2 quarantined, 0 duplicates; 2 results, "
    assert output.startswith(f"somebody-page: {counts}")
    results, quarantine = output.split("\nquarantine:\n")
    assert "8192" in results
    assert "'4,4O7' is not a figure" in quarantine
    assert "unknown model 'ResNet-51 v1.5' in model" in quarantine
    assert "R09" in quarantine.split("\nflags:\n")[1]
    assert read_files(path.parent) == before


def test_dry_run_gives_the_rows_and_flags_of_the_build_that_follows(
    tmp_path: Path, put: Put
) -> None:
    raw = copy_documents(tmp_path / "raw", "graphcore/performance-2023-07-04.html")
    path = put("page.html", training_page(GPT2, GPT2_ALONE))
    add(path)
    fill_in(path)
    preview = preview_source(AddConfig(path, raw))
    frames = check_raw(raw)
    ids = frames["results"].loc[frames["results"]["document_id"] == "somebody-page", "result_id"]
    assert sorted(ids) == sorted(preview.results["result_id"])
    flags = frames["flags"][frames["flags"]["result_id"].isin(ids)]
    assert len(flags)
    assert sorted(flags["message"]) == sorted(preview.flags["message"])


def test_dry_run_refuses_a_document_that_is_already_there(put: Put) -> None:
    path = put("page.html", training_page(GPT2))
    add(path)
    fill_in(path)
    with pytest.raises(CatalogueError, match="has the same bytes as somebody-page"):
        preview_source(AddConfig(put("copy.html", training_page(GPT2)), path.parents[1]))


# items, fields and choices


def test_unit_that_counts_another_item_than_the_model_of_the_document_rejects_its_rows() -> None:
    header = ["Batch size", "Throughput (tokens/s)"]
    throughput = make_table("qwant_table_2", header, [["2", "5.5"]])
    metadata = (MetadataItem("Model", "ResNeXt101", "line 1"),)
    parsed = ParsedDocument((throughput,), metadata=metadata)
    [(_, reason, message)] = rejections(normalise(make_document("inference-paper"), parsed, WORDS))
    assert reason == "item-contradicts-model"
    assert message.endswith(", but an item of ResNeXt101 is image")


def test_file_of_a_kind_that_is_not_ingested_is_refused(put: Put) -> None:
    path = put(
        "a.log",
        b':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", "key": "x"}\n',
    )
    with pytest.raises(UnrecognisedDocumentError):
        add_source(AddConfig(path, path.parents[1]))
    assert list(read_files(path.parent)) == ["a.log"]
