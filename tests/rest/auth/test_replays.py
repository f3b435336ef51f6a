"""Replayed credentials: refused on every server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairbank.rest.auth.credentials import new_nonce, sign, statement
from tests.rest.auth.munge_server import ASKED, Branch, speak
from tests.support.account import Account
from tests.support.munge import Munged, MungeTools

SOMEBODY = Account.number(54_321)


@pytest.fixture
def munged_pair(munge_tools: MungeTools, munged: Munged) -> Iterator[tuple[Munged, Munged]]:
    """Provide two daemons of one realm."""
    second = Munged(munge_tools, key=munged.key)
    try:
        second.start()
        yield munged, second
    finally:
        second.close()


@pytest.fixture
def branches(munged_pair: tuple[Munged, Munged], checkout: Path) -> Iterator[list[Branch]]:
    folder = Account.ourselves().own_folder("fb-cr-")
    opened: list[Branch] = []
    try:
        for number, munged in enumerate(munged_pair):
            (folder / str(number)).mkdir()
            opened.append(Branch(folder / str(number), munged, folder / "nonces", checkout))
        yield opened
    finally:
        for branch in opened:
            branch.close()
        shutil.rmtree(folder)


@pytest.mark.slow
def test_credential_is_accepted_by_either_server(munged: Munged, branches: list[Branch]) -> None:
    for branch in branches:
        assert branch.ask(sign(speak(munged), ASKED)) == (200, str(os.geteuid()))
        somebody = munged.encode(statement(ASKED, new_nonce()), account=SOMEBODY)
        assert branch.ask(f"munge {somebody}") == (200, str(SOMEBODY.uid))
        assert branch.ask(sign(speak(munged, only_uid=os.geteuid()), ASKED)) == (
            200,
            str(os.geteuid()),
        )
        for_a_neighbour = sign(speak(munged, only_uid=os.geteuid() + 1), ASKED)
        assert branch.ask(for_a_neighbour) == (401, "the credential is for another user to read")


@pytest.mark.slow
def test_credential_is_refused_for_another_request(munged: Munged, branches: list[Branch]) -> None:
    munge = speak(munged)
    for branch in branches:
        refused = [
            branch.ask(sign(munge, ASKED), body=b'{"amount": 6000}'),
            branch.ask(sign(munge, ASKED), body=b""),
            branch.ask(sign(munge, ASKED), method="DELETE"),
            branch.ask(sign(munge, ASKED), target="/deposit?page=2"),
            branch.ask(sign(munge, ASKED), target="/job?page=2&user=root"),
            branch.ask(sign(munge, ASKED), target="/job"),
            branch.ask(sign(munge, ASKED), target="/job%3Fpage=2"),
            branch.ask(sign(munge, ASKED._replace(audience="other.example.org"))),
        ]
        assert [status for status, _ in refused] == [401] * len(refused), refused
        assert all("is for another request" in told for _, told in refused), refused


@pytest.mark.slow
def test_replay_is_refused_on_all_servers(
    munged_pair: tuple[Munged, Munged], branches: list[Branch]
) -> None:
    here, there = branches
    seen = [sign(speak(munged_pair[0]), ASKED) for _ in range(3)]
    for answer in seen:
        assert here.ask(answer)[0] == 200
    used = (401, "this credential was used before")
    assert here.ask(seen[0]) == used, "munged's own memory says so"
    assert there.ask(seen[0]) == used, (
        "the other munged has never seen it: the shared table says so"
    )
    for munged in munged_pair:
        munged.restart()
    assert [branch.ask(seen[1]) for branch in branches] == [used, used], (
        "both munged have forgotten"
    )
    for munged in munged_pair:
        munged.kill()
        munged.start()
    assert [branch.ask(seen[2]) for branch in reversed(branches)] == [used, used]
    assert there.ask(sign(speak(munged_pair[0]), ASKED))[0] == 200


@pytest.mark.slow
def test_concurrent_replay_is_accepted_once(munged: Munged, branches: list[Branch]) -> None:
    with ThreadPoolExecutor(2) as threads:
        for _ in range(10):
            authorization = sign(speak(munged), ASKED)
            answers = [
                status for status, _ in threads.map(Branch.ask, branches, [authorization] * 2)
            ]
            assert sorted(answers) == [200, 401]
