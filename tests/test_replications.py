"""Pairs of two parties, energy next to a GPU, and shares of a peak, by hand and with made-up rows."""

from __future__ import annotations

import math
import tomllib

import pytest
from analysis_support import make_warehouse
from conftest import Query
from ipu_results import networks
from ipu_results._util.resources import SCHEMA
from ipu_results._util.student import compute_t_quantile
from ipu_results.emulator.scoring import load_network

COUNTS = tomllib.loads((SCHEMA / "vocabulary" / "operation_counts.toml").read_text(encoding="utf-8"))["network"]

# the committed rows


def test_ratios_of_printed_pairs(query: Query) -> None:
    rows = query(
        "SELECT chips, second_framework, ratio FROM replications WHERE counts AND first_publisher = 'Graphcore' "
        "AND second_publisher = 'Texas A&M University' AND network = 'ResNet-50 v1.5' ORDER BY ALL"
    )
    assert rows == [
        (4, "PyTorch", pytest.approx(7078.1 / 7303)),
        (4, "TensorFlow1", pytest.approx(7804 / 7864)),
        (16, "PyTorch", pytest.approx(18532.6 / 25534)),
        (16, "PyTorch", pytest.approx(23082.9 / 25534)),
        (16, "TensorFlow1", pytest.approx(30170 / 30690)),
        (64, "TensorFlow1", pytest.approx(107535 / 108566)),
    ]


def test_faster_time_to_train_is_a_ratio_above_one(query: Query) -> None:
    pairs = (
        "SELECT chips, first_figure / second_figure = ratio FROM replications WHERE measure LIKE 'mlperf%' AND counts"
    )
    assert query(f"{pairs} ORDER BY chips") == [(16, True), (64, True)]


def test_first_epoch_is_shown_and_not_counted(query: Query) -> None:
    row = "second_figure = 1893.9 AND first_publisher = 'Graphcore'"
    assert query(f"SELECT counts, match, differs FROM replications WHERE {row}") == [
        (False, "explained", "start-up included")
    ]


def test_summary_is_the_mean_over_works(query: Query) -> None:
    ratios = query(
        "SELECT first_publisher, second_publisher, measure, network, test, chip, chips, ratio FROM replications "
        "WHERE counts AND parties = 'vendor and independent'"
    )
    works: dict[object, list[float]] = {}
    for *work, ratio in ratios:
        works.setdefault(tuple(work), []).append(math.log(ratio))
    logs = [sum(values) / len(values) for values in works.values()]
    mean = sum(logs) / len(logs)
    error = math.sqrt(sum((log - mean) ** 2 for log in logs) / (len(logs) - 1) / len(logs))
    t = compute_t_quantile(0.95, len(logs) - 1)
    summary = (
        "SELECT counted, works, mean_ratio, mean_low, mean_high FROM replication_summary WHERE parties LIKE 'vendor%'"
    )
    assert query(summary) == [
        (len(ratios), len(logs), *(pytest.approx(math.exp(mean + sign * t * error)) for sign in (0, -1, 1)))
    ]


def test_energy_of_an_image_next_to_the_gpu(query: Query) -> None:
    """CARAML, tables III and figure 3: batch 256, 40,563.65 images/Wh on GC200, on A100 as printed."""
    (ratio, ipu, gpu, rating, throughput), *_ = query(
        "SELECT energy_ratio, ipu_energy_per_item_j, gpu_energy_per_item_j, energy_ratio_at_gpu_rating, gpu_throughput "
        "FROM energy_ipu_gpu WHERE item = 'image' AND batch_size = 256 AND gpu_chip = 'A100-40GB'"
    )
    assert ipu == pytest.approx(1 / 11.267681, rel=1e-6)
    assert ratio == pytest.approx(gpu / ipu)
    assert rating == pytest.approx(400 / throughput / ipu)


def test_energy_that_implies_more_than_the_rating_is_marked(query: Query) -> None:
    rows = "SELECT implied_power_w, above_rating FROM energy_per_item WHERE network = 'GPT-117M' AND batch_size = 64"
    assert query(rows) == [(pytest.approx(64.99 / 4.08 * 3600, rel=1e-3), True)]


def test_shares_of_the_peak(query: Query) -> None:
    """Qwant's C2 at batch 12: two chips, 124.5 TFLOP/s by the datasheet and 58.9 measured by Citadel."""
    row = "chip = 'GC2' AND batch_size = 12"
    ((throughput, achieved, datasheet, measured),) = query(
        f"SELECT throughput_per_chip, achieved_tflops, datasheet_share, measured_share FROM peak_shares WHERE {row}"
    )
    assert achieved == pytest.approx(throughput * 2 * 7969996800 / 1e12)
    assert (datasheet, measured) == (pytest.approx(achieved / 124.5), pytest.approx(achieved / 58.9))


