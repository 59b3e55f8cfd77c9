"""How large a document may be before it is refused."""

MAX_BYTES = 50_000_000
MAX_PAGES = 500
