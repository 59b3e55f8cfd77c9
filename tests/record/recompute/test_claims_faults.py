"""An invalid claim or recomputation stops the build and is named, with its document and line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from ipu_results.errors import CatalogueError, DamagedDocumentError
from ipu_results.record.recompute.run import Recomputation, Recomputer, open_recomputer

from tests.cases import every_case
from tests.conftest import (
    PAGE,
    copy_documents,
    edit,
    get_failure,
    read_files,
    run_ingest,
    sign,
)
from tests.record.recompute.claims_support import (
    BLOG,
    CHARTS,
    CONDITIONS,
    CONTRADICTIONS,
    NAMES,
    change_row,
    copy_claims,
    evaluate,
    open_tables,
    update_checksums,
    write_sql,
)

Engine = duckdb.DuckDBPyConnection
NAME = "sdk14-mcmc-speedup-27"
CONDITION = "blog2020-bert-large-training-time"
VALUE = (
    "SELECT 1.0::DOUBLE AS value, 'b' AS baseline, 'a' AS arithmetic, ['platforms:C2'] AS inputs"
)


@pytest.fixture(scope="module")
def recomputer(warehouse: Path) -> Iterator[Recomputer]:
    claims = pd.DataFrame({"claim_id": ["one"]})
    with (
        open_tables(warehouse) as engine,
        open_recomputer(engine, NAMES, claims, claims) as opened,
    ):
        yield opened


@every_case(__file__, "invalid_claim")
def test_invalid_claim_is_named(
    values: dict[str, str], message: str, tmp_path: Path, engine: Engine
) -> None:
    raw = copy_claims(tmp_path, CHARTS)
    change_row(raw, CHARTS, NAME, **values)
    with pytest.raises(DamagedDocumentError) as caught:
        evaluate(raw, engine)
    assert str(caught.value).startswith("graphcore-mk2-charts-sdk-1.4: line 19")
    assert message in str(caught.value)


@every_case(__file__, "invalid_recomputation")
def test_invalid_recomputation_is_named(
    old: str, new: str, message: str, recomputer: Recomputer
) -> None:
    assert old in VALUE
    check_refused(VALUE.replace(old, new), message, recomputer)


@pytest.mark.parametrize("sql", ["DELETE FROM results", "COPY results TO 'out.csv'"])
def test_recomputation_reads_alone(sql: str, recomputer: Recomputer) -> None:
    check_refused(sql, "read-only: ", recomputer)


def check_refused(sql: str, message: str, recomputer: Recomputer) -> None:
    with pytest.raises(DamagedDocumentError, match=r"^some-document: some\.sql: ") as caught:
        recomputer.run([Recomputation(sql, "one", "some-document", "some")])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "message"), [(b"SELEC 1", "syntax error"), (b"SELECT '\xff'", "is not UTF-8 text")]
)
def test_document_of_an_invalid_recomputation_is_named(
    sql: bytes, message: str, tmp_path: Path, engine: Engine
) -> None:
    raw = copy_claims(tmp_path, BLOG)
    write_sql(raw, "mcmc-time", sql)
    place = r"^graphcore-mk2-blog-2020-12-09: mcmc-time\.sql: "
    with pytest.raises(DamagedDocumentError, match=f"{place}.*{message}"):
        evaluate(raw, engine)


@pytest.mark.parametrize(
    ("file", "row", "values", "message"),
    [
        (CONTRADICTIONS, "mcmc-17-and-27", {"claim_ids": "none"}, "unknown claim 'none'"),
        (CONDITIONS, CONDITION, {"claim_id": "none"}, "unknown claim 'none'"),
        (CONDITIONS, CONDITION, {"taken_from": "none"}, "unknown claim 'none'"),
        (CONDITIONS, CONDITION, {"reason": ""}, "reason is blank or missing"),
    ],
)
def test_unknown_claim_of_another_row_is_named(
    file: str, row: str, values: dict[str, str], message: str, tmp_path: Path, engine: Engine
) -> None:
    raw = copy_claims(tmp_path)
    change_row(raw, file, row, **values)
    document = f"claims-{file.removesuffix('.csv')}"
    with pytest.raises(DamagedDocumentError, match=f"^{document}: line 2: {message}"):
        evaluate(raw, engine)


@pytest.mark.parametrize("sql", [f"{VALUE} WHERE false", VALUE.replace("1.0", "NULL")])
def test_recomputation_without_rows_is_not_a_verdict(
    sql: str, tmp_path: Path, engine: Engine
) -> None:
    raw = copy_claims(tmp_path, BLOG)
    write_sql(raw, "mcmc-time", sql.encode())
    claim = evaluate(raw, engine)["claims"].set_index("claim_id").loc["blog2020-mcmc-m2000-time"]
    assert claim["verdict"] == "not-recomputable"
    assert claim["not_recomputable"] == "Its recomputation found no row in this build"
    assert claim["recomputed"] == "[]"


def test_recomputation_must_be_named_and_attached(tmp_path: Path, engine: Engine) -> None:
    raw = copy_claims(tmp_path, CHARTS)
    sidecar = raw / "claims" / f"{CHARTS}.toml"
    folder = raw / "claims" / "sql"
    text = sidecar.read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines(keepends=True) if "sql/mcmc-speedup.sql" in line]
    sidecar.write_text(text.replace(line, ""), encoding="utf-8")
    with pytest.raises(DamagedDocumentError, match=r"mcmc-speedup\.sql: is not among the attachm"):
        evaluate(raw, engine)
    shutil.copy(folder / "mcmc-speedup.sql", folder / "more.sql")
    sidecar.write_text(text + line.replace("mcmc-speedup", "more"), encoding="utf-8")
    with pytest.raises(DamagedDocumentError, match=r"more\.sql: no row names this recomputation"):
        evaluate(raw, engine)


def test_changed_recomputation_needs_a_new_checksum(tmp_path: Path, engine: Engine) -> None:
    raw = copy_claims(tmp_path, CHARTS)
    path = raw / "claims" / "sql" / "mcmc-speedup.sql"
    path.write_text(f"-- changed\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"mcmc-speedup\.sql: sha256"):
        evaluate(raw, engine)
    update_checksums(raw / "claims")
    assert len(evaluate(raw, engine)["claims"]) == 21


def test_fault_leaves_the_old_build(tmp_path: Path, built: Path) -> None:
    raw = copy_documents(copy_claims(tmp_path / "raw", BLOG), PAGE)
    before = read_files(built)
    write_sql(raw, "mcmc-time", b"SELECT 1")
    line = get_failure("ingest", "--raw", raw, "--warehouse", built)
    assert line.startswith("error: graphcore-mk2-blog-2020-12-09: mcmc-time.sql: returns 1 INTEGER")
    assert read_files(built) == before


def test_claim_that_needs_a_quarantined_row_is_a_finding(tmp_path: Path) -> None:
    raw = copy_documents(copy_claims(tmp_path / "raw", CHARTS), PAGE)
    edit(raw, PAGE, "<th>Time To Result (secs)</th>", "<th>Time To Result (fortnights)</th>")
    sign(raw)
    done = run_ingest(raw)
    assert done.returncode == 0
    place = "graphcore-mk2-charts-sdk-1.4: sdk14-mcmc-speedup-17: mcmc-speedup.sql"
    assert f"finding: not recomputed: {place} returned no row" in done.stderr.splitlines()
