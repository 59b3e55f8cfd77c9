"""Store: write the checked tables to Parquet and DuckDB, all or nothing, and open them to query."""
