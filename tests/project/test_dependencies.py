"""Tests of the dependency check: imports, purity and reachability."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.dependencies import purity, reachability, rules
from tools.dependencies.graph import Graph
from tools.dependencies.purity import impurities
from tools.dependencies.rules import PACKAGES, cycle, forbidden_imports, may_import, unused_entries

Build = Callable[..., Graph]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Return a function that writes modules and reads the package: `build(store__sqlite="import
    os")` writes fairbank/store/sqlite.py. The packages are base, store and cli; only base is pure.
    """
    monkeypatch.setattr(rules, "PURE", {"base": ""})
    monkeypatch.setattr(rules, "PACKAGES", {"base": "", "store": "base", "cli": "base"})
    monkeypatch.setattr("tools.dependencies.purity.PURE", {"base": ""})
    monkeypatch.setattr(reachability, "NEXT_USERS", {})
    monkeypatch.chdir(tmp_path)

    def build(**files: str) -> Graph:
        package = tmp_path / "fairbank"
        empty = dict.fromkeys(("base____init__", "store____init__", "cli____init__"), "")
        for name, text in {**empty, "__init__": "", **files}.items():
            file = package / f"{name.replace('__', '/', 1) if name != '__init__' else name}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return Graph(package)

    return build


@pytest.mark.parametrize(
    "statement",
    [
        "from fairbank.base.units import Units",
        "from fairbank.base import units",
        "import fairbank.base.units as u",
        "from ..base.units import Units",
        "from ..base import units",
        "from .. import base; from ..base import units",
        "def late():\n    from fairbank.base.units import Units",
    ],
)
def test_every_form_of_import_is_read(build: Build, statement: str) -> None:
    graph = build(base__units="class Units: ...", store__sqlite=statement)
    assert ("store.sqlite", "base.units") in {(item.source, item.target) for item in graph.imports}


def test_name_defined_in_a_package_stands_for_the_package(build: Build) -> None:
    graph = build(base____init__="WORDS = ()", store__sqlite="from fairbank.base import WORDS")
    assert [(item.source, item.target) for item in graph.imports] == [("store.sqlite", "base")]


def test_forbidden_import_names_file_and_line(build: Build) -> None:
    graph = build(
        base__units='"""Units."""\n\nfrom fairbank.store import sqlite\n', store__sqlite=""
    )
    assert list(forbidden_imports(graph)) == [
        "fairbank/base/units.py:3: base may not import store.sqlite (allowed: only itself)"
    ]


def test_allowed_import_that_no_module_needs_is_reported(build: Build) -> None:
    graph = build(store__sqlite="from fairbank.base import units", base__units="")
    assert list(unused_entries(graph)) == [
        "cli: does not import base; remove it from tools.dependencies.rules"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "from fairbank import __version__",
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fairbank.store import"
            " sqlite"
        ),
        "import typing\nif typing.TYPE_CHECKING:\n    from pathlib import Path",
    ],
)
def test_version_and_imports_for_types_are_free(build: Build, text: str) -> None:
    graph = build(base__units=text, store__sqlite="from fairbank.base import units")
    assert [*forbidden_imports(graph), *impurities(graph)] == []


def test_command_may_import_any_package_in_a_function_only(build: Build) -> None:
    deferred = "def run():\n    from fairbank.store import sqlite"
    graph = build(cli__balance=deferred, store__sqlite="")
    assert list(forbidden_imports(graph)) == []
    graph = build(cli__balance="from fairbank.store import sqlite", base__units=deferred)
    assert [text.partition(":")[0] for text in forbidden_imports(graph)] == [
        "fairbank/base/units.py",
        "fairbank/cli/balance.py",
    ]


def test_cycle_is_reported(build: Build) -> None:
    graph = build(base__a="from fairbank.base import b", base__b="from fairbank.base.a import x")
    assert set(cycle(graph)) == {"base.a", "base.b"}
    assert [text.partition(":")[0] for text in forbidden_imports(graph)] == ["import cycle"]


def test_table_and_folders_agree(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = build(cellar__wine="")
    monkeypatch.setitem(rules.PACKAGES, "wlm", "base")
    assert list(forbidden_imports(graph)) == [
        "cellar: add this package to the table in tools/dependencies/rules.py",
        "wlm: no such package; remove it from tools/dependencies/rules.py",
    ]


def test_table_allows_only_packages_that_it_lists() -> None:
    named = {name for allowed in PACKAGES.values() for name in allowed.split()}
    assert named - {"*"} <= PACKAGES.keys()
    assert all(may_import(name, f"{name}.module") for name in PACKAGES)


@pytest.mark.parametrize(
    "text",
    [
        "import os.path",
        "from os import environ",
        "import asyncio",
        "from sqlalchemy import text",
        "from sys import stdout",
        "from random import choice",
        "import random\nrandom.shuffle([])",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime, UTC\ndatetime.now(UTC)",
        "print('hello')",
        "open('file')",
    ],
)
def test_pure_package_has_no_input_output_clock_or_randomness(build: Build, text: str) -> None:
    (fault,) = impurities(build(base__units=text, store__sqlite=text))
    line = 1 + text.count("\n")
    assert fault.startswith(f"fairbank/base/units.py:{line}: base is pure and may not")


@pytest.mark.parametrize(
    "text",
    [
        "from datetime import datetime, UTC\ndatetime.fromtimestamp(0, UTC)",
        "from random import Random\nRandom(7).random()",
        "import random\nrandom.Random(7)",
        "import math, bisect, dataclasses, csv, io",
    ],
)
def test_pure_package_may_compute(build: Build, text: str) -> None:
    assert list(impurities(build(base__units=text))) == []


def unreachable(graph: Graph) -> list[str]:
    return [
        text.partition(":")[0] for text in reachability.unreachable_modules(graph, ["cli.main"])
    ]


def test_module_without_a_user_is_reported(build: Build) -> None:
    graph = build(
        cli__main="ENTRY = 'fairbank.store.server'",
        cli__balance="from fairbank.base import units\nCOMMAND = Command()",
        store__server="",
        base__units="",
        base__oracle="from fairbank.base import helper",
        base__helper="",
    )
    assert unreachable(graph) == ["fairbank/base/helper.py", "fairbank/base/oracle.py"]


def test_module_with_a_next_user_may_wait(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "COMMAND = Command()\nfrom fairbank.base import used"
    graph = build(cli__main=text, base__used="", base__later="", store____init__="")
    (graph.package / "store" / "__init__.py").unlink()
    graph = Graph(graph.package)
    later = {"base.later": "", "base.used": "", "base.gone": ""}
    monkeypatch.setattr(reachability, "NEXT_USERS", later)
    assert unreachable(graph) == ["base.used", "base.gone"]


def test_installed_commands_are_entry_points(checkout: Path) -> None:
    assert reachability.script_modules(checkout / "pyproject.toml", "fairbank") != []


def test_only_the_canvas_may_import_matplotlib(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "def draw():\n    from matplotlib.figure import Figure"
    monkeypatch.setattr(purity, "ALLOWED", {("base.canvas", "matplotlib")})
    (fault,) = impurities(build(base__canvas=text, base__units=text))
    assert fault.startswith("fairbank/base/units.py:2: base is pure and may not import matplotlib")
