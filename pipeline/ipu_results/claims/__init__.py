"""Claims: what the documents claim, recomputed from the dataset, with the verdict that follows by rule."""
