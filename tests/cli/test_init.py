"""`fairbank init` for real: in folders of any name, and where there can be none."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config

from fairbank.compose import Works
from fairbank.store import migrating
from fairbank.store.schema import REVISIONS
from fairbank.store.sqlite import create_file, writing_engine
from tests.cli.conftest import Run


@pytest.mark.parametrize("name", ["plain", "a b", "que?ry", "per%41cent", 'quo"te', "back\\slash", "new\nline", "umläut", "#hash"])
def test_a_bank_is_made_and_opened_in_a_folder_of_any_name(fairbank: Run, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    assert fairbank("init", folder, house=Works()).code == 0
    assert {each.name for each in folder.iterdir()} == {"fairbank.toml", "secret", "books.sqlite"}
    assert fairbank("audit", "verify", "--config", folder / "fairbank.toml", house=Works()).out.startswith("read 0 entries of ")
    again = fairbank("init", folder, house=Works())
    assert (again.code, "field: FOLDER" in again.err) == (7, True)


def test_a_folder_that_cannot_be_made_is_told(fairbank: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = fairbank("init", tmp_path / "file" / "bank", house=Works())
    assert (said.code, "field: FOLDER" in said.err) == (4, True)


def test_the_command_to_start_it_can_be_typed(fairbank: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "serve --config 'my bank/fairbank.toml'" in " ".join(fairbank("init", "my bank", house=Works()).err.split())


def of_schema(books: Path, revision: str) -> None:
    """New books as the Fairbank of that revision made them."""
    books.unlink()
    create_file(books)
    engine = writing_engine(books, "wal")
    alembic = Config()
    alembic.set_main_option("script_location", str(Path(migrating.__file__).parent / "migrations"))
    alembic.set_main_option("path_separator", "os")
    with engine.connect() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        alembic.attributes["connection"] = connection
        command.upgrade(alembic, revision)
        connection.commit()
    engine.dispose()


def test_books_of_an_older_fairbank_are_told_the_command_that_migrates_them(fairbank: Run, tmp_path: Path) -> None:
    folder = tmp_path / "the bank"
    assert fairbank("init", folder, house=Works()).code == 0
    of_schema(folder / "books.sqlite", "0006")
    config = folder / "fairbank.toml"
    for words in (["audit", "verify"], ["audit", "heads"], ["backup", "create", tmp_path / "x"]):
        said = fairbank(*words, "--config", config, house=Works())
        assert (said.code, f"this Fairbank needs {REVISIONS[-1]}" in said.err) == (7, True)
        assert f"make a backup with the Fairbank that ran them, then: fairbank init '{folder}'" in " ".join(said.err.split())
    assert "fairbank init FOLDER, that of fairbank.toml" in fairbank("doctor", "--config", config, house=Works()).out
    assert fairbank("init", folder, house=Works()).out == f"migrated sqlite:///{tmp_path}/the%20bank/books.sqlite\n"
    assert fairbank("audit", "verify", "--config", config, house=Works()).code == 0


def test_the_help_tells_how_older_books_are_migrated(fairbank: Run) -> None:
    page = " ".join(fairbank("init", "--help").out.split())
    assert "migrate the books of an older Fairbank" in page
    assert "stop the servers and make a backup first" in page


def test_a_database_that_is_none_is_the_options_fault(fairbank: Run, tmp_path: Path) -> None:
    said = fairbank("init", tmp_path / "bank", "--store", "mysql://x", house=Works())
    assert (said.code, "  field: --store\n" in said.err) == (2, True)


def test_what_cannot_be_read_is_told_in_words(fairbank: Run, tmp_path: Path) -> None:
    assert fairbank("init", tmp_path, house=Works()).code == 0
    config = ("--config", tmp_path / "fairbank.toml")
    for words in (["backup", "verify", "nofile"], ["audit", "verify", *config, "--heads", "nofile"]):
        said = fairbank(*words, house=Works())
        assert (said.code, said.err.splitlines()[0]) == (3, "fairbank: cannot read nofile: No such file or directory")
        assert "  try: name a file " in said.err
