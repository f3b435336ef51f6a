"""Every Lua that a Slurm may have been built with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.interpreter import VERSIONS, Lua


@pytest.fixture(params=VERSIONS)
def lua(request: pytest.FixtureRequest, checkout: Path) -> Lua:
    """One after the other."""
    return Lua(request.param, checkout / "plugins")
