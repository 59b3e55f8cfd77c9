"""Which documents are accepted: those that give results or a table of their own, those to extract, and limits."""

CARRIED = ("mlperf-runs", "mlperf-ids")
INGESTED = ("graphcore-performance", "qwant-paper", "page-history", "comparators", "mlperf-entries", *CARRIED)
KINDS = (*INGESTED, "mlperf-log")
MAX_BYTES = 50_000_000
MAX_PAGES = 500
