"""Turn the documents in raw/ into the warehouse: README.md says how."""
