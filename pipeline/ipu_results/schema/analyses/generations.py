"""Views of one generation of machines over the one before."""

from __future__ import annotations

from ipu_results.schema.analyses.shared import ratio, sides
from ipu_results.schema.columns import boolean, double, integer
from ipu_results.schema.view import View, of

LATENCY_RATIO = double(
    "latency_ratio",
    "Latency of the Bow row over the other's, where both have one basis and, within a factor of 1.25, as many batches "
    "in flight; below 1 is sooner.",
    above=0,
)
CLOCK_RATIO = double("clock_ratio", "Clock of the Bow chip over that of the Classic chip.", above=0)
BOW = {"bow": "Of the Bow row.", "classic": "Of the Classic row."}

GENERATIONS: tuple[View, ...] = (
    View(
        "generations_naive",
        "Every Bow row beside every Classic row of the same task, model and number of chips, from all page versions, "
        "MLPerf left out; a row that several versions print with one figure counts once, in the newest. The columns "
        "`same_…` and `near_sdk` say what else agrees: where one is false the ratio is not that of the machines.",
        (
            *of("results", "task model chip_count"),
            *sides("platform variant dataset framework precision batch_size sdk_version", **BOW),
            *of("results", "item"),
            *sides("throughput", **BOW),
            ratio("Throughput of the Bow row over that of the Classic row."),
            *sides("latency_ms", **BOW),
            LATENCY_RATIO,
            CLOCK_RATIO,
            boolean("same_test", "Whether network, variant and dataset agree; blank agrees with blank."),
            boolean("same_framework", "Whether the frameworks agree."),
            boolean("same_precision", "Whether the precisions agree; false where either is blank."),
            boolean("same_batch", "Whether the batch sizes agree; false where either is blank."),
            boolean("same_item", "Whether both throughputs count the same items; false where no source names them."),
            boolean(
                "near_sdk",
                "Whether both releases have one major version and minor versions at most one apart. `Pre-SDK2.5`, the "
                "vendor's word for what came before 2.5, counts as 2.4.",
            ),
            integer("errors", "Error flags on both rows."),
            *sides("result_id", **BOW),
        ),
    ),
    View(
        "generations",
        "Bow over Classic on one test: the pairs of `generations_naive` that agree in network, variant, dataset, "
        "framework, precision, batch, number of chips and items, in nearly the SDK, and bear no error flag.",
        (
            *of("results", "task model variant dataset chip_count"),
            *sides("platform", **BOW),
            *of("results", "framework precision batch_size"),
            *sides("sdk_version", **BOW),
            *of("results", "item"),
            *sides("throughput", **BOW),
            ratio("Throughput of the Bow row over that of the Classic row."),
            *sides("latency_ms", **BOW),
            LATENCY_RATIO,
            CLOCK_RATIO,
            integer("errors", "Error flags on both rows."),
            *sides("result_id", **BOW),
        ),
    ),
)
