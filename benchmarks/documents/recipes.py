"""Recipes of documents: a dialect, some mutations and a seed make the same document in every run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.documents.html import HTML_DIALECTS, UNUSUAL
from benchmarks.documents.mutations import MUTATIONS, Draft
from benchmarks.documents.pdf import PDF_DIALECTS, PDF_UNUSUAL
from benchmarks.documents.tables import Table, draw_tables
from benchmarks.documents.typesetters import SLOW, TYPESETTERS

DIALECTS = {f"html: {name}": build for name, build in HTML_DIALECTS.items()}
DIALECTS |= {f"pdf: {name}": build for name, build in PDF_DIALECTS.items()}
DIALECTS |= {f"pdf: {name}": build for name, build in TYPESETTERS.items()}
QUICK_DIALECTS = [name for name in DIALECTS if name.removeprefix("pdf: ") not in SLOW]
WITHOUT_SPANS = {
    "html: markdown",
    "html: pandas",
    "html: notebook",
    "html: notebook index",
    "html: transposed",
}
# A raised digit may be an exponent: the reader of PDFs reports it.
RAISED_IN_PDF = frozenset({"footnote raised", "footnote symbol"})
NUMBER_FORMATS = ("thousands:", "no thousands", "decimal comma", "power of ten")
MAX_ROWS, MAX_MUTATIONS = 6, 3
PLAIN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Recipe:
    """What makes a document.

    `paper` chooses the tables of a paper, otherwise those of a performance page.
    """

    dialect: str
    paper: bool
    rows: int
    mutations: tuple[str, ...]
    seed: int

    @property
    def file_format(self) -> str:
        return self.dialect.split(":")[0]

    @property
    def is_plain(self) -> bool:
        """Whether it leaves no doubt about any figure, hides nothing, and is a table that the
        readers should know.
        """
        unusual = {
            *(f"html: {name}" for name in UNUSUAL),
            *(f"pdf: {name}" for name in PDF_UNUSUAL),
        }
        doubtful = RAISED_IN_PDF if self.file_format == "pdf" else frozenset()
        return self.dialect not in unusual and all(
            MUTATIONS[name].plain and name not in doubtful for name in self.mutations
        )


def build_document(recipe: Recipe) -> tuple[bytes, list[Table]]:
    """Return the bytes of a document and the tables that are printed in it."""
    random = Random(recipe.seed)
    draft = Draft(
        draw_tables(
            random, recipe.paper, recipe.rows, units_in_captions=recipe.file_format == "pdf"
        )
    )
    for name in select_mutations(recipe):
        MUTATIONS[name].change(draft, random)
    return DIALECTS[recipe.dialect](draft, random), draft.tables


def select_mutations(recipe: Recipe) -> list[str]:
    """Return the mutations that a document gets: one number format at most, and spans where they
    can be written.

    Markup of a cell comes last: it repeats the figure as printed.

    A document with decimal commas gets plain ones besides, because others may change the cell that
    proves the comma.
    """
    names = [
        name
        for name in recipe.mutations
        if not (recipe.dialect in WITHOUT_SPANS and name.startswith("merged"))
    ]
    if any(name.startswith("decimal comma") for name in names):
        names = [
            name for name in names if MUTATIONS[name].plain or name.startswith("decimal comma")
        ]
    formats = [name for name in names if name.startswith(NUMBER_FORMATS)]
    return sorted(
        (name for name in names if name not in formats[1:]),
        key=lambda name: name.startswith("cell: "),
    )


def list_mutations(file_format: str) -> list[str]:
    return [name for name, mutation in MUTATIONS.items() if file_format in mutation.formats]


def draw_recipe(random: Random, dialects: Sequence[str] = ()) -> Recipe:
    """Draw a recipe; half of them have plain mutations only."""
    dialect = random.choice(list(dialects) or QUICK_DIALECTS)
    names = list_mutations(dialect.split(":")[0])
    if random.random() < PLAIN_SHARE:
        names = [name for name in names if MUTATIONS[name].plain]
    mutations = tuple(random.sample(names, random.randint(0, min(MAX_MUTATIONS, len(names)))))
    return Recipe(
        dialect,
        random.random() < 0.5,
        random.randint(1, MAX_ROWS),
        mutations,
        random.randrange(2**32),
    )
