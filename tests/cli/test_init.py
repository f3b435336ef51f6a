"""`fairbank init` for real: in folders of any name, and where there can be none."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.compose import Works
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
