"""The views behind the analyses. None mixes MLPerf with other figures, or what is flagged or emulated with the rest."""

from __future__ import annotations

from schema.columns import boolean, double, integer, text
from schema.view import ERRORS, WARNINGS, View, of

BASE_ERRORS = integer("base_errors", "Error flags on the row of the smallest machine.")

ANALYSES: tuple[View, ...] = (
    View(
        "scaling",
        "Graphcore's training rows from 16 chips up beside the smallest machine of the same curve: throughput of one "
        "page version (equal but for platform, chips, batch and SDK; a row that several versions print stands once), "
        "and closed MLPerf entries of one round, benchmark and framework. `measure` keeps them apart.",
        (
            text("measure", "What is compared: `throughput` or `mlperf time to train`; never one with the other."),
            *of("results", "origin publisher"),
            "platforms.family",
            *of("results", "model variant dataset framework precision platform chip_count sdk_version batch_size"),
            *of("results", "throughput item"),
            *of("mlperf_entries", "minutes samples_to_converge"),
            text("base_platform", "The curve's smallest machine."),
            integer("base_chip_count", "Its chips."),
            text("base_sdk_version", "Its SDK."),
            integer("base_batch_size", "Its batch.", unit="item"),
            boolean("same_sdk", "Whether both rows tell the same SDK."),
            double("speed_up", "Throughput over the smallest machine's, or its minutes over the row's."),
            double("efficiency", "Speed-up over the ratio of chips: 1 is linear scaling."),
            double("samples_efficiency", "MLPerf: samples to converge on the smallest machine over the row's."),
            double(
                "rate_efficiency",
                "MLPerf: efficiency over samples_efficiency, so samples per minute and chip over the smallest "
                "machine's; evaluation and start-up count in.",
            ),
            ERRORS,
            BASE_ERRORS,
            WARNINGS,
            "results.result_id",
            text("base_result_id", "Result of the smallest machine."),
            *of("results", "document_id table_name row_number"),
            *of("mlperf_entries", "benchmark submitter round division comparable_rounds mlperf_id"),
            *of("mlperf_entries", "mlperf_id_confidence attribution"),
        ),
    ),
    View(
        "per_dollar",
        "Training on 16 IPUs against one node of 8 A100-80GB: performance, performance per dollar, and the prices at "
        "which they break even. Prices in USD of the whole machine: `ipu_price` is that of every IPU machine and "
        "`gpu_price` of the GPU one; without them list prices hold, null where none is known (Bow Pod16). MLPerf pairs "
        "share round, benchmark and the closed division; throughput pairs share network, variant and item, 16-bit "
        "rows of the newest documents alone.",
        (
            text("measure", "What is compared: `mlperf time to train` or `training throughput`."),
            text("network", "Network that both ran."),
            text("ipu_platform", "The IPU machine."),
            text("gpu_platform", "The GPU machine; an MLPerf system as it is named there."),
            double("ipu_figure", "Minutes or throughput of the IPU machine; `unit` tells."),
            double("gpu_figure", "The same of the GPU machine."),
            text("unit", "Unit of both figures."),
            double("performance_ratio", "Performance of the IPU machine over the GPU machine's."),
            double("ipu_price_usd", "Price that the row is reckoned with.", unit="USD"),
            double("gpu_price_usd", "Price that the row is reckoned with, of a DGX A100 640GB.", unit="USD"),
            double("per_dollar_ratio", "Performance per dollar of the IPU machine over the GPU machine's."),
            double(
                "break_even_ipu_price_usd",
                "IPU price at which both give the same per dollar, GPU price held.",
                unit="USD",
            ),
            double(
                "break_even_gpu_price_usd",
                "GPU price at which both give the same per dollar, IPU price held.",
                unit="USD",
            ),
            double(
                "gpu_fastest_figure",
                "Throughput alone: the fastest mixed-precision figure that NVIDIA's documents give for the network on "
                "eight A100 of any memory and framework.",
            ),
            text("ipu_framework", "Framework on the IPU machine."),
            text("gpu_framework", "Framework on the GPU machine."),
            text("differs", "In what the two rows differ: IPU / GPU."),
            integer("errors", "Error flags on both results."),
            text("ipu_result_id", "Result of the IPU machine."),
            text("gpu_result_id", "Result of the GPU machine."),
            *of("mlperf_entries", "benchmark round division"),
            text("ipu_mlperf_id", "MLPerf result id of the IPU entry; null where none is known."),
            *of("mlperf_entries", "mlperf_id_confidence attribution"),
        ),
        parameters=(("ipu_price", "NULL"), ("gpu_price", "NULL")),
    ),
    View(
        "resnext101",
        "Every inference result of a ResNeXt101: published, measured here and emulated, told apart by `origin`; a "
        "measured row that is doubtful says so in `suspect`.",
        (
            *of("results", "result_id origin publisher"),
            text("network", "The network that ran: ResNeXt101-32x4d or -32x8d; null where no source tells."),
            text("network_source", "What tells it: the row's own name, rule R20, or the paper's count of parameters."),
            *of("results", "platform chip chip_count sdk_version framework compiler precision compute_precision"),
            *of("results", "batch_size micro_batch_size throughput"),
            double("throughput_per_chip", "Throughput over the machine's chips; null for a CPU.", unit="item/s"),
            *of("results", "item latency_ms latency_ms_low latency_ms_high latency_kind latency_basis"),
            double("batches_in_flight", "Throughput times latency over the batch (Little's law)."),
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
            integer("errors", "Error flags on both results."),
            text("c2_result_id", "Result of the C2."),
            text("m2000_result_id", "Result of the IPU-M2000."),
        ),
    ),
)
