"""Which documents are accepted: the kinds that give results, those that can be extracted, and how large one may be."""

INGESTED = ("graphcore-performance", "qwant-paper", "page-history", "comparators")
KINDS = (*INGESTED, "mlperf-log")
MAX_BYTES = 50_000_000
MAX_PAGES = 500
