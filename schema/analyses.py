"""The views behind the analyses. None mixes MLPerf with other figures, or what is flagged or emulated with the rest."""

from __future__ import annotations

from dataclasses import replace

from schema.columns import Column, boolean, double, integer, text
from schema.results import RESULTS
from schema.view import ERRORS, WARNINGS, View, of


def _sides(names: str, **sides: str) -> tuple[Column, ...]:
    """The named columns of `results` once for each side: prefix of the name, and what the description adds."""
    return tuple(
        replace(column, name=f"{side}_{name}", description=f"{column.description} {said}", required=False)
        for name in names.split()
        for column in (RESULTS.column(name),)
        for side, said in sides.items()
    )


def _ratio(description: str) -> Column:
    return double("throughput_ratio", description, above=0)


NETWORK = text(
    "network", "The network that ran: rule R20's where the printed model names several, else the canonical model."
)
WORK = text(
    "work", "The variant where it changes the work; null for a variant that names a configuration of the same work."
)
IN_FLIGHT = double("batches_in_flight", "Throughput times latency over the batch size.", above=0)
LATENCY_RATIO = double(
    "latency_ratio", "Latency of the Bow row over the other's, where both have one basis; below 1 is sooner.", above=0
)
CLOCK_RATIO = double("clock_ratio", "Clock of the Bow chip over that of the Classic chip.", above=0)
BOW = {"bow": "Of the Bow row.", "classic": "Of the Classic row."}
LATENCY: tuple[View, ...] = (
    View(
        "latency_front",
        "Inference rows with both a latency and a throughput, and whether each is on the Pareto front of its group: "
        "no other row of it answers at least as soon with at least the throughput, and better in one of them. A group "
        "has one origin, network, work, item and platform; framework, precision, batch and release are free. Rows with "
        "error flags, suspect rows and rows whose latency is that of an item are on no front and push nobody off one.",
        (
            *of("results", "result_id origin publisher model"),
            NETWORK,
            WORK,
            *of("results", "variant dataset platform chip chip_count sdk_version framework compiler precision"),
            *of("results", "compute_precision batch_size throughput item latency_ms latency_basis latency_kind"),
            IN_FLIGHT,
            ERRORS,
            WARNINGS,
            *of("results", "suspect"),
            text(
                "left_out",
                "Why the row does not compete; null where it does.",
                choices=("error", "suspect", "per-item"),
            ),
            boolean("on_front", "Whether it is on the front of its group."),
            *of("results", "document_id table_name row_number"),
        ),
    ),
    View(
        "latency_bounded",
        "For each group of `latency_front` the row of the best throughput within each bound on latency; no line where "
        "nothing is within it. Only rows that compete there. `latency_basis` says whether several batches are in "
        "flight while the latency runs.",
        (
            double("bound_ms", "The latency must be at most this.", unit="ms", above=0),
            *of("results", "origin publisher"),
            NETWORK,
            WORK,
            *of("results", "platform chip chip_count throughput item latency_ms latency_basis latency_kind"),
            IN_FLIGHT,
            *of("results", "result_id model variant sdk_version framework compiler precision compute_precision"),
            *of("results", "batch_size"),
            ERRORS,
            WARNINGS,
            *of("results", "document_id table_name row_number"),
        ),
    ),
)
GENERATIONS: tuple[View, ...] = (
    View(
        "generations_naive",
        "Every Bow row beside every Classic row of the same task, model and number of chips, from all page versions, "
        "MLPerf left out; a row that several versions print with one figure counts once, in the newest. The columns "
        "`same_…` and `near_sdk` say what else agrees: where one is false the ratio is not that of the machines.",
        (
            *of("results", "task model chip_count"),
            *_sides("platform variant dataset framework precision batch_size sdk_version", **BOW),
            *of("results", "item"),
            *_sides("throughput", **BOW),
            _ratio("Throughput of the Bow row over that of the Classic row."),
            *_sides("latency_ms", **BOW),
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
            *_sides("result_id", **BOW),
        ),
    ),
    View(
        "generations",
        "Bow over Classic on one test: the pairs of `generations_naive` that agree in network, variant, dataset, "
        "framework, precision, batch, number of chips and items, in nearly the SDK, and bear no error flag.",
        (
            *of("results", "task model variant dataset chip_count"),
            *_sides("platform", **BOW),
            *of("results", "framework precision batch_size"),
            *_sides("sdk_version", **BOW),
            *of("results", "item"),
            *_sides("throughput", **BOW),
            _ratio("Throughput of the Bow row over that of the Classic row."),
            *_sides("latency_ms", **BOW),
            LATENCY_RATIO,
            CLOCK_RATIO,
            integer("errors", "Error flags on both rows."),
            *_sides("result_id", **BOW),
        ),
    ),
)
SOFTWARE: tuple[View, ...] = (
    View(
        "sdk_effect",
        "Published rows that differ in the SDK alone: publisher, task, network, variant, dataset, platform, framework, "
        "precision and batch agree, over all page versions, and two or more releases are there. MLPerf and rows with "
        "error flags are left out, and so is a row whose batch changed with the release.",
        (
            *of("results", "task model"),
            NETWORK,
            *of("results", "variant dataset platform chip_count framework precision batch_size sdk_version"),
            integer("position", "1 for the oldest release of the group, then 2 and on.", low=1),
            *of("results", "throughput item"),
            *_sides("sdk_version throughput", oldest="Of the oldest release."),
            _ratio("Throughput over that of the oldest release; 1 for that one itself."),
            ERRORS,
            WARNINGS,
            *of("results", "document_id result_id"),
            *_sides("result_id", oldest="Of the oldest release."),
        ),
    ),
    View(
        "framework_effect",
        "Pairs of published rows that differ in the framework alone: publisher, task, printed model, variant, dataset, "
        "platform, SDK, precision, batch and items agree. The base is the framework whose name comes first by the "
        "alphabet. Where `same_network` is false, one printed model names two networks (rule R20), and the ratio is "
        "not that of frameworks. MLPerf is left out; unknown batches, precisions and releases match nothing.",
        (
            *of("results", "task model variant dataset platform chip_count sdk_version precision batch_size"),
            *of("results", "framework"),
            *_sides("framework", base="Of the base."),
            NETWORK,
            replace(NETWORK, name="base_network", description=f"{NETWORK.description} Of the base."),
            boolean("same_network", "Whether both rows ran one network."),
            *of("results", "throughput"),
            *_sides("throughput", base="Of the base."),
            *of("results", "item"),
            _ratio("Throughput over that of the base."),
            integer("errors", "Error flags on both rows."),
            integer("warnings", "Warning flags on both rows."),
            *of("results", "result_id"),
            *_sides("result_id", base="Of the base."),
        ),
    ),
)
ANALYSES: tuple[View, ...] = (*LATENCY, *GENERATIONS, *SOFTWARE)
