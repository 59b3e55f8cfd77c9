-- The table `facts`, as its documents have it.
FROM read.facts
