"""Answer questions of programs about the record over the Model Context Protocol (MCP).

Every answer carries units, who measured, how the figure came to be, flags and the citation.
A call goes through `server`, which checks its arguments by `tools.toml`, to a tool. That selects
rows (`selection`, `names`), judges them (`ranking`, `pairs`, `claimed`, `claims`) by statements of
`schema/comparison` and `schema/serve`, and describes them (`answers`), in `brief` unless the whole
is asked for. `sql` runs statements by `worker`, a process of its own.
"""
