"""Which documents are accepted: their kinds, and how large one may be."""

KINDS = ("graphcore-performance", "qwant-paper", "mlperf-log", "page-history", "comparators")
MAX_BYTES = 50_000_000
MAX_PAGES = 500
