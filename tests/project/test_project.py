"""Consistency of the source tree: one version, declared dependencies, one license, documented make
targets.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import fairbank
from tools.dependencies.graph import Graph
from tools.dependencies.purity import ALLOWED


@pytest.fixture(scope="module")
def project(checkout: Path) -> dict[str, Any]:
    read: dict[str, Any] = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    return read


@pytest.fixture(scope="module")
def graph(checkout: Path) -> Graph:
    """Return the imports of the package, which take seconds to read."""
    return Graph(checkout / "src" / "fairbank")


def test_version_is_the_same_in_both_places(project: dict[str, Any]) -> None:
    assert fairbank.__version__ == project["version"]


def test_imported_libraries_are_declared(graph: Graph, project: dict[str, Any]) -> None:
    """A library that only the tests or another library install may be missing on a user's
    machine.
    """
    extras = project["optional-dependencies"]
    client = [*project["dependencies"], *extras["plots"]]
    # Only the parts of the server import the libraries of the extra `server`.
    declared = {
        is_server: {canonicalize_name(Requirement(line).name) for line in lines}
        for is_server, lines in ((False, client), (True, [*client, *extras["server"]]))
    }
    provided_by = packages_distributions()
    undeclared = [
        f"{graph.location(item)}: {item.target}"
        for item in graph.imports
        if not item.is_internal
        and not item.is_for_types
        and (top := item.target.partition(".")[0]) not in sys.stdlib_module_names
        and not declared[item.source.startswith(("rest.", "store."))]
        & {canonicalize_name(name) for name in provided_by.get(top, [])}
    ]
    assert undeclared == []


def test_each_exception_of_purity_names_a_module_of_the_package(graph: Graph) -> None:
    used = {(item.source, item.target.partition(".")[0]) for item in graph.imports}
    assert used >= ALLOWED


def test_license_text_is_complete(checkout: Path, project: dict[str, Any]) -> None:
    license = (checkout / "LICENSE").read_text()
    assert "Apache License" in license
    assert "END OF TERMS AND CONDITIONS" in license
    assert project["license"] == "Apache-2.0"
    assert "psycopg" in (checkout / "NOTICE").read_text()


def test_make_without_a_target_lists_the_targets(checkout: Path) -> None:
    listed = subprocess.run(
        ["make", "--no-print-directory"], cwd=checkout, capture_output=True, text=True, check=True
    ).stdout
    assert [
        verb
        for verb in (
            "demo",
            "test",
            "test-slurm",
            "check",
            "bench",
            "campaign",
            "reference",
            "docs",
            "lock",
        )
        if f"make {verb} " not in listed
    ] == []


def test_ci_runs_only_make_targets(checkout: Path) -> None:
    lines = (checkout / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line and not line.startswith(("#", "set ", "cd "))]
    assert {"make check", "make test", "make demo"} <= set(commands)
    assert [line for line in commands if not line.startswith("make ")] == []


def test_no_output_file_of_a_job_is_in_the_repository(checkout: Path) -> None:
    assert list(checkout.glob("slurm-*.out")) == []
