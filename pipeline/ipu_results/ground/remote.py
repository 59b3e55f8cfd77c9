"""Files at any URL that fsspec knows: object storage, a web server, inside an archive. Needs the extra `remote`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from ipu_results.errors import MissingExtraError, UnrecognisedDocumentError

T = TypeVar("T")
USER = re.compile(r"(?<=://)[^/@\s]*@")
QUERY = re.compile(r"(?<=[^\s?])\?[^\s:]*=[^\s:]*")


def is_url(path: str) -> bool:
    return "://" in path or "::" in path


def connect(url: str) -> tuple[Any, str]:
    """Return the file system and the path in it; fsspec keeps one file system per address and process.

    Raises MissingExtraError, and UnrecognisedDocumentError for a URL that cannot be opened.
    """
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415  (optional)
    except ImportError as error:
        raise MissingExtraError("a URL needs fsspec: pip install 'ipu-results[remote]'", document=url) from error
    try:
        files, root = url_to_fs(url)
    except ImportError as error:  # the package of this kind of URL
        message = f"cannot be opened: {describe_error(error)}; for a web server: pip install 'ipu-results[remote]'"
        raise MissingExtraError(message, document=url) from error
    except Exception as error:
        raise UnrecognisedDocumentError(f"cannot be opened: {describe_error(error)}", document=url) from error
    return files, str(root)


def call(operation: Callable[[], T]) -> T:
    """Turn the errors of a file system, which may be of any class, into OSError: a file that cannot be read."""
    try:
        return operation()
    except OSError:
        raise
    except Exception as error:
        raise OSError(describe_error(error)) from error


def join_path(root: str, path: str) -> str:
    return f"{root.rstrip('/')}/{path}" if root and path else root or path


def describe_error(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__


def hide_secrets(text: str) -> str:
    """Return a text without the user names, passwords and query strings of URLs in it."""
    return QUERY.sub("", USER.sub("", text)) if "://" in text else text
