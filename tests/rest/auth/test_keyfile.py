"""The key file: created once, private, and refused when it is damaged or others can access it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairbank.core.errors import Corrupt, Forbidden, NotFound
from fairbank.rest.auth.keyfile import read_secret
from tests.support.account import Account


def test_key_is_created_once_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(NotFound, match="secret is missing"):
        read_secret(path)
    key = read_secret(path, create=True)
    assert len(key) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secret(path) == read_secret(path, create=True) == key
    assert list(tmp_path.iterdir()) == [path], "nothing is left beside it"


def test_concurrent_creation_gives_the_same_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert (
            len(set(threads.map(lambda _: read_secret(tmp_path / "key", create=True), range(16))))
            == 1
        )
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o666])
def test_key_that_others_can_access_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    read_secret(path, create=True)
    path.chmod(mode)
    with pytest.raises(Forbidden, match="others can read or change") as raised:
        read_secret(path, create=True)
    assert f"chmod 600 {path}" in (raised.value.remedy or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_key_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    read_secret(path, create=True)
    Account.number(54_321).give(path)
    with pytest.raises(Forbidden):
        read_secret(path)


def test_key_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    read_secret(tmp_path / "key", create=True)
    (tmp_path / "link").symlink_to(tmp_path / "key")
    (tmp_path / "folder").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "folder", "pipe"):
        with pytest.raises(Forbidden):
            read_secret(tmp_path / name)
    with pytest.raises(NotFound):
        read_secret(tmp_path / "nowhere" / "key", create=True)


@pytest.mark.parametrize(
    "text", ["", "secret\n", "0" * 63, "0" * 65, "0" * 64 + "\n\n", "G" * 64, "é" * 32]
)
def test_damaged_key_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(Corrupt, match="does not contain a key"):
        read_secret(path, create=True)
    assert path.read_text() == text, "and never overwritten"
