"""Recipes of documents: a dialect, some mutations and a seed always make the same document."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from benchmarks.documents.html import HTML_DIALECTS, UNUSUAL
from benchmarks.documents.mutations import MUTATIONS, Draft
from benchmarks.documents.pdf import PDF_DIALECTS, PDF_UNUSUAL
from benchmarks.documents.tables import Table, draw_tables

DIALECTS = {f"html: {name}": build for name, build in HTML_DIALECTS.items()}
DIALECTS |= {f"pdf: {name}": build for name, build in PDF_DIALECTS.items()}
UNREAD = {f"html: {name}" for name in UNUSUAL} | {f"pdf: {name}" for name in PDF_UNUSUAL}
"""Dialects that the readers need not read, but must report."""
NUMBER_FORMATS = ("thousands:", "no thousands", "decimal comma", "power of ten")
MAX_ROWS = 6
MAX_MUTATIONS = 3
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
        return self.dialect not in UNREAD and all(MUTATIONS[name].plain for name in self.mutations)


def build_document(recipe: Recipe) -> tuple[bytes, list[Table]]:
    """Return the bytes of a document and the tables that are printed in it."""
    random = Random(recipe.seed)
    in_captions = recipe.file_format == "pdf"
    draft = Draft(draw_tables(random, recipe.paper, recipe.rows, units_in_captions=in_captions))
    for name in select_mutations(recipe):
        MUTATIONS[name].change(draft, random)
    return DIALECTS[recipe.dialect](draft), draft.tables


def select_mutations(recipe: Recipe) -> list[str]:
    """Return the mutations that a document gets: one number format at most.

    A document with decimal commas gets plain ones besides, because others may change the cell that
    proves the comma.
    """
    formats = [name for name in recipe.mutations if name.startswith(NUMBER_FORMATS)]
    others = [name for name in recipe.mutations if name not in formats]
    if any(name.startswith("decimal comma") for name in formats):
        others = [name for name in others if MUTATIONS[name].plain]
    return formats[:1] + others


def list_mutations(file_format: str) -> list[str]:
    return [name for name, mutation in MUTATIONS.items() if file_format in mutation.formats]


def draw_recipe(random: Random) -> Recipe:
    """Draw a recipe; half of them have plain mutations only."""
    dialect = random.choice([*DIALECTS])
    names = list_mutations(dialect.split(":")[0])
    if random.random() < PLAIN_SHARE:
        names = [name for name in names if MUTATIONS[name].plain]
    count = random.randint(0, min(MAX_MUTATIONS, len(names)))
    return Recipe(
        dialect=dialect,
        mutations=tuple(random.sample(names, count)),
        paper=random.random() < 0.5,
        rows=random.randint(1, MAX_ROWS),
        seed=random.randrange(2**32),
    )
