"""A ledger that is not whole stops the build, naming the document and the claim."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from claims_support import (
    BLOG,
    CHARTS,
    CONTRADICTIONS,
    change,
    claims_folder,
    ledger_of,
    rewrite,
    rewrite_sql,
    rows_of,
    seal,
    tables_of,
)
from conftest import PAGE, copy_raw, edit, run_cli
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import CatalogueError, DamagedDocumentError, IpuResultsError
from ipu_results.recompute.run import recomputer

NAME = "sdk14-mcmc-speedup-27"
VALUE = "SELECT 1.0::DOUBLE AS value, 'b' AS baseline, 'a' AS arithmetic"


@pytest.fixture(scope="module")
def frames(warehouse: Path) -> dict[str, pd.DataFrame]:
    return tables_of(warehouse)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return claims_folder(tmp_path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"recomputation": "", "basis": ""}, "either a recomputation or the reason"),
        ({"not_recomputable": "nobody knows"}, "either a recomputation or the reason"),
        ({"recomputation": "", "not_recomputable": "why"}, "a basis is that of a recomputation"),
        ({"value": ""}, "value is blank or missing"),
        ({"digits_tolerance": ""}, "digits_tolerance is blank or missing"),
        ({"digits_tolerance": "-1"}, "digits_tolerance is"),
        ({"place": ""}, "place is blank or missing"),
        ({"task": "gardening"}, "task is 'gardening'"),
        ({"relation": "about"}, "relation is 'about'"),
        ({"relation": ""}, "no known relation"),
        ({"basis": "hearsay"}, "basis is 'hearsay'"),
        ({"basis": ""}, "no known basis"),
        ({"basis": "later-sdk", "relation": "less-than"}, "no known relation of a claim to later-sdk figures"),
        ({"value": "many"}, "'many' is no double"),
        ({"value": "inf"}, "'inf' is no double"),
        ({"claim_id": "sdk14-mcmc-speedup-17"}, "stands also in graphcore-mk2-charts-sdk-1.4, line 18"),
    ],
)
def test_a_claim_that_is_not_whole_is_named(
    values: dict[str, str], message: str, folder: Path, frames: dict[str, pd.DataFrame]
) -> None:
    change(folder, CHARTS, NAME, **values)
    with pytest.raises(DamagedDocumentError, match=r"graphcore-mk2-charts-sdk-1\.4") as found:
        ledger_of(folder, frames)
    assert message in str(found.value)
    assert "line 19" in str(found.value)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT 1 AS value", "gives value int32, not value double"),
        (VALUE.replace("::DOUBLE", "::FLOAT"), "gives value float"),
        (f"{VALUE}, 2 AS more", "more int32"),
        (VALUE.replace("'b'", "NULL::VARCHAR"), "gives a value without its baseline"),
        (VALUE.replace("1.0", "'nan'"), "not finite"),
        (VALUE.replace("1.0", "'-inf'"), "not finite"),
        (f"{VALUE}; {VALUE}", "one statement is wanted, 2 are given"),
        ("DELETE FROM results", "read-only, delete is refused"),
        ("COPY results TO 'out.csv'", "read-only, copy is refused"),
        (f"{VALUE} FROM read_text('/etc/hostname')", "disabled"),
        (f"{VALUE} FROM nowhere", "nowhere does not exist"),
        (b"SELECT '\xff'", "is no UTF-8 text"),
    ],
)
def test_a_recomputation_that_does_not_give_what_it_must_is_named(
    sql: str | bytes, message: str, folder: Path, frames: dict[str, pd.DataFrame]
) -> None:
    rewrite_sql(folder, "mcmc-time", sql)
    with pytest.raises(DamagedDocumentError, match=r"mcmc-time\.sql") as found:
        ledger_of(folder, frames)
    assert message in str(found.value)


@pytest.mark.parametrize("sql", [f"{VALUE} WHERE false", VALUE.replace("1.0", "NULL")])
def test_a_recomputation_without_its_rows_is_a_finding_and_no_verdict(
    sql: str, folder: Path, frames: dict[str, pd.DataFrame]
) -> None:
    rewrite_sql(folder, "mcmc-time", sql)
    claim = ledger_of(folder, frames)["claims"].set_index("claim_id").loc["blog2020-mcmc-m2000-time"]
    assert claim["verdict"] == "not-recomputable"
    assert claim["not_recomputable"] == "Its recomputation found no row in this build"
    assert claim["recomputed"] == "[]"


def test_a_recomputation_that_only_a_row_names_or_only_the_sidecar_is_named(
    folder: Path, frames: dict[str, pd.DataFrame]
) -> None:
    text = (folder / "claims" / f"{CHARTS}.toml").read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines(keepends=True) if "sql/mcmc-speedup.sql" in line]
    sidecar = folder / "claims" / f"{CHARTS}.toml"
    sidecar.write_text(text.replace(line, ""), encoding="utf-8")
    with pytest.raises(DamagedDocumentError, match=r"mcmc-speedup\.sql: is not among the attachments"):
        ledger_of(folder, frames)
    shutil.copy(folder / "claims/sql/mcmc-time.sql", folder / "claims/sql/more.sql")
    sidecar.write_text(text + line.replace("mcmc-speedup", "more"), encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"more\.sql: sha256"):
        ledger_of(folder, frames)
    shutil.copy(folder / "claims/sql/mcmc-speedup.sql", folder / "claims/sql/more.sql")
    with pytest.raises(DamagedDocumentError, match=r"more\.sql: no row names this recomputation"):
        ledger_of(folder, frames)


def test_a_changed_recomputation_is_refused_until_it_is_sealed(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    path = folder / "claims" / "sql" / "mcmc-speedup.sql"
    path.write_text(f"-- mended\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"mcmc-speedup\.sql: sha256"):
        ledger_of(folder, frames)
    seal(folder / "claims")
    assert len(ledger_of(folder, frames)["claims"]) == 116


def test_a_contradiction_of_a_claim_that_is_not_there_is_named(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    change(folder, CONTRADICTIONS, "mcmc-17-and-27", claim_ids="sdk14-mcmc-speedup-17 nobody-claims-this")
    with pytest.raises(DamagedDocumentError, match="there is no claim nobody-claims-this"):
        ledger_of(folder, frames)
    change(folder, CONTRADICTIONS, "mcmc-17-and-27", claim_ids="")
    with pytest.raises(DamagedDocumentError, match="claims-contradictions: line 2: claim_ids is blank"):
        ledger_of(folder, frames)


@pytest.mark.parametrize(
    "mutate",
    [
        lambda rows: [{key: value for key, value in row.items() if key != "relation"} for row in rows],
        lambda rows: [{("ratio" if key == "relation" else key): value for key, value in row.items()} for row in rows],
    ],
    ids=["dropped column", "renamed header"],
)
def test_another_header_is_refused(
    mutate: Callable[[list[dict[str, str]]], list[dict[str, str]]], folder: Path, frames: dict[str, pd.DataFrame]
) -> None:
    rewrite(folder, BLOG, mutate(rows_of(folder, BLOG)))
    with pytest.raises(IpuResultsError, match="graphcore-mk2-blog-2020-12-09"):
        ledger_of(folder, frames)


def test_a_truncated_file_is_refused(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    path = folder / "claims" / BLOG
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(CatalogueError, match="graphcore-mk2-blog-2020-12-09"):
        ledger_of(folder, frames)


def test_swapped_rows_give_the_same_verdicts_in_another_order(folder: Path, frames: dict[str, pd.DataFrame]) -> None:
    before = ledger_of(folder, frames)["claims"]
    rows = rows_of(folder, BLOG)
    rewrite(folder, BLOG, [rows[1], rows[0], *rows[2:]])
    after = ledger_of(folder, frames)["claims"]
    assert after["claim_id"].tolist() != before["claim_id"].tolist()
    named = [frame.set_index("claim_id")[["verdict", "recomputed"]].sort_index() for frame in (before, after)]
    pd.testing.assert_frame_equal(*named)


def test_a_fault_in_the_ledger_leaves_the_old_build(tmp_path: Path, built: Path) -> None:
    raw, out = copy_raw(tmp_path / "raw"), built
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix}
    rewrite_sql(raw, "mcmc-time", "SELECT 1")
    done = run_cli("ingest", "--raw", raw, "--warehouse", out)
    assert done.returncode == 1
    assert done.stderr.startswith("error: graphcore-mk2-blog-2020-12-09: mcmc-time.sql: gives 1 int32")
    assert done.stderr.count("\n") == 1
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.suffix} == before


def test_a_quarantined_row_that_a_claim_needs_is_a_finding(tmp_path: Path) -> None:
    raw = copy_raw(tmp_path / "raw", "runs")
    edit(raw, PAGE, "<th>Time To Result (secs)</th>", "<th>Time To Result (fortnights)</th>")
    done = run_cli("ingest", "--raw", raw, "--warehouse", tmp_path / "warehouse")
    assert done.returncode == 0
    assert "not recomputed: graphcore-mk2-charts-sdk-1.4: sdk14-mcmc-speedup-17: mcmc-speedup.sql" in done.stderr


@given(st.text(max_size=40))
def test_any_text_as_sql_is_an_error_that_names_it(sql: str) -> None:
    told = pytest.raises(DamagedDocumentError, match=r"^some-document: some\.sql: ")
    with recomputer({}, pd.DataFrame({"claim_id": ["one"]})) as runner, told:
        runner.run(sql, "one", "some-document", "some")
