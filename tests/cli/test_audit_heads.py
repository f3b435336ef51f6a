"""Tests of audit with the last entries of journals that were saved earlier."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.bank.audit import Head
from fairbank.cli.commands.admin.audit import read_heads
from fairbank.core.errors import InvalidInput


def test_heads_are_read_per_chain(tmp_path: Path) -> None:
    file = tmp_path / "monday.heads"
    file.write_text(f'[0, 7, "{"ab" * 32}"]\n')
    assert read_heads(str(file)) == {0: Head(0, 7, bytes.fromhex("ab" * 32))}


def test_empty_heads_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "monday.heads"
    file.write_text("")
    with pytest.raises(InvalidInput, match="nothing could be compared") as error:
        read_heads(str(file))
    assert error.value.field == "--heads"
