"""What makes an entry, and what a folder may hold that must not be followed or read."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ipu_results.errors import UnrecognisedDocumentError
from ipu_results.mlperf.layout import Entry, Finding, plan, round_of
from ipu_results.mlperf.rules import in_order, rules
from ipu_results.mlperf.scoring import in_processes, score_tree
from ipu_results.mlperf.systems import System, read_system
from ipu_results.mlperf.tree import MAX_SMALL, LocalTree, small_file
from mlperf_support import SYSTEM, VanishingTree, entry, log, logs, put, scored, the_record, the_runs, told

FIVE = logs(10, 11, 12, 13, 14)
LOGS = tuple(f"result_{number}.txt" for number in range(5))


@pytest.mark.parametrize(
    ("name", "round_"),
    [
        ("training_results_v2.0", "2.0"),
        ("v0.7", "0.7"),
        ("2.1", "2.1"),
        ("mlperf-1.1/training_results_v3.0", "3.0"),
        ("training_v2.0_results", "2.0"),
        ("v2.0.1", "2.0"),
        ("training_results_v2.0-cuda11.6", "2.0"),
        ("mlperf-2.0-py3.11", None),
        ("v2.0-v3.0", None),
        ("v20", None),
        ("results", None),
        ("", None),
        ("٢.٠", None),
    ],
)
def test_a_name_tells_the_round(name: str, round_: str | None) -> None:
    assert round_of(name) == round_


def test_paths_make_entries_in_order() -> None:
    paths = [
        "v2.0/B/results/s/bert/result_1.txt",
        "v2.0/B/results/s/bert/result_0.txt",
        "v2.0/B/results/s/bert/summary.txt",
        "v2.0/B/systems/s.json",
        "v2.0/A/results/s/resnet/",
        "v1.0/C/results/s/ssd/result_run1.txt",
    ]
    found = plan(paths, rules())
    assert found.entries == (
        Entry("v1.0", "1.0", "C", "s", "ssd", ("result_run1.txt",)),
        Entry("v2.0", "2.0", "A", "s", "resnet"),
        Entry("v2.0", "2.0", "B", "s", "bert", ("result_0.txt", "result_1.txt")),
    )
    assert found.findings == ()
    last = found.entries[-1]
    assert (last.path, last.full_path) == ("B/results/s/bert", "v2.0/B/results/s/bert")
    assert (last.system_path, last.scaling_path) == ("v2.0/B/systems/s.json", "v2.0/B/results/s/bert/scaling.json")


def test_results_deep_in_somebody_s_code_are_no_round() -> None:
    deep = "v2.0/A/benchmarks/resnet/X/results/s/resnet/result_0.txt"
    found = plan(["v2.0/A/results/s/bert/result_0.txt", deep], rules())
    assert [one.full_path for one in found.entries] == ["v2.0/A/results/s/bert"]


def test_what_gives_no_entry_is_told() -> None:
    paths = [
        "A/results/empty/",
        "A/results/s/notes/",
        "A/results/s/notes/readme.txt",
        "A/results/s/bert/result_0.txt",
        "A/systems/s.json",
        "A/systems/unused.json",
    ]
    assert plan(paths, rules(), "v2.0").findings == (
        Finding("A/results/s/notes", "holds no result_*.txt and is no benchmark: left out"),
        Finding("A/results/empty", "holds no benchmark folder"),
        Finding("A/systems/unused.json", "describes a system without results"),
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("results", "names no round; give one with --round"),
        ("v6.0", "round 6.0 is later than v5.1, the last one known"),
    ],
)
def test_a_round_that_is_not_known_is_scored_and_told(name: str, message: str) -> None:
    found = plan(["A/results/s/bert/result_0.txt"], rules(), name)
    assert (len(found.entries), found.findings) == (1, (Finding(name, message),))


@pytest.mark.parametrize(
    "path", ["/A/results/s/bert/result_0.txt", "../A/results/s/bert/result_0.txt", "A/./bert/", ""]
)
def test_a_path_that_leads_elsewhere_is_left_out(path: str) -> None:
    found = plan([path, "A/results/s/bert/"], rules(), "v2.0")
    assert found.entries == (Entry("", "2.0", "A", "s", "bert"),)
    assert found.findings == (Finding(path, "is no path within a tree: left out"),)


PARTS = st.sampled_from(
    ["results", "systems", "A", "B", "bert", "v2.0", "v0.6", "", "..", ".", "result_0.txt", "s.json"]
)
PATHS = st.lists(PARTS | st.text(max_size=3), min_size=1, max_size=8).map("/".join)
LAID_OUT = st.tuples(PARTS, st.just("results"), PARTS, PARTS, PARTS).map("/".join)
DEEPER = st.tuples(st.lists(PARTS, max_size=3).map("/".join), LAID_OUT).map("/".join)


@given(st.lists(PATHS | DEEPER | DEEPER.map("{}/".format), max_size=12), st.text(max_size=6))
def test_any_paths_make_a_plan(paths: list[str], name: str) -> None:
    found = plan(paths, rules(), name)
    assert plan(reversed([*paths, *paths]), rules(), name) == found
    order = [(in_order(one.round or "0"), one.checkout, one.submitter, one.system, one.folder) for one in found.entries]
    assert order == sorted(set(order))
    roots = {tuple(one.checkout.split("/")) if one.checkout else () for one in found.entries}
    assert not any(a != b and b[: len(a)] == a for a in roots for b in roots)
    assert {f"{one.full_path}/{name}" for one in found.entries for name in one.logs} <= set(paths)
    assert all(str(finding).isprintable() for finding in found.findings)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FACTS = st.dictionaries(st.sampled_from(sorted(SYSTEM)), JSON | st.sampled_from(["8", "9" * 5000, 1e400, "²"]))


@given(st.binary(max_size=40) | (JSON | FACTS).map(lambda told: json.dumps(told).encode()))
def test_any_description_is_read(data: bytes) -> None:
    system = read_system(data, rules())
    assert isinstance(system, System)
    assert system.division in {None, "closed", "open"}
    assert system.accelerators is None or 0 <= system.accelerators < 2**63


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout of one good entry."""
    entry(tmp_path / "v2.0", FIVE)
    return tmp_path / "v2.0"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Another good entry, beside the checkout."""
    entry(tmp_path / "outside", FIVE)
    return tmp_path / "outside"


def test_a_log_linked_from_outside_is_not_read(tree: Path, outside: Path) -> None:
    linked = tree / "ACME/results/acme1/resnet/result_5.txt"
    linked.symlink_to(outside / "ACME/results/acme1/resnet/result_0.txt")
    found = scored(tree)
    assert [run.counted for run in found.entries[0].runs] == [True] * 5 + [False]
    assert told(found)[-1] == (
        "ACME/results/acme1/resnet/result_5.txt: does not count: cannot be read: leads out of the tree: not followed"
    )


@pytest.mark.parametrize("place", ["Other", "ACME/results/acme2", "ACME/results/acme1/bert", "Other/results"])
def test_a_folder_linked_from_outside_is_not_read(tree: Path, outside: Path, place: str) -> None:
    (tree / place).parent.mkdir(exist_ok=True)
    (tree / place).symlink_to(outside / "ACME/results/acme1", target_is_directory=True)
    found = scored(tree)
    assert len(found.entries) == 1
    assert f"{place}: is a link out of the tree: not followed" in told(found)


@pytest.mark.parametrize("place", ["ACME/systems", "ACME/systems/acme1.json"])
def test_a_description_linked_from_outside_is_not_read(tree: Path, outside: Path, place: str) -> None:
    aside = tree.parent / "aside"
    (tree / place).rename(aside)
    (tree / place).symlink_to(outside / place)
    found = scored(tree)
    assert (found.entries[0].system, found.entries[0].minutes) == (
        System(findings=found.entries[0].system.findings),
        12,
    )
    assert told(found)[-1] == (
        "ACME/systems/acme1.json: cannot be read, the system is unknown: leads out of the tree: not followed"
    )
    assert (f"{place}: is a link out of the tree: not followed" in told(found)) == (place == "ACME/systems")


def test_a_scaling_file_linked_from_outside_gives_no_score(tree: Path, outside: Path) -> None:
    put(outside, "scaling.json", {"scaling_factor": 2})
    (tree / "ACME/results/acme1/resnet/scaling.json").symlink_to(outside / "scaling.json")
    record = the_record(tree)
    assert (record["minutes"], record["scaling_factor"], record["scaling_sha256"]) == (None, None, None)
    assert record["no_score_reason"] == "its scaling factor cannot be read"


@pytest.mark.parametrize("path", ["../outside/file.txt", "ACME/../../outside/file.txt", "/etc/hostname", ".."])
def test_no_path_leads_out_of_the_tree(tree: Path, outside: Path, path: str) -> None:
    put(outside, "file.txt", b"secret")
    with pytest.raises(OSError, match=r"leads out of the tree|is no regular file"):
        list(LocalTree(str(tree)).chunks(path))


def test_links_within_the_tree_are_read(tree: Path) -> None:
    folder = tree / "ACME/results/acme1/resnet"
    (folder / "result_4.txt").rename(tree / "ACME/kept.txt")
    (folder / "result_4.txt").symlink_to("../../../kept.txt")
    (tree / "Other").symlink_to("ACME", target_is_directory=True)
    found = scored(tree)
    assert [(one.entry.submitter, one.minutes) for one in found.entries] == [("ACME", 12.0), ("Other", 12.0)]
    assert told(found) == []


@pytest.mark.parametrize("target", ["nowhere.txt", "result_5.txt"])
def test_a_link_to_nothing_hides_no_other_log(tree: Path, target: str) -> None:
    (tree / "ACME/results/acme1/resnet/result_5.txt").symlink_to(target)
    found = scored(tree)
    assert [run.counted for run in found.entries[0].runs] == [True] * 5 + [False]
    assert found.entries[0].runs[-1].file == "result_5.txt"


@pytest.mark.parametrize("stray", ["analysis/results", "analysis/systems", "analysis/results/s"])
def test_a_folder_that_looks_like_a_submitter_hides_no_round(tmp_path: Path, stray: str) -> None:
    for name in ("training_results_v2.0", "training_results_v3.1"):
        entry(tmp_path / name, FIVE)
    (tmp_path / stray).mkdir(parents=True)
    assert {one.entry.round for one in scored(tmp_path).entries} == {"2.0", "3.1"}
    put(tmp_path, "analysis/results/s/bert/result_0.txt", b"")
    assert {one.entry.checkout for one in scored(tmp_path).entries} == {
        "",
        "training_results_v2.0",
        "training_results_v3.1",
    }


def test_a_results_folder_within_a_submitters_is_left_out_and_told() -> None:
    paths = ["v2.0/A/results/s/bert/result_0.txt", "v2.0/A/code/B/results/s/bert/result_0.txt"]
    found = plan(paths, rules())
    assert [one.submitter for one in found.entries] == ["A"]
    assert "v2.0/A/code: lies within a submitter's folder: left out" in [str(finding) for finding in found.findings]


def test_a_benchmark_folder_linked_to_nothing_is_told(tree: Path) -> None:
    (tree / "ACME/results/acme1/bert").symlink_to("nowhere")
    assert told(scored(tree)) == ["ACME/results/acme1/bert: is a broken link: not read"]


@pytest.mark.parametrize("name", ["result_1.txt", "result_9.txt"])
def test_a_pipe_does_not_hang(tree: Path, name: str) -> None:
    path = tree / "ACME/results/acme1/resnet" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    path_told = f"ACME/results/acme1/resnet/{name}"
    assert f"{path_told}: does not count: cannot be read: is no regular file" in told(scored(tree))


@pytest.mark.parametrize("place", ["ACME/systems/acme1.json", "ACME/results/acme1/resnet/scaling.json"])
def test_a_pipe_in_place_of_a_small_file_does_not_hang(tree: Path, place: str) -> None:
    (tree / place).unlink(missing_ok=True)
    os.mkfifo(tree / place)
    assert any(one.startswith(f"{place}: cannot be read") and "is no regular file" in one for one in told(scored(tree)))


def test_a_folder_in_place_of_a_log_is_none(tree: Path) -> None:
    (tree / "ACME/results/acme1/resnet/result_9.txt").mkdir()
    found = scored(tree)
    assert (len(found.entries[0].runs), told(found)) == (5, [])


def test_logs_that_vanish_do_not_count(tree: Path) -> None:
    found = score_tree(VanishingTree(str(tree)), in_processes(1))
    (one,) = found.entries
    assert (one.minutes, one.reason) == (None, "5 of 5 runs do not count, at most 1 may")
    assert {run.reason for run in one.runs} == {"cannot be read: No such file or directory"}


def test_a_log_that_cannot_be_read_does_not_count(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = LocalTree.chunks

    def chunks(self: LocalTree, path: str) -> Iterator[bytes]:
        if path.endswith("result_3.txt"):
            yield log()[:100]
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        yield from real(self, path)

    monkeypatch.setattr(LocalTree, "chunks", chunks)
    assert [run["reason"] for run in the_runs(tree)] == [None, None, None, "cannot be read: Input/output error", None]


def test_a_folder_that_cannot_be_listed_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path)

    (tree / "ACME/results/acme1/locked").mkdir()
    monkeypatch.setattr(os, "scandir", scandir)
    found = told(scored(tree))
    assert found[0] == "ACME/results/acme1/locked: cannot be listed: Permission denied"


def test_a_small_file_that_is_large_is_refused(tree: Path) -> None:
    put(tree, "ACME/systems/acme1.json", b" " * (MAX_SMALL + 1))
    record = the_record(tree)
    assert (record["system"], record["minutes"]) == (None, 12.0)
    assert told(scored(tree)) == [
        "ACME/systems/acme1.json: cannot be read, the system is unknown: is larger than 1,000,000 bytes"
    ]


def test_a_file_that_is_not_there_is_none(tree: Path) -> None:
    assert small_file(LocalTree(str(tree)), "ACME/systems/none.json") is None


def test_an_empty_log_does_not_count(tmp_path: Path) -> None:
    entry(tmp_path, [*FIVE[:4], b""])
    assert the_runs(tmp_path)[4]["reason"] == "holds no :::MLLOG line"
    assert the_record(tmp_path)["minutes"] == 12.0


@pytest.mark.parametrize("name", ["training_results_v0.5", "training_results_v0.6"])
def test_an_old_round_alone_is_refused_by_name(tmp_path: Path, name: str) -> None:
    entry(tmp_path / name, FIVE)
    with pytest.raises(UnrecognisedDocumentError, match=r"round 0\.[56] is refused: its logs have another syntax"):
        scored(tmp_path / name, None)


def test_an_old_round_beside_others_is_told(tmp_path: Path) -> None:
    entry(tmp_path / "v0.6", FIVE)
    entry(tmp_path / "v2.0", FIVE)
    found = scored(tmp_path, None)
    assert [one.entry.full_path for one in found.entries] == ["v2.0/ACME/results/acme1/resnet"]
    assert told(found) == [
        "v0.6: round 0.6 is refused: its logs have another syntax; v0.7 and later are scored",
    ]


@pytest.mark.parametrize(
    ("data", "version"), [(b":::MLPv0.5.0 resnet 1 run_start\n", "v0.5"), (b":::MLL 1.0 run_start: {}\n", "v0.6")]
)
def test_old_logs_in_a_newer_round_are_refused_by_their_syntax(tmp_path: Path, data: bytes, version: str) -> None:
    entry(tmp_path, [data] * 5)
    assert {run["reason"] for run in the_runs(tmp_path)} == {f"has the syntax of {version}"}
    assert the_record(tmp_path)["minutes"] is None


def test_a_folder_without_logs_is_a_hole(tmp_path: Path) -> None:
    folder = entry(tmp_path, [])
    put(folder, "readme.md", "the logs are elsewhere")
    put(folder, "summary.csv", "benchmark,minutes\nresnet,1.0\n")
    record = the_record(tmp_path)
    assert (record["n_runs"], record["n_success"], record["minutes"]) == (0, 0, None)
    assert record["no_score_reason"] == "its logs are missing"
    assert told(scored(tmp_path)) == ["ACME/results/acme1/resnet: is a hole: its logs are missing"]


@pytest.mark.parametrize("name", ["result_run10.txt", "result_a.txt", "result_.txt"])
def test_logs_need_no_number(tmp_path: Path, name: str) -> None:
    folder = entry(tmp_path, FIVE[:4])
    put(folder, name, FIVE[4])
    assert (the_record(tmp_path)["n_runs"], the_record(tmp_path)["minutes"]) == (5, 12.0)


@pytest.mark.parametrize("name", ["result.txt", "Result_9.txt", "result_9.log", "old_result_9.txt", "result_9.txt.bak"])
def test_other_files_are_no_logs(tmp_path: Path, name: str) -> None:
    put(entry(tmp_path, FIVE), name, b"nonsense")
    assert (the_record(tmp_path)["n_runs"], told(scored(tmp_path))) == (5, [])


def test_a_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    os.makedirs(os.fsencode(tmp_path) + b"/ACME/results/a\xff\n1/resnet")
    assert told(scored(tmp_path))[-1] == r"ACME/results/a\udcff\n1/resnet: is a hole: its logs are missing"


@pytest.mark.parametrize("depth", ["", "training_results_v2.0", "all/training_results_v2.0"])
def test_a_checkout_is_found_in_the_folder_above_it(tmp_path: Path, depth: str) -> None:
    entry(tmp_path / "top" / depth, FIVE)
    if depth.startswith("all"):
        with pytest.raises(UnrecognisedDocumentError, match="holds no entry"):
            scored(tmp_path / "top")
    else:
        (one,) = scored(tmp_path / "top").entries
        assert (one.entry.checkout, one.entry.round, one.minutes) == (depth, "2.0", 12.0)
