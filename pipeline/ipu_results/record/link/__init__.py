"""Link: join what documents say of one thing, by the statements of `schema/links`."""
