"""Answer questions of programs about the record over the Model Context Protocol (MCP), on stdin and stdout.

Every answer carries units, who measured, how the figure came to be, flags and the citation. What may not be compared
is refused with a code of `refusal.CODES`.
"""

from __future__ import annotations

from ipu_results.serve.cite import cite
from ipu_results.serve.table import format_cited_table

__all__ = ["cite", "format_cited_table"]
