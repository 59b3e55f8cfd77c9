"""Limits on what is read, in one place."""

from __future__ import annotations

MAX_BYTES = 50_000_000  # of a document
MAX_PAGES = 500  # of a PDF
MAX_TABLE_DEPTH = 50  # tables inside of each other in a page
MAX_PARENTS_OF_A_ROW = 100  # elements between a row of a page and its table
MAX_STYLE_MATCHES = 5_000_000  # comparisons of a page's style rules with its elements
MAX_SELECTOR_CHARACTERS = 10_000  # of a page's style rule that hides something
MAX_PAGE_OBJECTS = 1_000_000  # characters, lines and images of one page of a PDF
MAX_IMAGE_PIXELS = 250_000_000  # of one image in a PDF
MAX_UNPACKED_IMAGE_BYTES = 1_000_000_000  # of one image in a PDF
MAX_UNPACKED_STREAM_BYTES = 100_000_000  # of any other stream of a PDF
MAX_DRAWN_BYTES = 100_000_000  # of the instructions that draw one page of a PDF
MAX_UNPACKED_PDF_BYTES = 2_000_000_000  # of all streams of a PDF
