"""Views of ResNeXt101 inference: every origin, and the C2 card beside the IPU-M2000."""

from __future__ import annotations

from ipu_results.schema.columns import double, integer, text
from ipu_results.schema.view import ERRORS, IN_FLIGHT, WARNINGS, View, of

RESNEXT101: tuple[View, ...] = (
    View(
        "resnext101",
        "Every inference result of a ResNeXt101: published, measured here and emulated, told apart by `origin`; a "
        "measured row that is doubtful says so in `suspect`.",
        (
            *of("results", "result_id origin publisher"),
            text("network", "The network that ran: ResNeXt101-32x4d or -32x8d; null where no source tells."),
            text("network_source", "What tells it: the row's own name, or rule R20."),
            *of("results", "platform chip chip_count sdk_version framework compiler precision compute_precision"),
            *of("results", "dataset batch_size micro_batch_size throughput"),
            double("throughput_per_chip", "Throughput over the machine's chips; null for a CPU.", unit="item/s"),
            *of("results", "item latency_ms latency_ms_low latency_ms_high latency_kind latency_basis"),
            IN_FLIGHT,
            *of("results", "efficiency suspect calibration_id run_id"),
            ERRORS,
            WARNINGS,
            *of("results", "document_id table_name row_number published_on"),
        ),
    ),
    View(
        "c2_to_m2000",
        "The paper's C2 card beside the IPU-M2000 rows that ran the same ResNeXt101-32x4d, per chip: at equal "
        "micro-batch, the fastest of each, and the rows that have no counterpart. Latencies do not compare: the card "
        "had one batch in flight, the IPU-M2000 several.",
        (
            text(
                "pairing",
                "`equal micro-batch`, `best of each`, or `C2 alone` and `IPU-M2000 alone` for a row without a "
                "counterpart.",
            ),
            text("network", "The network that both ran."),
            integer("c2_micro_batch_size", "Items per batch and chip on the C2.", unit="item"),
            integer("m2000_micro_batch_size", "Items per batch and chip on the IPU-M2000.", unit="item"),
            double("c2_throughput_per_chip", "Items per second and chip on the C2.", unit="item/s"),
            double("m2000_throughput_per_chip", "Items per second and chip on the IPU-M2000.", unit="item/s"),
            double("ratio", "Throughput per chip of the IPU-M2000 over the C2's."),
            double("tile_cycles_ratio", "Tiles times clock of a chip, IPU-M2000 over C2."),
            double("peak_ratio", "Peak of a chip at 16 bits, IPU-M2000 over C2."),
            double("ratio_over_peak", "`ratio` over `peak_ratio`: above 1 the newer chip is also used better."),
            double("c2_batch_period_ms", "Time between batches on the C2: batch over throughput.", unit="ms"),
            double("m2000_batch_period_ms", "Time between batches on the IPU-M2000.", unit="ms"),
            double("c2_latency_ms", "Latency as printed.", unit="ms"),
            double("m2000_latency_ms", "Latency as printed.", unit="ms"),
            double("c2_batches_in_flight", "Latency over the time between batches on the C2."),
            double("m2000_batches_in_flight", "Latency over the time between batches on the IPU-M2000."),
            text("c2_framework", "Framework on the C2."),
            text("m2000_framework", "Framework on the IPU-M2000."),
            text("c2_sdk_version", "SDK on the C2."),
            text("m2000_sdk_version", "SDK on the IPU-M2000."),
            text("c2_precision", "Precision as told of the C2."),
            text("m2000_precision", "Precision as told of the IPU-M2000."),
            text("c2_dataset", "Data that the C2 was fed."),
            text("m2000_dataset", "Data that the IPU-M2000 was fed."),
            integer("errors", "Error flags on both results."),
            text("c2_result_id", "Result of the C2."),
            text("m2000_result_id", "Result of the IPU-M2000."),
        ),
    ),
)
