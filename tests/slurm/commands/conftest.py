"""Fixtures of the tests of commands that talk to Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairbank.core.time import DAY, iso
from tests.slurm.commands.site import MY_UID, CommandSite, command_site
from tests.slurm.prices import PRICES


@pytest.fixture
def bare_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandSite]:
    """Return a bank without prices and without projects."""
    with command_site(tmp_path, monkeypatch, capsys, "") as started:
        yield started


@pytest.fixture
def priced_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandSite]:
    """Return a bank with prices and nothing else."""
    with command_site(tmp_path, monkeypatch, capsys, PRICES) as started:
        yield started


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[CommandSite]:
    """Return a bank with prices and projects; the current user is a member of one, with 10 SU (600
    SU-minutes).
    """
    with command_site(tmp_path, monkeypatch, capsys, PRICES) as started:
        client = started.client
        chem = client.post("/project", {"gname": "chem", "gid": 50_001})["data"]["id"]
        client.post("/project", {"gname": "bio", "gid": 50_002, "parent": chem})
        client.put(f"/project/{chem}/member/{MY_UID}", {"role": "coordinator"})
        start, end = (iso(started.now + days * DAY) for days in (-30, 30))
        terms = {
            "resource": "cpu",
            "category": "research",
            "start": start,
            "end": end,
            "amount": 600,
            "comment": "a test",
        }
        client.post("/alloc", {"project": chem, **terms})
        yield started
