"""A static page of the site."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """A page with its place in the site, and the view of the interactive page that shows the same.

    `card` holds the lines of its preview image, or `image` the place of a picture that is drawn anyway.
    """

    path: str
    title: str
    description: str
    content: str
    live: str
    card: tuple[str, ...] = ()
    image: str = ""
