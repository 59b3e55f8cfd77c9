"""ipu-results: the pipeline behind the open, verified record of Graphcore IPU performance."""