def test_training_counts_three_times_the_operations(query: Query) -> None:
    flop = "SELECT DISTINCT task, gflop_per_item FROM peak_shares WHERE network = 'ResNet-50 v1.5' ORDER BY task"
    assert query(flop) == [("inference", pytest.approx(8.178368512)), ("training", pytest.approx(24.535105536))]


def test_highest_measured_figure_is_the_ceiling(query: Query) -> None:
    rows = "SELECT measured, stated, share FROM ceilings WHERE chip = 'GC2' AND is_ceiling AND resource LIKE '%16 bits'"
    assert query(rows) == [(58.9, 124.5, pytest.approx(58.9 / 124.5))]


@pytest.mark.slow
@pytest.mark.parametrize("entry", COUNTS, ids=lambda entry: f"{entry['network']}-{entry.get('sequence', '')}")
def test_operation_counts_are_those_of_the_built_network(entry: dict[str, object]) -> None:
    options = {"sequence": entry["sequence"]} if "sequence" in entry else {}
    program = load_network(networks.build(entry["built"], **options))(1)  # type: ignore[arg-type]
    activations = sum(operator.elements for operator in program.operators)
    assert (entry["macs"], entry["parameters"], entry["activations"]) == (program.macs, program.parameters, activations)


# made-up rows

VENDOR = {
    **{"origin": "published", "publisher": "Graphcore", "model": "Net", "item": "image", "task": "training"},
    **{"platform": "IPU-POD16", "chip": "GC200", "chip_count": 16, "framework": "PyTorch", "sdk_version": "2.4"},
    **{"precision": "16.16", "batch_size": 64, "dataset": "ImageNet", "throughput": 100.0, "document_id": "page"},
}
OTHER = {**VENDOR, "publisher": "Lab", "document_id": "paper", "throughput": 90.0}
DOCUMENTS = [{"document_id": "page"}, {"document_id": "paper"}]


def pair(*rows: dict[str, object]) -> list[tuple[object, ...]]:
    database = make_warehouse(rows, documents=DOCUMENTS)
    return database.query("SELECT ratio, counts, match, differs FROM replications ORDER BY second_result_id")


def test_equal_set_ups_count() -> None:
    assert pair(VENDOR, OTHER) == [(0.9, True, "equal", None)]


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"framework": "TensorFlow2"}, "framework"),
        ({"precision": "32.32"}, "precision"),
        ({"batch_size": 129}, "batch"),
        ({"dataset": "generated"}, "data"),
        ({"conditions": "1st epoch"}, "start-up included"),
    ],
)
def test_set_up_that_explains_is_shown_and_not_counted(change: dict[str, object], differs: str) -> None:
    assert pair(VENDOR, {**OTHER, **change}) == [(0.9, False, "explained", differs)]


def test_sdk_and_batch_within_a_factor_of_two_count() -> None:
    assert pair(VENDOR, {**OTHER, "sdk_version": "3.0", "batch_size": 128}) == [
        (0.9, True, "close", "SDK, batch within a factor of 2")
    ]


def test_closest_batch_counts_whatever_its_figure() -> None:
    closer = {**OTHER, "throughput": 50.0}
    rows = pair(VENDOR, {**OTHER, "batch_size": 128, "throughput": 100.0}, closer)
    assert [(ratio, counts) for ratio, counts, *_ in rows] == [(1.0, False), (0.5, True)]


def test_nearer_batch_goes_before_the_larger_one() -> None:
    rows = pair(VENDOR, {**OTHER, "batch_size": 128}, {**OTHER, "batch_size": 96, "throughput": 80.0})
    assert [(ratio, counts) for ratio, counts, *_ in rows] == [(0.9, False), (0.8, True)]


def test_unstated_batch_does_not_count_against_a_sweep() -> None:
    unstated = {**VENDOR, "batch_size": None}
    rows = pair(unstated, OTHER, {**OTHER, "batch_size": 128})
    assert not any(counts for _, counts, *_ in rows)
    assert [counts for _, counts, *_ in pair(unstated, OTHER)] == [True]


@pytest.mark.parametrize(
    "change", [{"chip_count": 4}, {"task": "inference"}, {"item": "token"}, {"publisher": "Graphcore"}]
)
def test_other_work_or_the_same_party_is_no_pair(change: dict[str, object]) -> None:
    assert pair(VENDOR, {**OTHER, **change}) == []
