"""Keep what documents were read to between two builds, so that the next one reads what has changed.

An entry counts only on the machine and for the user that made it: it is signed with a key that is
not in the project, so that one which came with a copy of the folder is never opened. The folder may
be deleted at any time.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pickle
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ipu_results.errors import IpuResultsError
from ipu_results.kit.files import write_atomically

T = TypeVar("T")

KEY_FILE = "ipu-results/cache-key"
KEY_BYTES = 32
SIGNATURE_BYTES = hashlib.sha256().digest_size


class Cache:
    """Objects by the digest of all that they follow from.

    What cannot be read or written is as if it were not there: a build without a cache is the same
    and slower. `code` is a digest of the code that makes the objects.
    """

    def __init__(self, folder: Path, code: str) -> None:
        self._folder = folder
        self._code = code
        self._secret = _load_secret()
        self._used: set[str] = set()

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the key here: a worker on another machine has one of its own."""
        return Cache, (self._folder, self._code)

    def get(self, digest: str) -> Any | None:
        """Return an object that this user put here, else None."""
        self._used.add(digest)
        try:
            data = (self._folder / digest).read_bytes()
        except OSError:
            return None
        content = data[SIGNATURE_BYTES:]
        if self._secret is None:
            return None
        # before it is unpickled: a pickle can run anything
        if not hmac.compare_digest(data[:SIGNATURE_BYTES], self._sign(digest, content)):
            return None
        return pickle.loads(content)

    def put(self, digest: str, value: object) -> None:
        """Keep an object."""
        if self._secret is None:
            return
        content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        with suppress(OSError, IpuResultsError):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / digest, self._sign(digest, content) + content)

    def call(self, function: Callable[..., T], *arguments: object) -> T:
        """Return what a function returns, from the cache where it was called so before.

        `code` of the cache stands for the function's own text.
        """
        called = pickle.dumps((self._code, function.__qualname__, arguments))
        digest = hashlib.sha256(called).hexdigest()
        kept: T | None = self.get(digest)
        if kept is not None:
            return kept
        returned = function(*arguments)
        self.put(digest, returned)
        return returned

    def drop_unused(self) -> None:
        """Delete what no `get` has asked for."""
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.name not in self._used:
                    path.unlink()

    def _sign(self, digest: str, content: bytes) -> bytes:
        assert self._secret is not None
        return hmac.digest(self._secret, digest.encode() + content, "sha256")


def _make_secret(path: Path) -> None:
    """Write a key that nobody else can read; of two processes that do so at once one wins."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
    with suppress(FileExistsError):
        os.link(part, path)
    part.unlink()


def _load_secret() -> bytes | None:
    """Return the key of this user on this machine, made the first time; None where none can be
    kept.
    """
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    try:
        path = Path(home).expanduser() / KEY_FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _make_secret(path)
        secret = path.read_bytes()
    except (OSError, RuntimeError):
        return None
    return secret if len(secret) == KEY_BYTES else None
