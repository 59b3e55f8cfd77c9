"""Where users come in: commands, comparison, submissions, MCP and the page."""
