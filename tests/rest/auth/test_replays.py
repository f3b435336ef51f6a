"""Replayed credentials: refused on every server."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fairbank.rest.auth.credentials import new_nonce, sign, statement
from tests.rest.auth.munge_server import ASKED, MungeServer, munge_of
from tests.support.account import Account
from tests.support.munge import Munged, MungeTools

OTHER_UID = Account.number(54_321)


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
def servers(munged_pair: tuple[Munged, Munged], checkout: Path) -> Iterator[list[MungeServer]]:
    folder = Account.ourselves().own_folder("fb-cr-")
    servers: list[MungeServer] = []
    try:
        for number, munged in enumerate(munged_pair):
            (folder / str(number)).mkdir()
            servers.append(MungeServer(folder / str(number), munged, folder / "nonces", checkout))
        yield servers
    finally:
        for server in servers:
            server.close()
        shutil.rmtree(folder)


@pytest.mark.slow
def test_credential_is_accepted_by_either_server(
    munged: Munged, servers: list[MungeServer]
) -> None:
    for server in servers:
        assert server.ask(sign(munge_of(munged), ASKED)) == (200, str(os.geteuid()))
        credential = munged.encode(statement(ASKED, new_nonce()), account=OTHER_UID)
        assert server.ask(f"munge {credential}") == (200, str(OTHER_UID.uid))
        assert server.ask(sign(munge_of(munged, only_uid=os.geteuid()), ASKED)) == (
            200,
            str(os.geteuid()),
        )
        for_a_neighbour = sign(munge_of(munged, only_uid=os.geteuid() + 1), ASKED)
        assert server.ask(for_a_neighbour) == (401, "the credential is for another user to read")


@pytest.mark.slow
def test_credential_is_refused_for_another_request(
    munged: Munged, servers: list[MungeServer]
) -> None:
    munge = munge_of(munged)
    for server in servers:
        refused = [
            server.ask(sign(munge, ASKED), body=b'{"amount": 6000}'),
            server.ask(sign(munge, ASKED), body=b""),
            server.ask(sign(munge, ASKED), method="DELETE"),
            server.ask(sign(munge, ASKED), target="/deposit?page=2"),
            server.ask(sign(munge, ASKED), target="/job?page=2&user=root"),
            server.ask(sign(munge, ASKED), target="/job"),
            server.ask(sign(munge, ASKED), target="/job%3Fpage=2"),
            server.ask(sign(munge, ASKED._replace(audience="other.example.org"))),
        ]
        assert [status for status, _ in refused] == [401] * len(refused), refused
        assert all("is for another request" in detail for _, detail in refused), refused


@pytest.mark.slow
def test_replay_is_refused_on_all_servers(
    munged_pair: tuple[Munged, Munged], servers: list[MungeServer]
) -> None:
    first, second = servers
    credentials = [sign(munge_of(munged_pair[0]), ASKED) for _ in range(3)]
    for credential in credentials:
        assert first.ask(credential)[0] == 200
    used = (401, "this credential was used before")
    assert first.ask(credentials[0]) == used, "found by munged"
    assert second.ask(credentials[0]) == used, (
        "unknown to the other munged, found in the shared table"
    )
    for munged in munged_pair:
        munged.restart()
    assert [server.ask(credentials[1]) for server in servers] == [used, used], (
        "both munged have forgotten"
    )
    for munged in munged_pair:
        munged.kill()
        munged.start()
    assert [server.ask(credentials[2]) for server in reversed(servers)] == [used, used]
    assert second.ask(sign(munge_of(munged_pair[0]), ASKED))[0] == 200


@pytest.mark.slow
def test_concurrent_replay_is_accepted_once(munged: Munged, servers: list[MungeServer]) -> None:
    with ThreadPoolExecutor(2) as threads:
        for _ in range(10):
            authorization = sign(munge_of(munged), ASKED)
            answers = [
                status for status, _ in threads.map(MungeServer.ask, servers, [authorization] * 2)
            ]
            assert sorted(answers) == [200, 401]
