"""Policies in files: the names that are allowed, and that each policy of a run has a unique
name.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.core.errors import InvalidInput, NotFound
from fairbank.service.simulation.simulation_files import policies_of, read_policy


def test_policy_is_named_after_its_file_and_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my own.toml"
    path.write_text('base = "easy"')
    assert read_policy(path).name == "my own"
    path.write_text('base = "ezzy"')
    with pytest.raises(InvalidInput, match="my own.toml: base is ") as error:
        read_policy(path)
    assert error.value.field == "base"


def test_policy_file_must_exist_and_have_a_short_name(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="none.toml"):
        read_policy(tmp_path / "none.toml")
    long = tmp_path / f"{'x' * 25}.toml"
    long.write_text('base = "easy"')
    with pytest.raises(InvalidInput, match="not a name"):
        read_policy(long)


def test_two_policies_with_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "easy.toml").write_text('base = "fcfs"')
    with pytest.raises(InvalidInput, match="two policies are called 'easy'"):
        policies_of(["easy", str(tmp_path / "easy.toml")])
