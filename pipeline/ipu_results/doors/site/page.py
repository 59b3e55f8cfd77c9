"""Templates of the static pages, with the formats of figures that they use."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_eval_context
from jinja2.ext import Extension
from jinja2.nodes import EvalContext
from markupsafe import Markup

from ipu_results.kit.files import load_schema_file

DIGITS = 3  # of a ratio
WHOLE_FROM = 100  # a ratio of this size is printed whole


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its place in the site, and the view of the interactive page that shows the same.

    `image` is the place of its preview image, if it has one.
    """

    path: str
    title: str
    description: str
    content: Markup
    live: str
    image: str = ""


class JoinedLines(Extension):
    """Join the lines of HTML templates: next to a tag or an expression without a blank, within a
    text with one.
    """

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002
        """Return the source of a template as Jinja reads it."""
        if name is None or not name.endswith((".html", ".svg")):
            return source
        joined = re.sub(r"(?<=[>}])\n\s*|\n\s*(?=[<{])", "", source)
        return re.sub(r"\s*\n\s*", " ", joined)


@pass_eval_context
def _finalise(context: EvalContext, value: object) -> object:
    """Print nothing for None, and spell quotes as `html.escape` does: pages of two releases differ
    by figures alone.
    """
    if value is None:
        return ""
    if not context.autoescape or hasattr(value, "__html__"):
        return value
    return Markup(escape(str(value)))


def format_number(value: float | None) -> str:
    """Format a figure with every digit; nothing for a blank."""
    return "" if value is None else f"{value:,.15g}"


def format_computed(value: float | None, digits: int = 3) -> str:
    """Format what this project computed, rounded."""
    return "" if value is None else f"{float(f'{value:.{digits}g}'):,.15g}"


def format_ratio(ratio: float) -> str:
    """Format a ratio, with three digits below 100."""
    return f"{ratio:#.{DIGITS}g}" if ratio < WHOLE_FROM else f"{ratio:,.0f}"


def format_unit(unit: str | None) -> str:
    """Format a unit; a ratio has none."""
    return "" if unit in (None, "1") else str(unit)


def format_slug(name: str) -> str:
    """Format a name as part of an address."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def join_column(rows: Iterable[Mapping[str, object]], column: str) -> str:
    """Join the values of a column, each once and sorted."""
    return ", ".join(sorted({str(row[column]) for row in rows}))


def shorten(text: str, characters: int) -> str:
    """Cut a text that is longer than this."""
    return text if len(text) <= characters else f"{text[: characters - 2]} …"


def format_code(text: str) -> Markup:
    """Set what stands between back-ticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text)))


def is_linkable(address: str) -> bool:
    """Return whether an address from the data is a plain web address or a relative one: a link to
    it runs no script.
    """
    has_scheme = ":" in address.split("/", maxsplit=1)[0]
    return not has_scheme or address.startswith(("https://", "http://"))


ENVIRONMENT = Environment(
    loader=PackageLoader("ipu_results.doors.site"),
    autoescape=lambda name: name is None or not name.endswith(".txt"),
    undefined=StrictUndefined,
    finalize=_finalise,
    extensions=[JoinedLines],
    trim_blocks=True,
    keep_trailing_newline=True,
)
ENVIRONMENT.tests["linkable"] = is_linkable
ENVIRONMENT.filters |= {
    "number": format_number,
    "computed": format_computed,
    "ratio": format_ratio,
    "unit": format_unit,
    "words": join_column,
    "shorten": shorten,
    "code": format_code,
}


def build_page(template: str, path: str, *, image: str = "", **values: object) -> Page:
    """Build a page by a template that sets its `title`, `description` and `live`."""
    module: Any = ENVIRONMENT.get_template(template).make_module(values)
    title = _unescape(module.title)
    description = _unescape(module.description)
    return Page(path, title, description, Markup(module), module.live, image)


def _unescape(text: str) -> str:
    """Undo that a `{% set %}` block is HTML already: the text is escaped where it is printed."""
    return text.unescape() if isinstance(text, Markup) else text


def format_page(page: Page, base_url: str = "") -> str:
    """Format a whole page with its head, links to the other pages, and address and preview if there
    is a `base_url`.
    """
    up = "../" * page.path.count("/")
    menu = load_schema_file("menu.toml")["views"]
    return render("page.html", page=page, base_url=base_url, up=up, menu=menu)


def render(template: str, **values: object) -> str:
    """Fill a template."""
    return ENVIRONMENT.get_template(template).render(values)
