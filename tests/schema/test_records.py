"""The types of rows against the tables that they are made from."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.docs.docs_support import check_page

RECORDS = ROOT / "pipeline" / "ipu_results" / "schema" / "records.py"


@pytest.mark.docs
def test_types_of_rows_are_those_of_the_tables() -> None:
    command = [sys.executable, ROOT / ".ci" / "records.py"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    check_page(RECORDS, made)
