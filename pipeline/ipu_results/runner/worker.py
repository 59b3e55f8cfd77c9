"""One session in a process of its own, told what to do by lines of JSON: `python -m ipu_results.runner.worker`.

Answers go to the standard output that the process was started with; whatever a library prints goes to standard error.
Its standard input is empty for them.
"""

from __future__ import annotations

import json
import os
import traceback
from pathlib import Path
from typing import Any

from ipu_results.runner.loop import feeding, repeat


class Host:
    """The session and what it is asked. Each public method is a request; what it returns is the answer."""

    def __init__(self) -> None:
        self.session: Any = None
        self.images: Any = None
        self.micro_batch = 0

    def probe(self, backend: str) -> dict[str, Any]:
        """The devices of a backend, seen from this process."""
        from ipu_results.runner.backends import backend as module  # noqa: PLC0415

        return {"devices": [vars(one) for one in module(backend).probe()]}

    def open(self, backend: str, spec: dict[str, Any], images: dict[str, Any] | None) -> dict[str, Any]:
        """The facts of a new session. `images` says where they lie and how large they are."""
        from ipu_results.runner.backends import backend as module  # noqa: PLC0415 (PopART is imported before all else)
        from ipu_results.runner.backends.base import Spec  # noqa: PLC0415

        told = {**spec, "micro_batches": tuple(spec["micro_batches"])}
        self.session = module(backend).open(Spec(**told))
        self.images = images
        return {"facts": vars(self.session.facts), "virtual": self.session.virtual, "clock": self.session.clock()}

    def prepare(self, micro_batch: int, kind: str) -> dict[str, Any]:
        """Ready for batches of this size; how long that took and what is predicted for it."""
        start = self.session.clock()
        self.session.prepare(micro_batch, kind)
        self.micro_batch = micro_batch
        return {"seconds": (self.session.clock() - start) / 1e9, "told": self.session.told()}

    def block(self, at: int, seconds: float, least: int, overlap: bool) -> dict[str, Any]:
        """Stamps of batches from the moment `at` on, for so many seconds and at least so many batches.

        In overlap one batch goes before them without a stamp: after it the making of images is as far ahead as it
        stays, so that none is counted that was made before.
        """
        source = self._source()
        with feeding(self.session, source, overlap) as feed:
            self.session.wait_until(at)
            if overlap and source is not None:
                self.session.run(feed()[0])
            stamps = repeat(self.session, feed, max(at, self.session.clock()) + int(seconds * 1e9), least)
        return {"stamps": stamps, "clock": self.session.clock()}

    def outputs(self, count: int, file: str) -> dict[str, Any]:
        """Write the outputs for this session's first images, `count` of them, as an array of numpy's."""
        import numpy as np  # noqa: PLC0415

        source = self._source(always=True)
        found = [self.session.run(source.prepare(source.load())) for _ in range(-(-count // self.micro_batch))]
        np.save(file, np.concatenate(found)[:count])
        return {}

    def close(self) -> dict[str, Any]:
        if self.session is not None:
            self.session.close()
        return {}

    def _source(self, always: bool = False) -> Any:
        """The session's images from the first one on; none where nothing is computed."""
        if self.images is None or (self.session.virtual and not always):
            return None
        from ipu_results.runner.images import Source  # noqa: PLC0415

        told = {**self.images, "folder": Path(self.images["folder"])}
        return Source(**told, dtype=self.session.dtype, micro_batch=self.micro_batch)


def answer(host: Host, request: dict[str, Any]) -> dict[str, Any]:
    """What a request gives; an error by its class and text, so that the other side can raise it again."""
    try:
        found: dict[str, Any] = getattr(host, request["do"])(**request["with"])
        return found
    except Exception as error:
        told = {"message": getattr(error, "message", None) or f"{type(error).__name__}: {error}"}
        place = {name: getattr(error, name, None) for name in ("document", "place")}
        return {"error": type(error).__name__, **told, **place, "traceback": traceback.format_exc()}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    host = Host()
    for line in requests:
        request = json.loads(line)
        answers.write(json.dumps(answer(host, request)) + "\n")
        answers.flush()
        if request["do"] == "close":
            return


if __name__ == "__main__":
    main()
