"""Planted faults: of 40, the tests of the workload manager find at least 38."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import fairbank
from tests.support.figures import LogFigure
from tests.wlm.planted_faults.planted_faults import FAULTS, JUDGES, Judge, PlantedFault

PACKAGE = Path(fairbank.__file__).parent
CHECKOUT = Path(__file__).resolve().parents[3]
FOUND = 0.95
"""Least share of the faults that is found."""
PROCESSES = 2
TESTS_FAILED = 1
"""Exit code of pytest."""


def judge(place: Path, name: Judge) -> int:
    """Run the tests of a judge with the package in a directory, and return their exit code."""
    environment = {**os.environ, "PYTHONPATH": str(place)}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-o", f"cache_dir={place}/cache"]
    for plugin in ("schemathesis", "pytest_cov", "faker", "xdist"):
        command += ["-p", f"no:{plugin}"]
    command += ["-m", "not campaign and not slurm", "-k", "not agent_link", *JUDGES[name]]
    result = subprocess.run(
        command, env=environment, cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    assert result.returncode in (0, TESTS_FAILED), result.stdout[-2_000:] + result.stderr
    return result.returncode


def copy_package(place: Path, fault: PlantedFault | None) -> None:
    """Copy the package with its compiled modules, and plant a fault in it."""
    shutil.copytree(PACKAGE, place / "fairbank", ignore=shutil.ignore_patterns("static"))
    if fault is not None:
        file = place / "fairbank" / "wlm" / fault.file
        file.write_text(file.read_text().replace(fault.right, fault.wrong))


def is_found(fault: PlantedFault, place: Path) -> bool:
    copy_package(place, fault)
    try:
        return judge(place, fault.judge) == TESTS_FAILED
    finally:
        shutil.rmtree(place)


def missed(faults: Sequence[PlantedFault], folder: Path) -> list[str]:
    """Return the names of the faults that are not found."""
    places = [folder / str(number) for number in range(len(faults))]
    with ThreadPoolExecutor(PROCESSES) as pool:
        verdicts = list(pool.map(is_found, faults, places))
    return [fault.name for fault, verdict in zip(faults, verdicts, strict=True) if not verdict]


def test_each_fault_has_one_place() -> None:
    assert len(FAULTS) == 40
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    for fault in FAULTS:
        assert (PACKAGE / "wlm" / fault.file).read_text().count(fault.right) == 1, fault.name


@pytest.mark.campaign
@pytest.mark.timeout(7_200)
def test_planted_faults_are_found(
    tmp_path: Path, rounds: Callable[[int, int], int], log_figure: LogFigure
) -> None:
    faults = FAULTS[:: rounds(1, 4)]
    not_found = missed(faults, tmp_path)
    log_figure(f"{len(faults) - len(not_found)} of {len(faults)} planted faults found")
    assert len(not_found) <= (1 - FOUND) * len(faults), not_found


@pytest.mark.campaign
@pytest.mark.parametrize("name", ["core", "world"])
def test_package_without_fault_passes(name: Judge, tmp_path: Path) -> None:
    copy_package(tmp_path, None)
    assert judge(tmp_path, name) == 0
