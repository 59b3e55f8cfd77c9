"""Link: join documents about the same thing. Pure: every function returns new results and changes none."""

from collections.abc import Sequence

from ipu_results.link.configurations import link_configurations
from ipu_results.link.mlperf import link_mlperf_ids
from ipu_results.normalise import NormalisedDocument
from ipu_results.schema.vocabulary import Vocabulary

__all__ = ["link"]


def link(documents: Sequence[NormalisedDocument], vocabulary: Vocabulary) -> list[NormalisedDocument]:
    """Give results their MLPerf ids, and micro-batch and latency basis from their public configurations."""
    return link_configurations(link_mlperf_ids(documents), vocabulary.latency_bases)
