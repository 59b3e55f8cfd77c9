"""The views behind the analyses. None mixes MLPerf with other figures, or what is flagged or emulated with the rest."""

from __future__ import annotations

from schema.view import View

ANALYSES: tuple[View, ...] = ()
