"""Servers run as an unprivileged user, who must be able to read the programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.account import Account

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def test_unprivileged_user_is_never_root() -> None:
    assert Account.nobody().uid != 0
    assert Account.number(12_345).uid != 0


def test_private_directory_has_a_path_short_enough_for_a_socket() -> None:
    folder = Account.nobody().own_folder("fb-test-")
    try:
        assert folder.stat().st_uid == Account.nobody().uid
        assert len(str(folder / ".s.PGSQL.5432.lock")) < 108
    finally:
        folder.rmdir()


@as_root
def test_programs_in_a_private_checkout_are_copied(tmp_path: Path) -> None:
    """The unprivileged user cannot enter a checkout in /root."""
    programs, spare = tmp_path / "private" / "programs", tmp_path / "spare"
    (programs / "bin").mkdir(parents=True)
    (programs / "bin" / "postgres").touch()
    (tmp_path / "private").chmod(0o700)
    copy = Account.nobody().within_reach(programs, spare)
    assert copy == spare / "programs"
    assert (copy / "bin" / "postgres").exists()


def test_readable_programs_are_not_copied(tmp_path: Path) -> None:
    assert Account.nobody().within_reach(Path("/usr/bin"), tmp_path) == Path("/usr/bin")
    assert Account.ourselves().within_reach(tmp_path, tmp_path / "spare") == tmp_path
