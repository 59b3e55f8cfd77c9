"""Everything that can go wrong, as one hierarchy.

IpuResultsError
    The base: one line for the user, naming the document and the place where they are known.
  CatalogueError
      A sidecar is missing, incomplete, or disagrees with the file it describes (sha256, table rows).
  DocumentError
      A document as a whole cannot be read.
    DocumentTooLarge
        It is over the size or page limit.
    DocumentUnrecognised
        It is none of the kinds that the readers know, or not the kind that was asked for.
    DocumentDamaged
        It is empty, truncated, not what its type says, or a promised table is not in it.
  ConservationError
      Source rows were lost or counted twice between reading and writing: a fault of the pipeline itself.
  GateError
      A check did not refuse the row that it must refuse, so none of its passes can be trusted.
  WarehouseError
      The warehouse is absent, busy, a mix of two builds, or could not be written.
  FetchError
      A document could not be downloaded.
  WorkerLost
      A process that read logs was killed; nothing was written.
  ClusterError
      The cluster's scheduler does not answer, or its workers are missing or do not see the data.
  ModelError
      A neural network cannot be read as a graph of operators.
    ModelUnrecognised
        It is no ONNX model, newer than the installed onnx knows, or no network of that name.
    ModelInconsistent
        A tensor that nothing produces or two nodes do, a cycle, or shapes that disagree.
    ShapeUnknown
        A dimension is neither in the model nor given with the batch.
    OperatorUnsupported
        A node is of a kind that the operators do not cover.
  RunnerError
      A sweep cannot be run, or cannot go on.
    BackendError
        A device or a compiled model is not what was asked for.
    ImagesUnusable
        The folder holds no image that can be decoded.
    SessionLost
        A process that measured was killed or does not answer.
    RunDamaged
        The folder of a run is not what its journal says, or another sweep is at it.
  ReleaseError
      A release cannot be made: the version is too low, rows vanished without a reason, or the folder is in the way.
    CorrectionsError
        The corrections file is not readable, or what it says is not so.
    ReleaseUnreadable
        A folder that is to be compared or checked is no release and no warehouse, or a file of it is damaged.
  ExtraMissing
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


class DocumentTooLarge(DocumentError):
    pass


class DocumentUnrecognised(DocumentError):
    pass


class DocumentDamaged(DocumentError):
    pass


class ConservationError(IpuResultsError):
    pass


class GateError(IpuResultsError):
    pass


class WarehouseError(IpuResultsError):
    pass


class FetchError(IpuResultsError):
    pass


class WorkerLost(IpuResultsError):
    pass


class ClusterError(IpuResultsError):
    pass


class ModelError(IpuResultsError):
    pass


class ModelUnrecognised(ModelError):
    pass


class ModelInconsistent(ModelError):
    pass


class ShapeUnknown(ModelError):
    pass


class OperatorUnsupported(ModelError):
    pass


class RunnerError(IpuResultsError):
    pass


class BackendError(RunnerError):
    pass


class ImagesUnusable(RunnerError):
    pass


class SessionLost(RunnerError):
    pass


class RunDamaged(RunnerError):
    pass


class ReleaseError(IpuResultsError):
    pass


class CorrectionsError(ReleaseError):
    pass


class ReleaseUnreadable(ReleaseError):
    pass


class ExtraMissing(IpuResultsError):
    pass


class QueryError(IpuResultsError):
    pass
