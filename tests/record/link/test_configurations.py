"""The public configurations: from a figure to the command behind it, and every way of linking them
wrongly.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from ipu_results import build
from ipu_results.build import check_documents
from ipu_results.errors import DamagedDocumentError, GateError, IpuResultsError
from ipu_results.record.check.gate import GateFailure
from ipu_results.record.normalise import NormalisedDocument
from ipu_results.record.store.tables import open_memory_store
from ipu_results.schema import table
from ipu_results.schema.frames import to_pandas
from ipu_results.schema.vocabulary import load_vocabulary

from tests.cases import every_case
from tests.conftest import (
    PAGE,
    PAGE_ID,
    PAPER,
    PAPER_ID,
    RAW,
    Query,
    check_raw,
    copy_documents,
    edit,
    load_documents,
    reseal,
)

FILE = "graphcore/public-configurations.csv"
ID = "graphcore-public-configurations"
ROWS = {
    "bow_inference": 37,
    "bow_training": 64,
    "mlperf_v2_training": 11,
    "pod_inference": 71,
    "pod_time_to_result": 1,
    "pod_training": 62,
}
FILLED = 176
CLIP = ("bow_training", "64")
Line = dict[str, str]


def read_lines() -> list[Line]:
    with (RAW / FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_row_of_six_tables_has_a_line_and_the_sure_ones_a_configuration(
    query: Query,
) -> None:
    counts = "SELECT result_table, count(*) FROM detail.configurations GROUP BY ALL"
    assert dict(query(counts)) == ROWS | {"nvidia_a100": 80}
    without = (
        "SELECT result_table, list(result_row ORDER BY result_row) FROM detail.configurations"
        " WHERE path IS NULL GROUP BY 1 ORDER BY 1"
    )
    assert query(without) == [
        ("mlperf_v2_training", [5, 6, 7, 8, 9, 10, 11]),
        ("pod_training", [30, 31, 32, 33]),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        "path IS NULL AND note IS NULL",
        "result_id IS NULL",
        "(result_document, result_table, result_row) <> (r.document_id, r.table_name, r.row_number)",
    ],
)
def test_configuration_is_of_its_row_and_without_a_path_has_a_note(
    wrong: str, query: Query
) -> None:
    rows = "detail.configurations LEFT JOIN results r USING (result_id)"
    assert query(f"SELECT count(*) FROM {rows} WHERE {wrong}") == [(0,)]


def test_table_holds_the_committed_texts(query: Query) -> None:
    typed = ("batch_agrees", "dataset_agrees", "optimizer_state_offchip")
    lines = read_lines()
    names = [name for name in lines[0] if name not in typed]
    rows = query(f"SELECT {', '.join(names)} FROM detail.configurations WHERE document_id = '{ID}'")
    stored = {tuple("" if value is None else str(value) for value in row) for row in rows}
    assert stored == {tuple(line[name] for name in names) for line in lines}
    assert len(stored) == 246


def test_micro_batch_comes_only_from_exact_matches_with_the_printed_batch(query: Query) -> None:
    expected = (
        "CASE WHEN c.match_confidence = 'exact' AND c.batch_agrees THEN c.micro_batch_size END"
    )
    product = "r.micro_batch_size * c.replicas * coalesce(c.gradient_accumulation, 1)"
    counts = (
        "count(r.micro_batch_size),"
        f" count(*) FILTER (r.micro_batch_size IS DISTINCT FROM {expected}),"
        f" count(*) FILTER ({product} <> r.batch_size)"
    )
    rows = "FROM results r JOIN detail.configurations c USING (result_id)"
    assert query(f"SELECT {counts} {rows} WHERE r.document_id = '{PAGE_ID}'") == [(FILLED, 0, 0)]


def test_cells_lead_to_the_line_of_the_configuration(query: Query) -> None:
    lines = (RAW / FILE).read_text(encoding="utf-8").splitlines()
    header = next(csv.reader(lines[:1]))
    cells = query(
        "SELECT column_name, raw_text, value, unit, factor, locator, micro_batch_size,"
        f" latency_basis FROM cells c JOIN results r USING (result_id) WHERE c.document_id = '{ID}'"
    )
    for column, text, value, unit, factor, locator, micro, basis in cells:
        place = re.fullmatch(r"line (\d+), column (\d+) \((.+)\)", locator)
        assert place
        [row] = csv.reader([lines[int(place[1]) - 1]])
        at = int(place[2]) - 1
        name = place[3]
        assert (row[at], header[at]) == (text, name)
        if column == "micro_batch_size":
            assert (value, unit, factor) == (micro, "item", 1.0)
        else:
            assert (column, name, value) == ("latency_basis", "latency_definition", None)
            assert basis in table("configurations").choices("latency_basis")
    columns = [row[0] for row in cells]
    assert (columns.count("micro_batch_size"), columns.count("latency_basis")) == (FILLED, 104)


def test_figures_agree_with_the_latency_basis_of_their_configuration(query: Query) -> None:
    without = "latency_basis IS NOT NULL AND latency_ms IS NULL"
    assert query(f"SELECT count(*) FROM results WHERE {without}") == [(0,)]
    depth = "throughput * latency_ms / 1000 / batch_size"
    for basis, low, high in (("several-in-flight", 1.7, 5.2), ("per-item", 0.06, 1.05)):
        bounds = (
            f"SELECT min({depth}) > {low}, max({depth}) < {high} FROM results"
            f" WHERE document_id = '{PAGE_ID}'"
        )
        assert query(f"{bounds} AND latency_basis = '{basis}'") == [(True, True)]


def test_latencies_of_tensorrt_are_of_a_batch_on_the_device(query: Query) -> None:
    """Its README and script say so, and that copies are left out; the vendor's IPU latencies are
    taken on the host.
    """
    rows = "FROM results WHERE document_id = 'nvidia-a100-comparators' AND latency_ms IS NOT NULL"
    bases = (
        f"SELECT framework, latency_basis, latency_scope, count(*) {rows} GROUP BY ALL ORDER BY ALL"
    )
    assert query(bases)[-1:] == [("TensorRT", "per-batch", "device", 80)]
    own = (
        "SELECT c.benchmark, batch_size, sequence_length, model FROM detail.configurations c"
        " JOIN results USING (result_id)"
    )
    for benchmark, batch, length, model in query(f"{own} WHERE repository = 'NVIDIA/TensorRT'"):
        assert benchmark.startswith(model.removeprefix("BERT-").lower())
        assert benchmark.endswith(f" {length}, batch {batch}")
    assert query(
        "SELECT DISTINCT latency_scope FROM results"
        f" WHERE document_id = '{PAGE_ID}' AND latency_basis = 'per-batch'"
    ) == [("host",)]


# wrong links


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return copy_documents(tmp_path / "raw", FILE)


@pytest.fixture(scope="module")
def loaded_page(tmp_path_factory: pytest.TempPathFactory) -> NormalisedDocument:
    [loaded] = load_documents(copy_documents(tmp_path_factory.mktemp("page") / "raw", PAGE))
    return loaded


@pytest.fixture
def without_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the quality rules, which take half of the time: they look at rows that are linked
    already.
    """
    find_flags = build.find_flags
    monkeypatch.setattr(build, "find_flags", lambda connection: find_flags(connection, []))


