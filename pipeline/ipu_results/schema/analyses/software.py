"""Views of what the software does to one machine's figures: SDK and framework."""

from __future__ import annotations

from dataclasses import replace

from ipu_results.schema.analyses.shared import ratio, sides
from ipu_results.schema.columns import boolean, integer
from ipu_results.schema.view import ERRORS, IN_FLIGHT, NETWORK, WARNINGS, View, of

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
            *sides("sdk_version throughput", oldest="Of the oldest release."),
            ratio("Throughput over that of the oldest release; 1 for that one itself."),
            ERRORS,
            WARNINGS,
            *of("results", "document_id result_id"),
            *sides("result_id", oldest="Of the oldest release."),
        ),
    ),
    View(
        "framework_effect",
        "Pairs of published rows that differ in the framework and, as far as they are printed, in no other condition: "
        "publisher, task, printed model, variant, dataset, platform, SDK, precision, batch and items agree. How many "
        "batches a program keeps in flight is printed nowhere and differs. The base is the framework whose name comes "
        "first by the alphabet. Where `same_network` is false, one printed model names two networks (rule R20), and "
        "the ratio is not that of frameworks. MLPerf is left out; unknown batches, precisions and "
        "releases match nothing.",
        (
            *of("results", "task model variant dataset platform chip_count sdk_version precision batch_size"),
            *of("results", "framework"),
            *sides("framework", base="Of the base."),
            NETWORK,
            replace(NETWORK, name="base_network", description=f"{NETWORK.description} Of the base."),
            boolean("same_network", "Whether both rows ran one network."),
            *of("results", "throughput"),
            *sides("throughput", base="Of the base."),
            *of("results", "item"),
            ratio("Throughput over that of the base."),
            IN_FLIGHT,
            replace(IN_FLIGHT, name="base_batches_in_flight", description=f"{IN_FLIGHT.description} Of the base."),
            integer("errors", "Error flags on both rows."),
            integer("warnings", "Warning flags on both rows."),
            *of("results", "result_id"),
            *sides("result_id", base="Of the base."),
        ),
    ),
)
