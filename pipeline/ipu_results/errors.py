"""Everything that can go wrong, as one hierarchy.

IpuResultsError
    The base: one line for the user, naming the document and the place where they are known.
  CatalogueError
      A sidecar is missing, incomplete, or disagrees with the file it describes (sha256, table rows).
  DocumentError
      A document as a whole cannot be read.
    DocumentTooLargeError
        It is over the size or page limit.
    UnrecognisedDocumentError
        It is none of the kinds that the readers know, or not the kind that was asked for.
    DamagedDocumentError
        It is empty, truncated, not what its type says, or a promised table is not in it.
  ConservationError
      Source rows were lost or counted twice between reading and writing: a fault of the pipeline itself.
  GateError
      A check did not refuse the row that it must refuse, so none of its passes can be trusted.
  WarehouseError
      The warehouse is absent, busy, a mix of two builds, or could not be written.
  FetchError
      A document could not be downloaded.
  WorkerLostError
      A process that read logs was killed; nothing was written.
  ClusterError
      The cluster's scheduler does not answer, or its workers are missing or do not see the data.
  ModelError
      A neural network cannot be read as a graph of operators.
    UnrecognisedModelError
        It is no ONNX model, newer than the installed onnx knows, or no network of that name.
    InconsistentModelError
        A tensor that nothing produces or two nodes do, a cycle, or shapes that disagree.
    UnknownShapeError
        A dimension is neither in the model nor given with the batch.
    UnsupportedOperatorError
        A node is of a kind that the operators do not cover.
  RunnerError
      A sweep cannot be run, or cannot go on.
    SweepConfigError
        The options of a sweep contradict each other.
    BackendError
        A device or a compiled model is not what was asked for.
    UnusableImagesError
        The folder holds no image that can be decoded.
    SessionLostError
        A process that measured was killed or does not answer.
    DamagedRunError
        The folder of a run is not what its journal says, or another sweep is at it.
  ReleaseError
      A release cannot be made: the version is too low, rows vanished without a reason, or the folder is in the way.
    CorrectionsError
        The corrections file is not readable, or what it says is not so.
    UnreadableReleaseError
        A folder that is to be compared or checked is no release and no warehouse, or a file of it is damaged.
  MissingExtraError
      What was asked for needs packages of an extra that is not installed.
  QueryError
      The SQL is wrong, or tries to write.
"""

from __future__ import annotations


class IpuResultsError(Exception):
    def __init__(self, message: str, *, document: str | None = None, place: str | None = None) -> None:
        self.message = message
        self.document = document
        self.place = place
        super().__init__(": ".join(part for part in (document, place, message) if part))


class CatalogueError(IpuResultsError):
    pass


class DocumentError(IpuResultsError):
    pass


class DocumentTooLargeError(DocumentError):
    pass


class UnrecognisedDocumentError(DocumentError):
    pass


class DamagedDocumentError(DocumentError):
    pass


class ConservationError(IpuResultsError):
    pass


class GateError(IpuResultsError):
    pass


class WarehouseError(IpuResultsError):
    pass


class FetchError(IpuResultsError):
    pass


class WorkerLostError(IpuResultsError):
    pass


class ClusterError(IpuResultsError):
    pass


class ModelError(IpuResultsError):
    pass


class UnrecognisedModelError(ModelError):
    pass


class InconsistentModelError(ModelError):
    pass


class UnknownShapeError(ModelError):
    pass


class UnsupportedOperatorError(ModelError):
    pass


class RunnerError(IpuResultsError):
    pass


class SweepConfigError(RunnerError):
    pass


class BackendError(RunnerError):
    pass


class UnusableImagesError(RunnerError):
    pass


class SessionLostError(RunnerError):
    pass


class DamagedRunError(RunnerError):
    pass


class ReleaseError(IpuResultsError):
    pass


class CorrectionsError(ReleaseError):
    pass


class UnreadableReleaseError(ReleaseError):
    pass


class MissingExtraError(IpuResultsError):
    pass


class QueryError(IpuResultsError):
    pass