def build_configurations(raw: Path, *others: NormalisedDocument) -> pd.DataFrame:
    """Check the documents of `raw` with others, as a build does before it writes."""
    loaded = {loaded.document_id: loaded for loaded in [*others, *load_documents(raw)]}
    documents = [loaded.document for loaded in loaded.values()]
    with open_memory_store() as store:
        check_documents(documents, loaded.values(), load_vocabulary(), store)
        return to_pandas(store.fetch("configurations"))


def rewrite(raw: Path, lines: list[Line]) -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(lines[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    (raw / FILE).write_text(out.getvalue(), encoding="utf-8")
    reseal(raw, FILE)


def change(raw: Path, table: str, row: str, **texts: str) -> None:
    """Change the line of one row."""
    lines = read_lines()
    for line in lines:
        if (line["result_table"], line["result_row"]) == (table, row):
            line.update(texts)
    rewrite(raw, lines)


@every_case(__file__, "wrong")
@pytest.mark.usefixtures("without_rules")
def test_wrong_configuration_is_refused(
    raw: Path,
    loaded_page: NormalisedDocument,
    table: str,
    row: str,
    texts: dict[str, str],
    message: str,
) -> None:
    change(raw, table, row, **texts)
    assert message in refuse(raw, loaded_page)


@pytest.mark.usefixtures("without_rules")
def test_two_exchanged_configurations_are_refused(
    raw: Path, loaded_page: NormalisedDocument
) -> None:
    """Of batch 4 and batch 256 of ResNet-50."""
    lines = read_lines()
    exchanged = {"11": "12", "12": "11"}
    for line in lines:
        if line["result_table"] == "bow_inference":
            line["result_row"] = exchanged.get(line["result_row"], line["result_row"])
    rewrite(raw, lines)
    place = f"line 76: {PAGE_ID} bow_inference 12"
    wrong = "batch_agrees is True, but 4 is configured and 256 is printed"
    assert f"{place}: {wrong}" in refuse(raw, loaded_page)


def refuse(raw: Path, page: NormalisedDocument) -> str:
    """Check that the configurations are refused; return why."""
    with pytest.raises(IpuResultsError, match=f"^{ID}: ") as caught:
        build_configurations(raw, page)
    return str(caught.value)


@pytest.mark.usefixtures("without_rules")
def test_batch_without_factors_has_no_product_to_check(
    raw: Path, loaded_page: NormalisedDocument
) -> None:
    change(raw, *CLIP, micro_batch_size="", replicas="", gradient_accumulation="")
    assert len(build_configurations(raw, loaded_page)) == 246


def test_micro_batch_of_the_rows_own_document_is_kept(raw: Path) -> None:
    """The paper says one image per chip of its batch of two; a configuration of two on one replica
    changes nothing.
    """
    place = {"result_document": PAPER_ID, "result_table": "qwant_table_1", "result_row": "1"}
    batch = {"micro_batch_size": "2", "gradient_accumulation": "1", "global_batch_from_config": "2"}
    change(raw, *CLIP, **place, **batch, batch_agrees="True", match_confidence="exact")
    copy_documents(raw, PAGE, PAPER)
    results = check_raw(raw)["results"]
    paper = results[results["document_id"] == PAPER_ID].set_index("row_number")
    assert paper.loc[1, ["batch_size", "micro_batch_size"]].tolist() == [2, 1]


def test_value_that_a_link_makes_invalid_is_refused(
    raw: Path, loaded_page: NormalisedDocument, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = GateFailure(0, "reason", "is wrong", "chip")
    monkeypatch.setattr(build, "find_failures", lambda *_: [failure])
    with pytest.raises(GateError, match="what other documents add: is wrong"):
        build_configurations(raw, loaded_page)


@pytest.mark.usefixtures("without_rules")
def test_configuration_of_a_refused_row_stays_without_a_result(raw: Path) -> None:
    """One row cannot be read, and the gate refuses another."""
    copy_documents(raw, PAGE)
    edit(raw, PAGE, "<td>5,201</td>", "<td>5,2O1</td>")
    edit(raw, PAGE, "<td>4,354</td>", "<td>0</td>")
    frames = check_raw(raw)
    reasons = ["throughput-out-of-range", "unreadable-figure"]
    assert sorted(frames["quarantine"]["reason"]) == reasons
    rows = frames["configurations"]
    without = rows[rows["result_id"].isna()]
    assert without["result_row"].tolist() == [35, 37]
    assert without["micro_batch_size"].tolist() == [4, 15]


def test_without_configurations_the_latency_basis_is_only_suspected(page: Path) -> None:
    flags = check_raw(page)["flags"].set_index("rule")
    assert "R13" not in flags.index
    messages = flags.loc["R01", "message"]
    assert messages.str.contains("if the printed value is per item").all()
    with pytest.raises(DamagedDocumentError, match="there is no such row"):
        build_configurations(copy_documents(page.parent / "alone", FILE))
