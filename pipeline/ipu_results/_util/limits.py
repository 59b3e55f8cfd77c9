"""Limits on what is read, in one place."""

from __future__ import annotations

MAX_BYTES = 50_000_000  # of a document
MAX_PAGES = 500  # of a PDF
