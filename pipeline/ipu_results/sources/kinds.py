"""Which documents are accepted: those that give results or a table of their own, those to extract, and limits."""

CARRIED = ("mlperf-runs", "mlperf-ids", "configurations", "claims", "contradictions", "sweep-record")
PUBLISHED = ("graphcore-performance", "qwant-paper", "page-history", "comparators", "mlperf-entries")
INGESTED = (*PUBLISHED, *CARRIED, "sweep-points")
LOCAL = ("sweep-record", "sweep-points")
KINDS = (*INGESTED, "mlperf-log")
MAX_BYTES = 50_000_000
MAX_PAGES = 500
UNFINISHED = ".unfinished"  # ends the name of the folder of a run in the making
