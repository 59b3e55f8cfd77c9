"""Run LoadGen's SingleStream scenario, each query answered by the process that reads the standard
output.

A script for an interpreter that has mlcommons-loadgen: `loadgen_child.py OUT SECONDS EXPECTED_MS`.
It writes a line per query, waits for a line in return, and leaves its summary in OUT.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import mlperf_loadgen as loadgen

MIN_QUERIES = (
    64  # for a 90th percentile by early stopping; with fewer LoadGen calls its own result invalid
)


def main() -> None:
    """Run one performance test."""
    out, seconds, expected_ms = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    requests = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what LoadGen prints must not mix with the requests

    def issue_queries(queries: Any) -> None:
        for query in queries:
            requests.write("query\n")
            requests.flush()
            sys.stdin.readline()
            loadgen.QuerySamplesComplete([loadgen.QuerySampleResponse(query.id, 0, 0)])

    settings = loadgen.TestSettings()
    settings.scenario, settings.mode = (
        loadgen.TestScenario.SingleStream,
        loadgen.TestMode.PerformanceOnly,
    )
    settings.min_duration_ms, settings.min_query_count = int(1000 * seconds), MIN_QUERIES
    settings.single_stream_expected_latency_ns = int(1e6 * expected_ms)
    output, log = loadgen.LogOutputSettings(), loadgen.LogSettings()
    output.outdir = out
    log.log_output = output
    system = loadgen.ConstructSUT(issue_queries, lambda: None)
    samples = loadgen.ConstructQSL(1, 1, lambda _: None, lambda _: None)
    loadgen.StartTestWithLogSettings(system, samples, settings, log)
    loadgen.DestroyQSL(samples)
    loadgen.DestroySUT(system)


if __name__ == "__main__":
    main()
