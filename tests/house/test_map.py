"""The map is the real import graph; a wrong street, a circle and an impure rule are each told with file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.map.__main__ import main
from tools.map.drawing import BEGIN, END, NEW_PAGE, draw, replace_map
from tools.map.graph import Graph
from tools.map.purity import PURE_ROOMS, impurities
from tools.map.streets import EVERYONE, STREETS, may_import, wrong_streets

Build = Callable[..., Graph]


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """`build(bank__ledger="import os")` makes a package fairbank with the file bank/ledger.py, and reads it."""

    def _build(**files: str) -> Graph:
        package = tmp_path / "fairbank"
        for name, text in {"__init__": "", **files}.items():
            path = package / f"{name.replace('__', '/') if name != '__init__' else name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Graph(package)

    monkeypatch.chdir(tmp_path)
    return _build


def arrows(graph: Graph) -> list[str]:
    return [f"{found.source} > {found.target}" for found in graph.imports if found.inside]


@pytest.mark.parametrize(
    "said",
    [
        "from fairbank.core.units import Units",
        "from fairbank.core import units",
        "import fairbank.core.units",
        "import fairbank.core.units as u",
        "from ..values.units import Units",
        "from ..values import units",
        "from .. import values; from ..values import units",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from fairbank.core.units import Units",
        "def late():\n    from fairbank.core.units import Units",
    ],
)
def test_every_way_to_say_it_is_read(build: Build, said: str) -> None:
    graph = build(values__units="class Units: ...", bank__ledger=said)
    assert "bank.ledger > values.units" in arrows(graph)


def test_a_name_defined_in_a_package_stands_for_the_package(build: Build) -> None:
    folder = (
        build(values__units="", bank__ledger="from fairbank.core import WORDS").package
        / "values"
        / "__init__.py"
    )
    folder.write_text("WORDS = ()")
    assert arrows(Graph(folder.parent.parent)) == ["bank.ledger > values"]


def test_the_version_may_be_read_anywhere(build: Build) -> None:
    assert list(wrong_streets(build(values__units="from fairbank import __version__"))) == []


def test_a_wrong_street_names_file_and_line(build: Build) -> None:
    graph = build(
        store__sqlite="", bank__ledger='"""Books."""\n\nfrom fairbank.store import sqlite\n'
    )
    assert list(wrong_streets(graph)) == [
        "fairbank/bank/ledger.py:3: bank may not import store (here store.sqlite); it may import values, cluster"
    ]


@pytest.mark.parametrize(
    ("here", "there", "allowed"),
    [
        ("bank.ledger", "bank.entry", True),
        ("bank.ledger", "values.units", True),
        ("values.units", "bank.ledger", False),
        ("rest.bodies", "values.units", True),
        ("rest.bodies", "bank.ledger", False),
        ("rest.client", "rest.bodies", True),
        ("rest.client", "service.bank", False),
        ("rest.client", "rest.sign_in.munge", True),
        ("rest.client", "rest.sign_in.doorkeeper", False),
        ("rest.sign_in.munge", "rest.routes", False),
        ("rest.routes.jobs", "service.bank", True),
        ("rest.routes.jobs", "rest.bodies", True),
        ("rest.server.serving", "rest.app", True),
        ("rest.app", "rest.server.serving", False),
        ("agent.daemon", "rest.server.unix_socket", True),
        ("agent.daemon", "rest.server.serving", False),
        ("rest.routes.jobs", "store.sqlite", False),
        ("rest.routes.jobs", "rest.client", False),
        ("service.bank", "store.memory", True),
        ("store.memory", "service.bank", False),
        ("cli.balance", "rest.client", True),
        ("cli.balance", "rest.app", False),
        ("cli.balance", "bank.ledger", False),
        ("compose", "store.sqlite", True),
        ("compose", "cli.balance", True),
        ("cli.balance", "compose", False),
        ("rest.app", "compose", False),
    ],
)
def test_the_streets(here: str, there: str, allowed: bool) -> None:
    assert may_import(here, there) is allowed


def test_nobody_imports_the_composition_and_only_it_imports_everyone() -> None:
    assert [room for room, allowed in STREETS.items() if "compose" in allowed] == []
    assert [room for room, allowed in STREETS.items() if EVERYONE in allowed] == ["compose"]


def test_the_table_speaks_of_rooms_that_it_knows() -> None:
    assert {room for allowed in STREETS.values() for room in allowed} - {EVERYONE} <= set(STREETS)
    assert set(STREETS) >= PURE_ROOMS


def test_a_room_that_is_not_on_the_map(build: Build) -> None:
    (complaint,) = wrong_streets(build(cellar__wine=""))
    assert "the room cellar is not on the map" in complaint


def test_files_that_import_each_other(build: Build) -> None:
    (complaint,) = wrong_streets(
        build(bank__a="from fairbank.bank import b", bank__b="from fairbank.bank.a import x")
    )
    assert "in a circle" in complaint
    assert "bank.a" in complaint


@pytest.mark.parametrize(
    "said",
    [
        "import os",
        "import os.path",
        "from os import environ",
        "import socket",
        "import sqlite3",
        "import asyncio",
        "import subprocess",
        "import time",
        "from sqlalchemy import text",
        "import litestar.status_codes",
        "from pathlib import Path",
        "from sys import stdout",
        "from random import choice",
        "import random\nrandom.shuffle([])",
        "import datetime\ndatetime.datetime.now()",
        "from datetime import datetime, UTC\ndatetime.now(UTC)",
        "print('hello')",
        "open('file')",
    ],
)
def test_a_pure_room_does_not_reach_outside(build: Build, said: str) -> None:
    (complaint,) = impurities(build(bank__ledger=said))
    assert complaint.startswith(
        f"fairbank/bank/ledger.py:{1 + said.count(chr(10))}: bank is pure and may not"
    )


@pytest.mark.parametrize(
    "said",
    [
        "from datetime import datetime, UTC\ndatetime.fromtimestamp(0, UTC)",
        "from random import Random\nRandom(7).random()",
        "import random\nrandom.Random(7)",
        "from fairbank.core import time",
        "import math, bisect, dataclasses, csv, io",
        "from typing import TYPE_CHECKING",
    ],
)
def test_what_a_pure_room_may_do(build: Build, said: str) -> None:
    assert list(impurities(build(values__time="", bank__ledger=said))) == []


def test_a_shell_may_reach_outside(build: Build) -> None:
    assert list(impurities(build(store__sqlite="import os, sqlite3\nprint(open)"))) == []


def test_the_drawing_shows_rooms_and_files(build: Build) -> None:
    drawing = draw(
        build(
            values__units="",
            bank__entry="from fairbank.core.units import Units",
            bank__ledger="from fairbank.bank import entry",
            rest__bodies="",
            rest__client="import fairbank.rest.bodies",
        )
    )
    assert "  bank --> values\n" in drawing
    assert "  rest_client --> rest_bodies\n" in drawing
    assert "bank --> bank" not in drawing
    assert "  entry          values: units\n" in drawing
    assert "  ledger         entry\n" in drawing


def test_the_prose_around_the_map_stays() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert replace_map(page, "new\n") == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"
    assert replace_map(replace_map(page, "new\n"), "new\n") == replace_map(page, "new\n")


@pytest.mark.parametrize(
    "page", ["", BEGIN, END, f"{END}\n{BEGIN}", f"{BEGIN}\n{END}\n{BEGIN}\n{END}"]
)
def test_a_page_without_its_markers_is_not_touched(page: str) -> None:
    with pytest.raises(ValueError, match="once each"):
        replace_map(page, "new")


def test_a_stale_map_fails_until_it_is_drawn_again(
    build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(values__units="")
    page = tmp_path / "ARCHITECTURE.md"
    options = ["--package", str(tmp_path / "fairbank"), "--page", str(page)]
    assert main([*options, "--check"]) == 1
    assert "missing; run `make map`" in capsys.readouterr().err
    assert main(options) == 0
    assert main([*options, "--check"]) == 0
    assert page.read_text().startswith(NEW_PAGE.partition(BEGIN)[0])
    build(bank__entry="from fairbank.core import units")
    assert main([*options, "--check"]) == 1
    assert "the map is older than the code" in capsys.readouterr().err
    assert main(options) == 0
    assert "bank --> values" in page.read_text()


def test_a_wrong_street_fails_even_when_freshly_drawn(
    build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build(values__units="from fairbank.bank import ledger", bank__ledger="")
    assert main(["--package", str(tmp_path / "fairbank"), "--page", str(tmp_path / "page.md")]) == 1
    assert "values may not import bank" in capsys.readouterr().err
