"""The planted faults are real ones, and what found them is counted."""

import subprocess
from pathlib import Path

from benchmarks.mutants import (
    Mutant,
    Outcome,
    apply,
    choose_mutants,
    find_tests,
    format_outcomes,
    list_python_mutants,
    list_sql_mutants,
    restore,
)
from tests.conftest import ROOT


def test_faults_are_the_same_in_each_run_and_change_their_file() -> None:
    chosen = choose_mutants(20)
    assert chosen == choose_mutants(30)[:20]
    for mutant in chosen:
        text = (ROOT / mutant.file).read_text(encoding="utf-8")
        assert text[mutant.offset :].startswith(mutant.old)
        assert apply(mutant, text) != text
        assert (ROOT / find_tests(mutant.file)).is_dir()


def test_faults_of_a_module_and_of_a_statement() -> None:
    module = "def f(a, *b):\n    return a < 2 and -a  # 3 < 4\n"
    found = [(fault.old, fault.new) for fault in list_python_mutants(Path("f.py"), module)]
    assert found == [("<", "<="), ("2", "3"), ("and", "or")]
    statement = "-- 1 < 2\nSELECT max(a) FROM t WHERE a <> 'b = 7' AND c >= 0.5"
    found = [(fault.old, fault.new) for fault in list_sql_mutants(Path("t.sql"), statement)]
    assert found[0] == ("max", "min")
    assert ("<>", "=") in found
    assert ("7", "8") not in found


def test_a_clone_is_restored_after_each_fault(tmp_path: Path) -> None:
    kept = tmp_path / "warehouse" / "results.parquet"
    kept.parent.mkdir()
    kept.write_text("as committed")
    commit = "git init -q && git add . && git -c user.name=a -c user.email=a@b.c commit -qm a"
    subprocess.run(commit, cwd=tmp_path, check=True, shell=True)
    kept.write_text("changed")
    added = kept.parent / "detail" / "added.parquet"
    added.parent.mkdir()
    added.write_text("new")
    restore(tmp_path)
    assert kept.read_text() == "as committed"
    assert not added.parent.exists()


def test_outcomes_are_counted_by_what_found_them() -> None:
    faults = [Mutant("pipeline/ipu_results/kit/text.py", line, 0, "<", "<=") for line in range(3)]
    outcomes = [
        Outcome(faults[0], ["test_a"], ["warehouse/results.parquet"]),
        Outcome(faults[1], [], ["failed"]),
        Outcome(faults[2], [], []),
    ]
    lines = format_outcomes(outcomes).splitlines()
    assert lines[-1] == "pipeline/ipu_results/kit/text.py:2: < → <="
    assert [cell.strip() for cell in lines[3].split("|")[1:-1]] == ["all", "3", "1", "2", "1"]
