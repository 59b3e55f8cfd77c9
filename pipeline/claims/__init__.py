"""The claims ledger: what documents claim, recomputed from the dataset."""
