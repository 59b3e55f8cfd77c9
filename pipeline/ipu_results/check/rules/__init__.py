"""The quality rules: each is a pure function from the dataset to flags. A rule reports and never changes a figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from ipu_results.check.rules.dataset import FLAGS, Dataset, build_dataset, build_no_flags, list_printed_tables
from ipu_results.check.rules.identity import (
    flag_blank_cell,
    flag_name_variants,
    flag_network_identity,
    flag_number_format,
    flag_packed_batch,
    flag_repeated_figure,
    flag_unit,
)
from ipu_results.check.rules.little import flag_batch_against_siblings, flag_latency_below_period
from ipu_results.check.rules.microbenchmarks import (
    flag_microbenchmark_above_peak,
    flag_peak_against_series,
    flag_share_against_total,
    flag_thousandfold,
    flag_two_figures_of_one_work,
)
from ipu_results.check.rules.placement import (
    flag_batch_against_configuration,
    flag_data_against_configuration,
    flag_framework_ratio,
    flag_mixed_precision,
    flag_older_sdk,
    flag_precision_against_configuration,
    flag_section,
    flag_unnamed_work,
)
from ipu_results.check.rules.plausibility import (
    flag_flops_above_peak,
    flag_official_record,
    flag_power_above_rating,
    flag_power_above_scope,
)
from ipu_results.check.rules.scaling import (
    flag_depth_against_basis,
    flag_depth_against_siblings,
    flag_depth_jump,
    flag_falling_latency,
    flag_falling_throughput,
    flag_generation_ratio,
    flag_slower_generation,
    flag_superlinear_scaling,
)

__all__ = ["RULES", "Dataset", "Rule", "build_dataset", "find_flags", "list_printed_tables"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its id, its title, and the function that flags."""

    id: str
    title: str
    find: Callable[[Dataset], pd.DataFrame]


RULES: tuple[Rule, ...] = (
    Rule("R01", "latency-below-period", flag_latency_below_period),
    Rule("R02", "latency-falls-with-batch", flag_falling_latency),
    Rule("R03", "throughput-falls-with-batch", flag_falling_throughput),
    Rule("R04", "batch-contradicts-siblings", flag_batch_against_siblings),
    Rule("R05", "pipeline-depth-jump", flag_depth_jump),
    Rule("R06", "newer-machine-slower", flag_slower_generation),
    Rule("R07", "generation-ratio", flag_generation_ratio),
    Rule("R08", "superlinear-scaling", flag_superlinear_scaling),
    Rule("R09", "blank-cell", flag_blank_cell),
    Rule("R10", "unit-not-the-column's", flag_unit),
    Rule("R11", "row-contradicts-its-section", flag_section),
    Rule("R12", "official-record", flag_official_record),
    Rule("R13", "batch-against-config", flag_batch_against_configuration),
    Rule("R14", "repeated-figure", flag_repeated_figure),
    Rule("R15", "data-against-config", flag_data_against_configuration),
    Rule("R16", "name-variants", flag_name_variants),
    Rule("R17", "older-SDK", flag_older_sdk),
    Rule("R18", "mixed-precision-group", flag_mixed_precision),
    Rule("R19", "number-format", flag_number_format),
    Rule("R20", "model-identity", flag_network_identity),
    Rule("R21", "flops-above-peak", flag_flops_above_peak),
    Rule("R22", "power-above-rating", flag_power_above_rating),
    Rule("R23", "precision-against-config", flag_precision_against_configuration),
    Rule("R24", "depth-against-siblings", flag_depth_against_siblings),
    Rule("R25", "depth-against-basis", flag_depth_against_basis),
    Rule("R26", "framework-ratio", flag_framework_ratio),
    Rule("R27", "packed-batch", flag_packed_batch),
    Rule("R28", "work-of-the-time", flag_unnamed_work),
    Rule("R29", "power-above-scope", flag_power_above_scope),
    Rule("R30", "microbenchmark-above-peak", flag_microbenchmark_above_peak),
    Rule("R31", "thousandfold", flag_thousandfold),
    Rule("R32", "two-figures-of-one-work", flag_two_figures_of_one_work),
    Rule("R33", "share-against-total", flag_share_against_total),
    Rule("R34", "peak-against-series", flag_peak_against_series),
)


def find_flags(data: Dataset) -> pd.DataFrame:
    """Return the flags of all rules, sorted by rule, result and column, whatever the order of the rows in `data`."""
    flags = [frame for frame in (data.compute_once(rule.find) for rule in RULES) if len(frame)]
    if not flags:
        return build_no_flags()
    return pd.concat(flags).sort_values(list(FLAGS.key), ignore_index=True)
