"""Which documents are accepted: the kinds that give results, those whose rows
are carried over into a table of their own, those that can be extracted, and how large one may be."""

CARRIED = ("mlperf-runs", "mlperf-ids")
INGESTED = ("graphcore-performance", "qwant-paper", "page-history", "comparators", "mlperf-entries", *CARRIED)
KINDS = (*INGESTED, "mlperf-log")
MAX_BYTES = 50_000_000
MAX_PAGES = 500
