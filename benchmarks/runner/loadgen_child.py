"""LoadGen's SingleStream, each query answered by whoever reads its standard output.

A script for an interpreter that has mlcommons-loadgen: `runner_loadgen.py OUT SECONDS EXPECTED_MS`. It writes a line
for each query and waits for one; its summary lies in OUT afterwards.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import mlperf_loadgen as loadgen

FEWEST = 64  # queries for a 90th percentile by early stopping; below, LoadGen calls its own result invalid


def main() -> None:
    out, seconds, expected_ms = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    asked = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def issue(queries: Any) -> None:
        for query in queries:
            asked.write("query\n")
            asked.flush()
            sys.stdin.readline()
            loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(query.id, 0, 0)])

    settings = loadgen.TestSettings()
    settings.scenario, settings.mode = loadgen.TestScenario.SingleStream, loadgen.TestMode.PerformanceOnly
    settings.min_duration_ms, settings.min_query_count = int(1000 * seconds), FEWEST
    settings.single_stream_expected_latency_ns = int(1e6 * expected_ms)
    output, log = loadgen.LogOutputSettings(), loadgen.LogSettings()
    output.outdir = out
    log.log_output = output
    system = loadgen.ConstructSUT(issue, lambda: None)
    samples = loadgen.ConstructQSL(1, 1, lambda _: None, lambda _: None)
    loadgen.StartTestWithLogSettings(system, samples, settings, log)
    loadgen.DestroyQSL(samples)
    loadgen.DestroySUT(system)


if __name__ == "__main__":
    main()
