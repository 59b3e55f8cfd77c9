"""Which paths make an entry, and what a folder may hold that must not be followed or read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.kit.limits import MAX_SMALL
from ipu_results.kit.text import escape_unprintable
from ipu_results.mlperf.entries import Entry, FileFinding, find_entries
from ipu_results.mlperf.records import entry_record
from ipu_results.mlperf.rules import load_rules, parse_round
from ipu_results.mlperf.tree import LocalTree

from tests.mlperf.mlperf_support import (
    DESCRIPTION,
    FIVE,
    entry,
    load_cases,
    log,
    put,
    score,
    score_one,
    texts,
)

RULES = load_rules()
ENTRY = "ACME/results/acme1/resnet"


@pytest.mark.parametrize(
    "name",
    [
        "training_results_v2.0",
        "2.0",
        "mlperf-1.1/v2.0",
        "v2.0.1",
        "training_results_v2.0-cuda11.6",
    ],
)
def test_round_in_a_name(name: str) -> None:
    assert parse_round(name) == "2.0"


@pytest.mark.parametrize("name", ["mlperf-2.0-py3.11", "v2.0-v3.0", "v20", "results", "٢.٠"])
def test_name_without_a_round(name: str) -> None:
    assert parse_round(name) is None


@pytest.mark.parametrize("case", load_cases("entries")["inventory"], ids=lambda case: case["says"])
def test_paths_make_an_inventory(case: dict[str, Any]) -> None:
    inventory = find_entries(case["paths"], RULES, case.get("name", ""))
    entries = [Entry(*places, tuple(logs)) for *places, logs in case["entries"]]
    assert list(inventory.entries) == entries
    assert list(inventory.findings) == [FileFinding(*finding) for finding in case["findings"]]


def test_an_entry_has_paths() -> None:
    found = Entry("v2.0", "2.0", "B", "s", "bert")
    assert found.path == "B/results/s/bert"
    assert found.full_path == "v2.0/B/results/s/bert"
    assert found.system_path == "v2.0/B/systems/s.json"
    assert found.scaling_path == "v2.0/B/results/s/bert/scaling.json"


@pytest.mark.parametrize(
    "path", ["/A/results/s/bert/result_0.txt", "../A/results/s/bert/result_0.txt", "A/./bert/", ""]
)
def test_path_that_leads_elsewhere_is_ignored(path: str) -> None:
    inventory = find_entries([path, "A/results/s/bert/"], RULES, "v2.0")
    assert inventory.entries == (Entry("", "2.0", "A", "s", "bert"),)
    assert inventory.findings == (FileFinding(path, "is not a plain relative path; ignored"),)


PARTS = st.sampled_from(
    ["results", "systems", "A", "B", "bert", "v2.0", "", "..", "result_0.txt", "s.json"]
)
PATHS = st.lists(PARTS | st.text(max_size=3), min_size=1, max_size=8).map("/".join)
LAID_OUT = st.tuples(PARTS, st.just("results"), PARTS, PARTS, PARTS).map("/".join)
DEEPER = st.tuples(st.lists(PARTS, max_size=3).map("/".join), LAID_OUT).map("/".join)


@given(st.lists(PATHS | DEEPER | DEEPER.map("{}/".format), max_size=12), st.text(max_size=6))
def test_any_paths_make_an_inventory(paths: list[str], name: str) -> None:
    inventory = find_entries(paths, RULES, name)
    assert find_entries(reversed([*paths, *paths]), RULES, name) == inventory
    submitters = {PurePosixPath(each.round_folder, each.submitter) for each in inventory.entries}
    for each in inventory.entries:
        assert {f"{each.full_path}/{log}" for log in each.logs} <= set(paths)
        # no round lies in the code of a submitter
        root = PurePosixPath(each.round_folder)
        assert submitters.isdisjoint([root, *root.parents])
    assert all(escape_unprintable(str(finding)) == str(finding) for finding in inventory.findings)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Write a checkout of one good entry."""
    entry(tmp_path / "v2.0", FIVE)
    return tmp_path / "v2.0"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Write another good entry, next to the checkout."""
    entry(tmp_path / "outside", FIVE)
    return tmp_path / "outside"


def test_files_linked_from_outside_are_not_read(tree: Path, outside: Path) -> None:
    (tree / ENTRY / "result_5.txt").symlink_to(outside / ENTRY / "result_0.txt")
    (tree / "ACME/systems").rename(tree.parent / "aside")
    (tree / "ACME/systems").symlink_to(outside / "ACME/systems")
    record, runs, findings = score_one(tree)
    assert [run["counted"] for run in runs] == [True] * 5 + [False]
    assert record["minutes"] == (11 + 12 + 13 + 20) / 4
    assert record["system"] is None
    assert record["system_sha256"] is None
    refused = "leads out of the folder; not followed"
    assert f"{ENTRY}/result_5.txt: does not count: cannot be read: {refused}" in findings
    assert f"{DESCRIPTION}: cannot be read; the system is unknown: {refused}" in findings


def test_scaling_file_linked_from_outside_makes_no_score(tree: Path, outside: Path) -> None:
    put(outside, "scaling.json", {"scaling_factor": 2})
    (tree / ENTRY / "scaling.json").symlink_to(outside / "scaling.json")
    record, _, _ = score_one(tree)
    assert record["minutes"] is None
    assert record["scaling_factor"] is None
    assert record["scaling_sha256"] is None


@pytest.mark.parametrize(
    "place", ["Other", "ACME/results/acme2", "ACME/results/acme1/bert", "Other/results"]
)
def test_folder_linked_from_outside_is_not_read(tree: Path, outside: Path, place: str) -> None:
    (tree / place).parent.mkdir(exist_ok=True)
    (tree / place).symlink_to(outside / "ACME/results/acme1", target_is_directory=True)
    scored = score(tree)
    assert len(scored.entries) == 1
    assert f"{place}: is a link out of the folder; not followed" in texts(scored)


@pytest.mark.parametrize(
    "path", ["../outside/file.txt", "ACME/../../outside/file.txt", "/etc/hostname", ".."]
)
def test_no_path_leads_out_of_the_tree(tree: Path, outside: Path, path: str) -> None:
    put(outside, "file.txt", b"secret")
    with pytest.raises(OSError, match=r"leads out of the folder|is not a regular file"):
        list(LocalTree(str(tree)).chunks(path))


def test_links_within_the_tree_are_read(tree: Path) -> None:
    (tree / ENTRY / "result_4.txt").rename(tree / "ACME/kept.txt")
    (tree / ENTRY / "result_4.txt").symlink_to("../../../kept.txt")
    (tree / "Other").symlink_to("ACME", target_is_directory=True)
    scored = score(tree)
    assert [each.entry.submitter for each in scored.entries] == ["ACME", "Other"]
    assert [each.minutes for each in scored.entries] == [12.0, 12.0]
    shared = "5 of its logs are also those of ACME/results/acme1/resnet"
    assert texts(scored) == [f"Other/results/acme1/resnet: {shared}"]


@pytest.mark.parametrize("target", ["nowhere.txt", "result_5.txt"])
def test_link_to_nothing_is_a_run_that_does_not_count(tree: Path, target: str) -> None:
    (tree / ENTRY / "result_5.txt").symlink_to(target)
    (tree / "ACME/results/acme1/bert").symlink_to("nowhere")
    _, runs, findings = score_one(tree)
    assert [run["counted"] for run in runs] == [True] * 5 + [False]
    assert findings[0] == "ACME/results/acme1/bert: is a broken link; not read"


@pytest.mark.parametrize("stray", ["analysis/results", "analysis/systems", "analysis/results/s"])
def test_folder_like_a_submitter_hides_no_round(tmp_path: Path, stray: str) -> None:
    rounds = {"training_results_v2.0", "training_results_v3.1"}
    for name in rounds:
        entry(tmp_path / name, FIVE)
    (tmp_path / stray).mkdir(parents=True)
    assert {each.entry.round for each in score(tmp_path).entries} == {"2.0", "3.1"}
    put(tmp_path, "analysis/results/s/bert/result_0.txt", b"")
    assert {each.entry.round_folder for each in score(tmp_path).entries} == {"", *rounds}


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (f"{ENTRY}/result_1.txt", "does not count: cannot be read: is not a regular file"),
        (f"{ENTRY}/result_9.txt", "does not count: cannot be read: is not a regular file"),
        (f"{ENTRY}/scaling.json", "cannot be read: is not a regular file"),
        ("ACME/systems/acme1.json", "cannot be read; the system is unknown: is not a regular file"),
    ],
)
def test_pipe_is_not_waited_for(tree: Path, place: str, message: str) -> None:
    (tree / place).unlink(missing_ok=True)
    os.mkfifo(tree / place)
    assert f"{place}: {message}" in texts(score(tree))


@pytest.mark.parametrize(("data", "code"), [(b"", errno.EACCES), (log()[:100], errno.EIO)])
def test_log_that_cannot_be_read_does_not_count(
    tree: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, code: int
) -> None:
    chunks = LocalTree.chunks

    def fail(self: LocalTree, path: str) -> Iterator[bytes]:
        if path.endswith("result_3.txt"):
            yield data
            raise OSError(code, os.strerror(code))
        yield from chunks(self, path)

    monkeypatch.setattr(LocalTree, "chunks", fail)
    record, runs, _ = score_one(tree)
    assert runs[3]["reason"] == f"cannot be read: {os.strerror(code)}"
    assert record["minutes"] == (11 + 12 + 20) / 3
    assert record["n_success"] == 4


def test_folder_that_cannot_be_listed_is_a_finding(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.scandir

    def scandir(path: str | Path) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path)

    (tree / "ACME/results/acme1/locked").mkdir()
    monkeypatch.setattr(os, "scandir", scandir)
    assert texts(score(tree))[0] == "ACME/results/acme1/locked: cannot be listed: Permission denied"


def test_small_file_that_is_large_is_refused(tree: Path) -> None:
    put(tree, "ACME/systems/acme1.json", b" " * (MAX_SMALL + 1))
    record, _, findings = score_one(tree)
    assert record["system"] is None
    assert record["minutes"] == 12.0
    assert findings == [
        "ACME/systems/acme1.json: cannot be read; the system is unknown: is larger than 1,000,000"
        " bytes"
    ]
    assert LocalTree(str(tree)).small_file("ACME/systems/none.json") is None


V05 = """\
:::MLPv0.5.0 resnet 1541720386.5 (/workspace/utils.py:49) run_start
:::MLPv0.5.0 resnet 1541720386.6 (<string>:1) model_hp_initial_shape: [4, 224, 224]
:::MLPv0.5.0 resnet 1541720900.5 (train.py:49) eval_accuracy: {{"epoch": 61, "value": 0.7522}}
:::MLPv0.5.0 resnet {stop} (train.py:49) run_stop{value}
"""
V06 = """\
:::MLL 1560881721.0 init_start: {{"metadata": {{"file": "train.py"}}, "value": null}}
:::MLL {init} init_stop: {{"value": null, "metadata": {{}}}}
:::MLL 1560883000.0 run_start: {{"value": null, "metadata": {{}}}}
:::MLL 1560883001.0 eval_accuracy: {{"value": "24.1", "metadata": {{"epoch_num": 4}}}}
:::MLL {stop} run_stop: {{"value": null, "metadata": {{"status": "success"}}}}
"""


def test_rounds_before_v0_7_are_scored_by_their_own_rules(tmp_path: Path) -> None:
    stops = [60.5, 120.5, 180.5, 240.5]
    v05 = [V05.format(stop=1541720386 + stop, value="").encode() for stop in stops]
    v05.append(V05.format(stop=1541720387, value=': {"success": "false"}').encode())
    # a submitter may be deep in v0.5, in a folder that is named like a round
    entry(tmp_path / "v0.5.0/google/cloud_v2.8", v05, described=None)
    v06 = [V06.format(stop=1560883060 + stop, init=1560881722).encode() for stop in stops]
    v06.append(V06.format(stop=1560883300, init=1560881721 + 20 * 60).encode())
    entry(tmp_path / "v0.6", v06)
    scored = score(tmp_path, None)
    records = [entry_record(each) for each in scored.entries]
    # the fastest is left out, and the one that does not count is the slowest
    assert [record["minutes"] for record in records] == [3.0, pytest.approx(240.5 / 60)]
    assert [record["round"] for record in records] == ["0.5", "0.6"]
    assert [record["epochs_to_converge"] for record in records] == [61.0, 4.0]
    reasons = [each.runs[4].reason for each in scored.entries]
    assert reasons == [
        "its status is aborted",
        "its initialisation took 20.0 minutes, the limit is 20",
    ]
    assert [each.n_success for each in scored.entries] == [4, 4]


def test_a_version_that_is_no_round_names_none(tmp_path: Path) -> None:
    entry(tmp_path / "cloud_v2.8", FIVE)
    assert score(tmp_path / "cloud_v2.8", None).entries[0].entry.round is None


def test_logs_are_files_with_the_name_of_a_result(tmp_path: Path) -> None:
    folder = entry(tmp_path, FIVE[:4])
    for name in ("Result_9.txt", "result_9.log", "old_result_9.txt", "result_9.txt.bak"):
        put(folder, name, b"nonsense")
    (folder / "result_8.txt").mkdir()
    put(folder, "result_run10.txt", FIVE[4])
    record, _, findings = score_one(tmp_path)
    assert record["n_runs"] == 5
    assert record["minutes"] == 12.0
    assert findings == []


def test_rounds_are_at_the_top_or_a_few_folders_below(tmp_path: Path) -> None:
    top = tmp_path / "all"
    entry(top / "training_results_v2.0", FIVE)
    [scored] = score(top).entries
    assert scored.entry.round_folder == "training_results_v2.0"
    [scored] = score(top / "training_results_v2.0").entries
    assert scored.entry.round_folder == ""
    deep = tmp_path / "deep"
    top.rename(put(deep, "1/2/3/4", "").with_name("all"))
    with pytest.raises(UnrecognisedDocumentError, match="has no entry"):
        score(deep)
