"""The quality rules: each a pure function from a dataset to its flags. A rule reports and changes no figure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from ipu_results.check.rules.configurations import r13, r15
from ipu_results.check.rules.curves import r02, r03, r05
from ipu_results.check.rules.dataset import Dataset, Identity, load_identities
from ipu_results.check.rules.findings import FLAGS, no_findings
from ipu_results.check.rules.generations import r06, r07
from ipu_results.check.rules.identity import r10, r16, r20
from ipu_results.check.rules.little import r01, r04
from ipu_results.check.rules.official import r12
from ipu_results.check.rules.plausibility import r21, r22
from ipu_results.check.rules.printing import r09, r14, r19
from ipu_results.check.rules.scaling import r08
from ipu_results.check.rules.surroundings import r11, r17, r18

__all__ = ["RULES", "Dataset", "Identity", "Rule", "find_flags", "load_identities"]


@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    title: str
    find: Callable[[Dataset], pd.DataFrame]


RULES: tuple[Rule, ...] = (
    Rule("R01", "latency-below-period", r01),
    Rule("R02", "latency-falls-with-batch", r02),
    Rule("R03", "throughput-falls-with-batch", r03),
    Rule("R04", "batch-contradicts-siblings", r04),
    Rule("R05", "pipeline-depth-jump", r05),
    Rule("R06", "newer-machine-slower", r06),
    Rule("R07", "generation-ratio", r07),
    Rule("R08", "superlinear-scaling", r08),
    Rule("R09", "blank-cell", r09),
    Rule("R10", "unit-not-the-column's", r10),
    Rule("R11", "row-contradicts-its-section", r11),
    Rule("R12", "official-record", r12),
    Rule("R13", "batch-against-config", r13),
    Rule("R14", "repeated-figure", r14),
    Rule("R15", "data-against-config", r15),
    Rule("R16", "name-variants", r16),
    Rule("R17", "older-SDK", r17),
    Rule("R18", "mixed-precision-group", r18),
    Rule("R19", "number-format", r19),
    Rule("R20", "model-identity", r20),
    Rule("R21", "flops-above-peak", r21),
    Rule("R22", "power-above-rating", r22),
)


def find_flags(data: Dataset) -> pd.DataFrame:
    """The flags of all rules by rule, result and column, whatever the order of the rows in `data`."""
    found = [flags for flags in (rule.find(data) for rule in RULES) if len(flags)]
    if not found:
        return no_findings()
    return pd.concat(found).sort_values(list(FLAGS.key), ignore_index=True)
