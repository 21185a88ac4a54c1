"""`python -m loopr` is `loopr`."""

from __future__ import annotations

from loopr.ui.cli import run

run()
