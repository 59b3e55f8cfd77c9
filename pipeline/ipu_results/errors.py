"""Every error that a user can meet, as one hierarchy.

IpuResultsError
    The base: one line that names the document and the place where they are known.
  CatalogueError
      A sidecar is missing or incomplete, or it disagrees with its file (sha256, number of rows).
  DocumentError
      A document cannot be read as a whole.
    DocumentTooLargeError
        It exceeds the limit on size or pages, or the free memory.
    UnrecognisedDocumentError
        No reader knows its kind, or it is not of the requested kind.
    DamagedDocumentError
        It is empty, truncated or not of its type, an expected table is missing, or others contradict it.
    UnprovenDocumentError
        It is not known what a browser shows of the page.
    ReaderFailedError
        The reader met something that it was not written for: a defect of the reader.
    UnsignedContextError
        No person has signed in its sidecar what the words near its tables mean, or the words have changed.
  VocabularyError
      An entry of `schema/vocabulary` contradicts a source.
  ConservationError
      Source rows were lost or counted twice on the way: a defect of the pipeline itself.
  GateError
      A check accepted a row that it must refuse, so none of its results can be trusted.
  WarehouseError
      The warehouse is absent or busy, mixes two builds, or could not be written.
    TooFewRowsError
        The record has not the rows that an analysis, a finding or a validation needs.
  BrowserError
      Chromium could not show a page.
  FetchError
      A document could not be downloaded.
  WorkerLostError
      A worker process was killed. Nothing was written.
  WorkerError
      A worker of an executor failed or does not see the data. Nothing was written.
  ModelError
      A neural network cannot be read as a graph of operators.
    UnrecognisedModelError
        It is not an ONNX model, is newer than the installed onnx, or has no built-in network's name.
    InconsistentModelError
        A tensor has no producer or two, the graph has a cycle, or shapes disagree.
    UnknownShapeError
        A dimension is neither in the model nor given with the batch.
    UnsupportedOperatorError
        A node is of a kind that the emulator does not cover.
    HostBoundError
        One process drives short steps, so that their time is the host's: not predicted.
  RunnerError
      A sweep cannot start or cannot continue.
    SweepConfigError
        The options of a sweep contradict each other.
    BackendError
        The device or the compiled model is not the requested one.
    UnusableImagesError
        The folder holds no image that can be decoded.
    SessionLostError
        A measuring process was killed or does not answer.
    DamagedRunError
        The folder of a run is incomplete or disagrees with its journal, or another sweep is using it.
  ReleaseError
      A release cannot be made: the version is too low, rows vanished without a reason, or the folder is in use.
    CorrectionsError
        The corrections file cannot be read, or it does not match the data.
    UnreadableReleaseError
        The folder is neither a release nor a warehouse, or one of its files is damaged.
  MissingExtraError
      The request needs packages of an extra that is not installed.
  QueryError
      The SQL is wrong, or it tries to write.
  ComparisonError
      The figures to compare cannot be read, hold an unknown word, or contradict each other.
  SubmissionError
      A file of a submission cannot be read, or what it says may not be submitted.
"""

from __future__ import annotations


class IpuResultsError(Exception):
    """The base of all errors: `document: place: message`, as far as document and place are known."""

    def __init__(
        self, message: str, *, document: str | None = None, place: str | None = None
    ) -> None:
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


class UnprovenDocumentError(DocumentError):
    pass


class ReaderFailedError(DocumentError):
    pass


class UnsignedContextError(DocumentError):
    pass


class VocabularyError(IpuResultsError):
    pass


class ConservationError(IpuResultsError):
    pass


class GateError(IpuResultsError):
    pass


class WarehouseError(IpuResultsError):
    pass


class TooFewRowsError(WarehouseError):
    pass


class BrowserError(IpuResultsError):
    pass


class FetchError(IpuResultsError):
    pass


class WorkerLostError(IpuResultsError):
    pass


class WorkerError(IpuResultsError):
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


class HostBoundError(ModelError):
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


class ComparisonError(IpuResultsError):
    pass


class SubmissionError(IpuResultsError):
    pass
