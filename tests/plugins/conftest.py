"""Fixture: a Lua interpreter of each version that Slurm may be built with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugins.interpreter import VERSIONS, Lua


@pytest.fixture(params=VERSIONS)
def lua(request: pytest.FixtureRequest, checkout: Path) -> Lua:
    """Return an interpreter of each version."""
    return Lua(request.param, checkout / "plugins")
