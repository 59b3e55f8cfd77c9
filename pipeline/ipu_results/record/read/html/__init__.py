"""Read the tables of web pages: as they are written, if that is what a browser shows."""

from ipu_results.record.read.html.message import is_message
from ipu_results.record.read.html.page import TABLE_TAG, find_charset, parse_page, read_html

__all__ = ["TABLE_TAG", "find_charset", "is_message", "parse_page", "read_html"]
