"""Fixtures of all tests: servers, recorded workloads, and an environment that is the same
everywhere.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.preloaded import preloaded
from tests.support.traces import trace_file

pytest_plugins = ["tests.support.postgres", "tests.support.munge", "tests.support.figures"]

CHECKOUT = Path(__file__).resolve().parent.parent
FOR_TESTS = {"FAIRBANK_SHARED", "FAIRBANK_SHORT", "FAIRBANK_LIBMUNGE"}

# Busy machines are slow now and then: no deadline for an example. The share of filtered inputs is
# measured on the first few draws only, so that check would fail at random. `make test` tries few
# examples, `make campaign` many.
settings.register_profile(
    "fairbank",
    max_examples=50,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.register_profile("campaign", settings.get_profile("fairbank"), max_examples=1_000)
settings.load_profile("fairbank")

gc.disable()  # until all tests are collected: it would search their half a million objects 13 times


def pytest_collection_finish() -> None:
    """Collect the garbage of tests only: modules and tests stay to the end."""
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files without slow tests in the slow half, whose collection would take longer."""
    if collection_path.suffix != ".py" or not config.option.markexpr.startswith("slow "):
        return None
    return "mark.slow" not in collection_path.read_text(encoding="utf-8") or None


def pytest_configure() -> None:
    """Remove the settings of the user's own bank and the signals that the shell ignores."""
    for name in [
        name for name in os.environ if name.startswith("FAIRBANK_") and name not in FOR_TESTS
    ]:
        del os.environ[name]
    # Under nohup, or in the background of a script, these signals are ignored, and every process
    # that a test starts would ignore them too.
    for number in (signal.SIGHUP, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the time of each part of the tests, summed over its processes."""
    seconds = defaultdict[str, float](float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds["/".join(report.nodeid.split("/")[:2])] += report.duration
    if len(seconds) > 1:
        terminalreporter.section("seconds by part")
        for part, total in sorted(seconds.items(), key=lambda item: -item[1]):
            terminalreporter.write_line(f"{total:8.1f} {part}")


@pytest.fixture(scope="session", autouse=True)
def _preloaded() -> Iterator[None]:
    """Start Fairbank's own servers without importing everything again for each."""
    with preloaded():
        yield


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The folder of the whole tree."""
    return CHECKOUT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Recorded workloads and other large material that is not part of the tree: beside it, or where
    FAIRBANK_SHARED says.
    """
    folder = Path(os.environ.get("FAIRBANK_SHARED") or CHECKOUT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; FAIRBANK_SHARED may name another folder")
    return folder


@pytest.fixture(scope="session")
def recorded(shared: Path) -> Callable[[str], Path]:
    """`recorded(KTH)`: the file of a recorded workload (`tests.support.traces`)."""

    def existing_file(name: str) -> Path:
        file = trace_file(shared, name)
        if not file.exists():
            pytest.skip(f"there is no {file}")
        return file

    return existing_file


@pytest.fixture(scope="session")
def rounds() -> Callable[[int, int], int]:
    """`rounds(1000, 20)`: how often a campaign repeats itself, at length or in short (SHORT=1)."""
    return lambda at_length, in_short: in_short if os.environ.get("FAIRBANK_SHORT") else at_length
