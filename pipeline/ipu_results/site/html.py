"""Static HTML in which every text is escaped."""

from __future__ import annotations

from html import escape
from pathlib import PurePosixPath

POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; base-uri 'none'"
SITE_NAME = "ipu-results"
MAX_DESCRIPTION = 200  # characters that search engines and previews show
VOID = ("img", "meta", "link", "br")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, *children: str | None, **attributes: str | None) -> Markup:
    """Format an element; children that are not Markup are escaped, None is left out. `class_` stands for class."""
    pairs = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    opening = "".join([f"<{name}", *(f' {key}="{escape(value)}"' for key, value in pairs), ">"])
    return Markup(opening) if name in VOID else Markup(f"{opening}{join(*children)}</{name}>")


def join(*children: str | None) -> Markup:
    """Join texts and elements."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children if child))


def link(address: str, *children: str) -> Markup:
    """Format a link; an address from the data is a link only where it is a plain web address or a relative one."""
    if ":" in address.split("/", maxsplit=1)[0] and not address.startswith(("https://", "http://")):
        return join(*children)
    return tag("a", *children, href=address)


def list_items(*items: str | None) -> Markup:
    """Format a list; None where there are no items."""
    return tag("ul", *(tag("li", item) for item in items if item)) if any(items) else Markup()


def define(**fields: str | None) -> Markup:
    """Format a definition list of the fields that have a value; `_` in a name stands for a space."""
    lines = ((name.replace("_", " "), value) for name, value in fields.items() if value)
    return tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in lines))


def format_table(headings: list[str], rows: list[list[str]]) -> Markup:
    """Format a table within a box that scrolls."""
    head = tag("tr", *(tag("th", heading, scope="col") for heading in headings))
    body = join(*(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    return tag("div", tag("table", tag("thead", head), tag("tbody", body)), class_="scrolls", tabindex="0")


def format_page(
    path: str, title: str, description: str, content: str, *, live: str = "", base_url: str = "", image: str = ""
) -> str:
    """Format a whole page.

    `path` is its place in the site, `live` its view of the interactive page. Absolute addresses, which previews need,
    are written only with a `base_url`; `image` is the place of the preview in the site.
    """
    up = "../" * (len(PurePosixPath(path).parts) - 1)
    short = description if len(description) <= MAX_DESCRIPTION else f"{description[: MAX_DESCRIPTION - 2]} …"
    properties = {"og:title": title, "og:description": short, "og:type": "article", "og:site_name": SITE_NAME}
    if base_url:
        properties["og:url"] = f"{base_url}{path}"
        if image:
            properties |= {"og:image": f"{base_url}{image}", "og:image:alt": title}
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="description", content=short),
        *(tag("meta", property=key, content=value) for key, value in properties.items()),
        tag("meta", name_="twitter:card", content="summary_large_image") if base_url and image else None,
        tag("link", rel="canonical", href=f"{base_url}{path}") if base_url else None,
        tag("title", f"{title} · {SITE_NAME}"),
        tag("link", rel="icon", href=f"{up}icon.svg"),
        tag("link", rel="stylesheet", href=f"{up}page.css"),
    ]
    body = [
        tag(
            "header", link(f"{up}index.html", SITE_NAME), link(f"{up}index.html{live}", "Open in the interactive page")
        ),
        tag("main", tag("h1", title), content),
        tag(
            "footer",
            link(f"{up}claims.html", "Claims"),
            link(f"{up}charts.html", "Charts"),
            link(f"{up}compare.html", "Comparisons"),
            link(f"{up}replications.html", "Replications"),
            link(f"{up}energy.html", "Energy"),
            link(f"{up}peak.html", "Share of peak"),
            link(f"{up}microbenchmarks.html", "Microbenchmarks"),
            link(f"{up}downloads.html", "Downloads"),
            link(f"{up}changed.html", "What changed"),
        ),
    ]
    return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', *body), lang='en')}\n"
