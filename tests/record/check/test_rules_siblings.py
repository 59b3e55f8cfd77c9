"""Rules that compare a row with its siblings: each sees one planted error in rows that it does not
flag as printed.
"""

from __future__ import annotations

from benchmarks.planted_errors import Tables
from tests.cases import every_case
from tests.record.check.rules_support import change, change_results, find, load_dataset, pick, run

CURVES = "independent_results 701-1600"  # YOLOv4 of Heidelberg, by batch and image
BERT = ("bow_training 1-20", "pod_training 1-20", "bow_training_history 1-20")


@every_case(__file__, "planted")
def test_planted_error_is_flagged(
    rule: str, rows: tuple[str, ...], place: str, texts: dict[str, str]
) -> None:
    printed = pick(*rows)
    changed = change(printed, place, **texts)
    before = {flag[1:3] for flag in find(rule, printed)}
    after = {flag[1:3] for flag in find(rule, changed)}
    assert place in {where for where, _ in after - before}


def test_batch_of_the_neighbour_is_a_setup_with_two_figures() -> None:
    printed = pick("qwant_c2 1-6")
    results = printed["results"]
    is_third = results["row_number"] == 3
    twice = change_results(
        printed,
        batch_size=results["batch_size"].mask(is_third, 4),
        micro_batch_size=results["micro_batch_size"].mask(is_third, 2),
    )
    flagged = [flag[1:3] for flag in find("R38", twice)]
    assert flagged == [
        ("qwant_c2 2", "latency_ms"),
        ("qwant_c2 2", "throughput"),
        ("qwant_c2 3", "latency_ms"),
        ("qwant_c2 3", "throughput"),
    ]
    assert find("R38", printed) == []


def test_row_unlike_its_conditions_is_flagged() -> None:
    printed = pick(CURVES)
    results = printed["results"]
    single = results["precision_printed"].mask(results["row_number"] == 736, "single")
    [flag] = find("R43", change_results(printed, precision_printed=single))
    message = "single, where the 17 other rows with the same conditions have half; read the cell "
    assert flag[:3] == ("warn", "independent_results 736", "precision_printed")
    assert flag[3].startswith(message)
    assert find("R43", printed) == []


def find_messages(data: Tables) -> list[str]:
    return sorted(run(data, "R46")["message"])


def test_digits_give_away_the_clock_of_a_column() -> None:
    """One figure that is off a whole number of cycles is enough for silence about its column."""
    data = load_dataset()
    hits = find_messages(data)
    assert [message.partition(" with")[0] for message in hits] == [
        "all 127 figures of arithmetic throughput of Bow (independent-tessellate-peak-flops)",
        "all 16 figures of time of Bow (independent-ipuma-xdrop)",
        "all 16 figures of time of Graphcore IPU (independent-ipuma-xdrop)",
    ]
    assert all("at 1.85 GHz, 0 at 1.33 GHz" in message for message in hits)
    rows = data["microbenchmarks"]
    [last] = rows.index[(rows["chip"] == "Bow") & (rows["value"].round(6) == 353.088271)]
    values = rows["canonical_value"].mask(rows.index == last, rows["canonical_value"] * (1 + 1e-9))
    changed = {"microbenchmarks": rows.assign(canonical_value=values)}
    assert find_messages(data | changed) == [hits[0], hits[2]]
