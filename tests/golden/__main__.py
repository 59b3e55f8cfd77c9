"""Compare what a user sees with the goldens: `python -m tests.golden check|write|dump [SUBJECT
...]`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
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
    parser.add_argument("--warehouse", type=Path, help="of this code; default: built from raw/")
    parser.add_argument("--out", type=Path, default=Path("build/golden"), help="folder of `dump`")
    args = parser.parse_args()
    names = args.subject or list(SUBJECTS)
    unknown = sorted(set(names) - set(SUBJECTS))
    if unknown:
        parser.error(f"no subject {unknown[0]!r}")
    differences = []
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        warehouse = args.warehouse or _build(Path(folder) / "warehouse")
        for name in names:
            texts = make(name, warehouse, args.fast)
            compact = SUBJECTS[name].compact
            print(f"{name}: {len(texts)} items", flush=True)
            if args.action == "write":
                save(name, texts, compact)
            elif args.action == "dump":
                dump(texts, args.out / name)
            else:
                differences += compare(name, texts, compact, args.fast)
    print("\n".join(differences))
    return int(bool(differences))


def _build(warehouse: Path) -> Path:
    output = run_cli("ingest", "--raw", str(ROOT / "raw"), "--warehouse", str(warehouse))
    if not output.startswith("exit 0"):
        sys.exit(output)
    return warehouse


if __name__ == "__main__":
    sys.exit(main())
