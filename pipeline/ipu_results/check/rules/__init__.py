"""The quality rules: each is a pure function from the dataset to flags.

A rule reports and never changes a figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from ipu_results.check.rules import (
    contradictions,
    digits,
    identity,
    little,
    microbenchmarks,
    placement,
    plausibility,
    scaling,
    siblings,
)
from ipu_results.check.rules.contradictions import find_contradicted
from ipu_results.check.rules.dataset import (
    FLAGS,
    Dataset,
    build_dataset,
    build_no_flags,
    list_printed_tables,
)

__all__ = [
    "RULES",
    "Dataset",
    "Rule",
    "build_dataset",
    "find_contradicted",
    "find_flags",
    "list_printed_tables",
]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its id, its title, and the function that flags."""

    id: str
    title: str
    find: Callable[[Dataset], pd.DataFrame]


RULES: tuple[Rule, ...] = (
    Rule("R01", "latency-below-period", little.flag_latency_below_period),
    Rule("R02", "latency-falls-with-batch", scaling.flag_falling_latency),
    Rule("R03", "throughput-falls-with-batch", scaling.flag_falling_throughput),
    Rule("R04", "batch-contradicts-siblings", little.flag_batch_against_siblings),
    Rule("R05", "pipeline-depth-jump", scaling.flag_depth_jump),
    Rule("R06", "newer-machine-slower", scaling.flag_slower_generation),
    Rule("R07", "generation-ratio", scaling.flag_generation_ratio),
    Rule("R08", "superlinear-scaling", scaling.flag_superlinear_scaling),
    Rule("R09", "blank-cell", identity.flag_blank_cell),
    Rule("R10", "unit-not-the-column's", identity.flag_unit),
    Rule("R11", "row-contradicts-its-section", placement.flag_section),
    Rule("R12", "official-record", plausibility.flag_official_record),
    Rule("R13", "batch-against-config", placement.flag_batch_against_configuration),
    Rule("R14", "repeated-figure", identity.flag_repeated_figure),
    Rule("R15", "data-against-config", placement.flag_data_against_configuration),
    Rule("R16", "name-variants", identity.flag_name_variants),
    Rule("R17", "older-SDK", placement.flag_older_sdk),
    Rule("R18", "mixed-precision-group", placement.flag_mixed_precision),
    Rule("R19", "number-format", identity.flag_number_format),
    Rule("R20", "model-identity", identity.flag_network_identity),
    Rule("R21", "flops-above-peak", plausibility.flag_flops_above_peak),
    Rule("R22", "power-above-rating", plausibility.flag_power_above_rating),
    Rule("R23", "precision-against-config", placement.flag_precision_against_configuration),
    Rule("R24", "depth-against-siblings", scaling.flag_depth_against_siblings),
    Rule("R25", "depth-against-basis", scaling.flag_depth_against_basis),
    Rule("R26", "framework-ratio", placement.flag_framework_ratio),
    Rule("R27", "packed-batch", identity.flag_packed_batch),
    Rule("R28", "work-of-the-time", placement.flag_unnamed_work),
    Rule("R29", "power-above-scope", plausibility.flag_power_above_scope),
    Rule("R30", "microbenchmark-above-peak", microbenchmarks.flag_microbenchmark_above_peak),
    Rule("R31", "thousandfold", microbenchmarks.flag_thousandfold),
    Rule("R32", "two-figures-of-one-work", microbenchmarks.flag_two_figures_of_one_work),
    Rule("R33", "share-against-total", microbenchmarks.flag_share_against_total),
    Rule("R34", "peak-against-series", microbenchmarks.flag_peak_against_series),
    Rule("R35", "contradicted", contradictions.flag_contradicted),
    Rule("R36", "start-up-included", placement.flag_start_up),
    Rule("R37", "no-growth-with-chips", scaling.flag_no_growth),
    Rule("R38", "conditions-twice", siblings.flag_conditions_twice),
    Rule("R39", "repeated-sibling", siblings.flag_repeated_sibling),
    Rule("R40", "out-of-line", siblings.flag_out_of_line),
    Rule("R41", "depth-against-clients", siblings.flag_depth_against_clients),
    Rule("R42", "power-below-rating", plausibility.flag_power_below_rating),
    Rule("R43", "unlike-its-conditions", siblings.flag_unlike_its_conditions),
    Rule("R44", "unlike-its-network", siblings.flag_unlike_its_network),
    Rule("R45", "unlike-other-document", siblings.flag_other_document),
    Rule("R46", "whole-multiples", digits.flag_whole_multiples),
    Rule("R47", "suspect", plausibility.flag_suspect),
)


def find_flags(data: Dataset) -> pd.DataFrame:
    """Return the flags of all rules, sorted by rule, result and column, whatever the order of the
    rows in `data`.
    """
    rules = RULES if len(data.results) or len(data.microbenchmarks) else ()
    flags = [frame for frame in (data.compute_once(rule.find) for rule in rules) if len(frame)]
    return (
        pd.concat(flags).sort_values(list(FLAGS.key), ignore_index=True)
        if flags
        else build_no_flags()
    )
