"""Answer questions of programs about the record over the Model Context Protocol (MCP).

Every answer carries units, who measured, how the figure came to be, flags and the citation.
"""
