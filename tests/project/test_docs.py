"""Documentation: it agrees with the code, builds without a warning, and loads nothing from other
servers.
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.cli.main import COMMANDS
from fairbank.core.errors import FairbankError
from tests.support.command_lines import commands_in, parse_command

LOADED_FROM_ELSEWHERE = re.compile(
    r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=\"(?:https?:)?//[^>]*>"
)


def test_every_error_is_described_with_its_status_and_exit_code(checkout: Path) -> None:
    page = (checkout / "docs" / "reference" / "errors.md").read_text()
    rows = re.findall(r"^\| ([a-z ]+) \|.*\| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert sorted(rows) == sorted(
        (kind.title, str(kind.status), str(kind.exit_code)) for kind in _kinds(FairbankError)
    )


def test_every_environment_variable_is_described(checkout: Path) -> None:
    page = (checkout / "docs" / "reference" / "client.md").read_text()
    sources = [
        *(checkout / "src/fairbank/cli").rglob("*.py"),
        *(checkout / "src/fairbank/setup").glob("*.py"),
    ]
    read = {
        name
        for source in sources
        for name in re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', source.read_text())
    }
    assert len(read) > 5
    read -= {"COMP_LINE", "COMP_POINT"}  # the shell sets them for completion
    assert {name for name in read if name not in page} == set()


def test_every_source_path_in_the_documentation_exists(checkout: Path) -> None:
    """A path may leave out its first folders, and may name a file of a Slurm host as absolute."""
    files = [
        path.as_posix()
        for folder in ("benchmarks", "packaging", "plugins", "src", "tests", "tools")
        for path in (checkout / folder).rglob("*")
    ]
    pages = [
        checkout / "ARCHITECTURE.md",
        checkout / "README.md",
        *(checkout / "docs").rglob("*.md"),
    ]
    cited = [
        (page.relative_to(checkout).as_posix(), path)
        for page in pages
        for path in re.findall(r"`(\w[\w./-]*\.(?:py|lua|c|sql))`", page.read_text())
    ]
    assert len(cited) > 50
    assert [
        (page, path) for page, path in cited if not any(name.endswith(f"/{path}") for name in files)
    ] == []


def test_every_command_has_a_manual_page(checkout: Path) -> None:
    folder = checkout / "packaging" / "data" / "share" / "man"
    names = {
        "fairbank.1",
        "fairbank-reasons.7",
        "sproject.1",
        *(f"fairbank-{entry.name}.1" for entry in COMMANDS),
    }
    pages = {page.name: page for page in folder.glob("*/*")}
    assert pages.keys() == names
    for name, page in pages.items():
        assert page.parent.name == f"man{name[-1]}"
        assert not [line for line in page.read_text().splitlines() if line.startswith("'")]
    if shutil.which("groff"):
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z", *map(str, pages.values())],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_manual_pages_are_part_of_the_package(checkout: Path) -> None:
    settings = tomllib.loads((checkout / "pyproject.toml").read_text())
    assert settings["tool"]["uv"]["build-backend"]["data"] == {"data": "packaging/data"}


def test_every_decision_is_listed(checkout: Path) -> None:
    folder = checkout / "docs" / "decisions"
    index = (folder / "index.md").read_text()
    assert [page.name for page in folder.glob("[0-9]*.md") if f"({page.name})" not in index] == []


def test_glossary_is_sorted(checkout: Path) -> None:
    words = re.findall(
        r"^\*\*([^*]+)\*\*", (checkout / "docs" / "glossary.md").read_text(), re.MULTILINE
    )
    assert words == sorted(words, key=str.lower)


PLACES = re.compile(r"`((?:[a-z_]+/)+(?:[a-z_]+\.[a-z]+)?)`")
"""Paths on developer pages, relative to the checkout or to the package."""


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/glossary.md"])
def test_files_named_on_pages_exist(checkout: Path, page: str) -> None:
    written = (checkout / page).read_text()
    missing = [
        place
        for place in PLACES.findall(written)
        if not any((top / place).exists() for top in (checkout, checkout / "src/fairbank"))
    ]
    assert missing == []


def test_architecture_page_lists_every_package(checkout: Path) -> None:
    """The plan at the top of ARCHITECTURE.md has one line per package."""
    _, _, plan = (checkout / "ARCHITECTURE.md").read_text().partition("src/fairbank/\n")
    packages = re.findall(r"^  ([a-z_]+)/ ", plan.partition("```")[0], re.MULTILINE)
    assert sorted(packages) == sorted(
        path.name
        for path in (checkout / "src/fairbank").iterdir()
        if (path / "__init__.py").exists()
    )


@pytest.mark.slow
def test_pages_build_and_load_nothing_from_other_servers(checkout: Path, tmp_path: Path) -> None:
    built = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(tmp_path),
        ],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 5
    assert [
        (page.name, link)
        for page in pages
        for link in LOADED_FROM_ELSEWHERE.findall(page.read_text())
    ] == []
    assert [
        page.name for page in pages if 'class="mermaid"' in page.read_text()
    ] == []  # the theme would load mermaid from a server


def _kinds(kind: type[FairbankError]) -> Iterator[type[FairbankError]]:
    for special in kind.__subclasses__():
        if (
            special.__module__ == kind.__module__
        ):  # subclasses in other modules are no new kind of error
            yield special
            yield from _kinds(special)


RULE_CITATION = re.compile(r'slurm-rules\.md,\s+(?:#\s*)?("[^"]+"(?:(?:,| and)\s+"[^"]+")*)')


def test_cited_rule_of_slurm_has_a_section(checkout: Path) -> None:
    page = (checkout / "docs/reference/slurm-rules.md").read_text()
    titles = set(re.findall(r"^## (.+)$", page, re.MULTILINE))
    cited = {
        " ".join(title.split())
        for top in ("src", "tests", "benchmarks")
        for source in (checkout / top).rglob("*.py")
        for citation in RULE_CITATION.findall(source.read_text())
        for title in re.findall(r'"([^"]+)"', citation)
    }
    assert len(cited) > 10
    assert cited - titles == set()


@pytest.fixture(scope="module")
def specifications(checkout: Path) -> str:
    return (checkout / "docs/reference/specifications.md").read_text()


def test_each_row_of_the_specifications_names_existing_tests_or_is_missing(
    checkout: Path, specifications: str
) -> None:
    rows = [line for line in specifications.splitlines() if line.startswith("| ")]
    without_test = [row for row in rows if "`tests/" not in row and "**missing**" not in row]
    heads = [row for row in rows if row.startswith(("| requirement ", "| --- "))]
    assert (len(heads), without_test) == (6, heads)
    cited = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", specifications)
    assert specifications.count("`tests/") == len(cited) > 80
    defined = {
        path: {
            node.name
            for node in ast.parse((checkout / path).read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        for path in {path for path, _ in cited}
    }
    assert [(path, name) for path, name in cited if name not in defined[path]] == []


def test_commands_of_the_specifications_are_valid(specifications: str) -> None:
    commands = commands_in(specifications)
    assert len(commands) > 30
    for command in commands:
        parse_command(*shlex.split(command))
