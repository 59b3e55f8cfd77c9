"""Why a bundle is refused."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Reason = Literal[
    "not-a-bundle",  # a file is missing or cannot be read
    "unknown-file",  # a file that a bundle does not have, a script or another archive among them
    "out-of-place",  # the name of an archive's entry leads out of the bundle, or a folder of another id
    "link",  # a link, a device, a pipe
    "too-large",  # bytes, entries, rows, characters
    "compression",  # an archive that unpacks to far more than it is, is encrypted, or uses another method
    "encoding",  # not UTF-8, or with a NUL
    "control-characters",  # what a terminal acts on, or what hides text
    "formula",  # a cell that a spreadsheet computes
    "markup",  # HTML
    "code",  # a shell or template expression, SQL, the address of a script or of a local file
    "schema",  # a key, column or value that the description or the table does not accept
    "licence",  # none, or not an open one
    "unknown-word",  # a word that neither the vocabulary nor the bundle declares
    "unreadable-figure",  # a figure that is not one, or that no unit fits
    "contradiction",  # two figures for one configuration
    "duplicate",  # the same figure twice, or a bundle that is here already
    "copied",  # figures of a row of the record
    "emulated",  # figures of an emulator
    "implausible",  # Little's law, the peak of the chips, an error flag of a quality rule
    "unit",  # a thousandfold of the nearest row
    "id",  # an id that the content does not have
    "owner",  # the name, folder or ORCID of somebody else
]
REASONS: tuple[str, ...] = get_args(Reason)


class Fault(NamedTuple):
    """One reason for refusing a bundle, with the place and what to do."""

    reason: Reason
    message: str
    place: str | None = None

    def __str__(self) -> str:
        return ": ".join(part for part in (self.reason, self.place, self.message) if part)
