"""Compare what a user sees with the goldens: `python -m tests.golden check|write|dump [SUBJECT
...]`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.golden.access import ROOT, run_cli
from tests.golden.store import compare, dump, save
from tests.golden.subjects import SUBJECTS, make


def main() -> int:
    """Check, write or dump the subjects; return 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("action", choices=("check", "write", "dump"))
    parser.add_argument("subject", nargs="*", help=f"default all: {', '.join(SUBJECTS)}")
    parser.add_argument("--fast", action="store_true", help="make a part of the longest subjects")
    parser.add_argument(
        "--warehouse", type=Path, help="a warehouse of this code; default: one is built from raw/"
    )
    parser.add_argument("--out", type=Path, default=Path("build/golden"), help="folder of `dump`")
    args = parser.parse_args()
    if unknown := sorted(set(args.subject) - set(SUBJECTS)):
        parser.error(f"no subject {unknown[0]!r}")
    failed = False
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        warehouse = args.warehouse or _build(Path(folder) / "warehouse")
        for name in args.subject or SUBJECTS:
            start = time.perf_counter()
            texts = make(name, warehouse, args.fast)
            compact = SUBJECTS[name].compact
            differences = compare(name, texts, compact, args.fast) if args.action == "check" else []
            if args.action == "write":
                save(name, texts, compact)
            if args.action == "dump":
                dump(texts, args.out / name)
            failed |= bool(differences)
            print(f"{name}: {len(texts)} items, {time.perf_counter() - start:.0f} s", flush=True)
            for difference in differences:
                print(difference, flush=True)
    return int(failed)


def _build(warehouse: Path) -> Path:
    output = run_cli("ingest", "--raw", str(ROOT / "raw"), "--warehouse", str(warehouse))
    if not output.startswith("exit 0"):
        sys.exit(output)
    return warehouse


if __name__ == "__main__":
    sys.exit(main())
