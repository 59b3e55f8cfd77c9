"""Views of latency-bounded throughput."""

from __future__ import annotations

from ipu_results.schema.columns import boolean, double, text
from ipu_results.schema.view import ERRORS, IN_FLIGHT, NETWORK, WARNINGS, View, of

WORK = text(
    "work", "The variant where it changes the work; null for a variant that names a configuration of the same work."
)

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
