"""Files that are there whole, or as they were."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Thread

import pytest

from fairbank.service.whole_file import whole_file


def write(path: Path, text: str) -> None:
    with whole_file(path) as aside:
        aside.write_text(text)


def test_what_is_written_stands_there_and_nothing_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "new", "one")
    write(tmp_path / "new", "two")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"new": "two"}


@pytest.mark.parametrize("how", [OSError, KeyboardInterrupt])
def test_when_it_fails_the_old_file_is_as_it_was(tmp_path: Path, how: type[BaseException]) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(how), whole_file(tmp_path / "old") as aside:
        aside.write_text("half")
        raise how
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"old": "old"}


def test_a_link_goes_on_pointing_there_and_rights_stay(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    write(tmp_path / "pipe", "through")
    reader.join()
    assert read == ["through"]


def test_without_a_folder_it_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "none" / "file", "text")
