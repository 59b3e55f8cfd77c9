"""The built page in a browser, by the tests of `site/tests`."""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import ROOT, require

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("node")]
SITE = ROOT / "site"
BROWSER_S = 1800  # 200 on an idle machine; beside other tests on a slow one it took 900


def test_site_in_a_browser() -> None:
    require((SITE / "dist" / "app.js").exists(), "needs `make site`")
    done = subprocess.run(
        ["npm", "test"], cwd=SITE, capture_output=True, text=True, timeout=BROWSER_S, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
