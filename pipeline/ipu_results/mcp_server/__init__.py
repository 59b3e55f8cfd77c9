"""Answer questions of programs about the record over the Model Context Protocol (MCP), on stdin and stdout.

Every answer carries units, who measured, how the figure came to be, flags and the citation. What may not be compared
is refused with a code of `refusal.CODES`.
"""
