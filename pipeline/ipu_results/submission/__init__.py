"""Submissions: figures that a stranger measured, from their own files to rows of the record."""
