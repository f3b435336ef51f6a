"""Figures of campaigns, which the summary of the tests repeats."""

from __future__ import annotations

from collections.abc import Callable

import pytest

LogFigure = Callable[[str], None]

FIGURES = pytest.StashKey[dict[str, list[str]]]()


@pytest.fixture
def log_figure(request: pytest.FixtureRequest) -> LogFigure:
    """Print a figure, and repeat it in the summary after all tests, passed or failed."""
    kept = request.config.stash.setdefault(FIGURES, {})

    def say(line: str) -> None:
        print(line)
        kept.setdefault(request.node.name, []).append(line)

    return say


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print all figures."""
    if figures := config.stash.get(FIGURES, {}):
        terminalreporter.section("figures of the campaigns")
        for name, lines in figures.items():
            terminalreporter.line(name)
            for line in lines:
                terminalreporter.line(f"    {line}")
