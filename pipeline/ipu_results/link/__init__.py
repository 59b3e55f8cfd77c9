"""Link: join documents about the same thing.

Pure: every function returns new results and changes none.

What other documents add to a result is collected first (`collect_links`), from the few documents of
LINKING kinds. Then each document is linked on its own (`link_document`), so that not all of them
need to be in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipu_results.link.configurations import Configurations, link_configurations
from ipu_results.link.mlperf import MlperfIds, collect_mlperf_ids, link_mlperf_ids
from ipu_results.link.platforms import LocalMachine, collect_machines, link_machine
from ipu_results.normalise import NormalisedDocument, Results
from ipu_results.schema.vocabulary import Vocabulary

# tables whose rows add to the results of other documents
LINKING = ("configurations", "mlperf_ids", "runs")


@dataclass(frozen=True, slots=True)
class Links:
    """What documents add to the results of others."""

    configurations: Configurations
    mlperf_ids: MlperfIds
    machines: Mapping[str, LocalMachine]
    """The virtual machines of local runs, by run id."""
    renamed: Sequence[Mapping[str, Any]] = ()
    """Rows whose name is not of what ran, as in the vocabulary."""


def collect_links(documents: Sequence[NormalisedDocument], vocabulary: Vocabulary) -> Links:
    """Collect the links of documents of LINKING kinds; other documents have none."""
    return Links(
        Configurations.collect(documents, vocabulary),
        collect_mlperf_ids(documents),
        collect_machines(documents),
        vocabulary.renamed,
    )


def link_document(document: NormalisedDocument, links: Links) -> NormalisedDocument:
    """Give results their MLPerf ids, local machines, and micro-batch and latency basis from public
    configurations.
    """
    results = link_machine(document, link_mlperf_ids(document, links.mlperf_ids), links.machines)
    results = link_configurations(results, document.document.document_id, links.configurations)
    return replace(
        document, results=rename_results(results, document.document.document_id, links.renamed)
    )


def rename_results(
    results: Results, document_id: str, renamed: Sequence[Mapping[str, Any]]
) -> Results:
    """Give results of a document whose name is not of what ran the name that is; ids and cells keep
    the printed one.
    """
    for entry in renamed:
        if entry["document_id"] == document_id:
            columns = [(results.columns[name], value) for name, value in entry["where"].items()]
            rows = (
                row
                for row in range(len(results))
                if all(column.get(row) == value for column, value in columns)
            )
            results = results.set_values(entry["column"], dict.fromkeys(rows, entry["is"]))
    return results
