"""MUNGE from end to end: a real munged, real servers on TCP, one database."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairbank.rest.auth.credentials import BoundRequest, sign
from fairbank.rest.auth.munge import Munge
from fairbank.store.migration import migrate
from tests.rest.served import Served, served
from tests.support.account import Account
from tests.support.munge import Munged, MungeTools
from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Account.ourselves().own_folder("fb-mg-")
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """Provide a database for two servers."""
    if request.param == "sqlite":
        sqlite_url = f"sqlite:///{folder}/fairbank.sqlite"
        migrate(sqlite_url)
        yield sqlite_url
        return
    server: PostgresServer = request.getfixturevalue("postgres18")
    with server.fresh_database() as name:
        migrate(server.url(name))
        yield server.url(name)


def munge_settings(munged: Munged) -> dict[str, str]:
    return {"socket": str(munged.socket), "library": str(munged.libmunge)}


def signed(
    munged: Munged, method: str, target: str, body: bytes = b"", *, name: str = "fairbank"
) -> dict[str, str]:
    """Return the headers of a signed request."""
    munge = Munge(socket=str(munged.socket), library=str(munged.libmunge))
    return {
        "Authorization": sign(munge, BoundRequest.of(method, target, body, name)),
        "Content-Type": "application/json",
    }


def whoami(server: Served, headers: dict[str, str]) -> httpx.Response:
    return server.tcp.get("/whoami", headers=headers)


def test_signer_is_the_authenticated_user(munged: Munged, folder: Path) -> None:
    with served(folder, munge=munge_settings(munged)) as server:
        answer = whoami(server, signed(munged, "GET", "/whoami"))
        assert (answer.status_code, answer.json()["data"]["uid"]) == (200, os.getuid())


def test_documented_client_signs_its_requests(munged: Munged, folder: Path, checkout: Path) -> None:
    page = (checkout / "docs/reference/authentication.md").read_text()
    script = page.partition("```sh\n")[2].partition("```")[0]
    munge = folder / "munge"
    munge.write_text(
        f'#!/bin/sh\nexec {munged.tools.usr}/bin/munge --socket={munged.socket} "$@"\n'
    )
    munge.chmod(0o755)
    with served(folder, munge=munge_settings(munged)) as server:
        client = script.replace("http://localhost:6820", str(server.tcp.base_url).rstrip("/"))
        for call, answer in (
            (["GET", "/whoami"], f'"uid":{os.getuid()}'),
            (
                ["POST", "/project?dry-run=true", '{"gname": "chem", "gid": 100}'],
                '"kind":"project"',
            ),
        ):
            done = subprocess.run(
                ["sh", "-c", client, "sh", *call],
                env={**munged.environment, "PATH": f"{folder}:{os.defpath}"},
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert answer in done.stdout, done.stdout


def test_head_request_is_signed_as_head(munged: Munged, folder: Path) -> None:
    with served(folder, munge=munge_settings(munged)) as server:
        assert (
            server.tcp.head("/whoami", headers=signed(munged, "GET", "/whoami")).status_code == 401
        )
        assert (
            server.tcp.head("/whoami", headers=signed(munged, "HEAD", "/whoami")).status_code == 200
        )


def test_credential_covers_the_body(munged: Munged, folder: Path) -> None:
    body = json.dumps({"gname": "chem", "gid": 100}).encode()
    with served(folder, munge=munge_settings(munged)) as server:
        headers = signed(munged, "POST", "/project", body)
        assert (
            server.tcp.post(
                "/project", content=body.replace(b"100", b"101"), headers=headers
            ).status_code
            == 401
        )
        assert (
            server.tcp.post(
                "/project", content=body, headers=signed(munged, "POST", "/project", body)
            ).status_code
            == 201
        )


@pytest.mark.parametrize(
    ("header", "differs"),
    [("X-Fairbank-As", "user acted as"), ("Idempotency-Key", "idempotency key")],
)
def test_credential_covers_headers_that_change_the_request(
    munged: Munged, folder: Path, header: str, differs: str
) -> None:
    with served(folder, munge=munge_settings(munged)) as server:
        answer = whoami(server, {**signed(munged, "GET", "/whoami"), header: "1000"})
        assert _status_and_detail(answer) == (
            401,
            f"the credential is for another request: the {differs} differs",
        )


@pytest.mark.parametrize(
    ("method", "target", "name", "differs"),
    [
        ("GET", "/alloc", "fairbank", "path or query"),
        ("GET", "/whoami?x=1", "fairbank", "path or query"),
        ("POST", "/whoami", "fairbank", "method"),
        ("GET", "/whoami", "another", "server name"),
    ],
)
def test_credential_for_another_request_is_refused(
    munged: Munged, folder: Path, method: str, target: str, name: str, differs: str
) -> None:
    with served(folder, munge=munge_settings(munged)) as server:
        answer = whoami(server, signed(munged, method, target, name=name))
        assert (answer.status_code, answer.json()["detail"]) == (
            401,
            f"the credential is for another request: the {differs} differs",
        )


def test_credential_is_valid_once_on_all_servers(
    munged: Munged, munge_tools: MungeTools, folder: Path, url: str
) -> None:
    """Each server has its own munged of one realm. It remembers credentials until it restarts."""
    other = Munged(munge_tools, key=munged.key)
    try:
        other.start()
        with (
            served(folder, store=url, munge=munge_settings(munged)) as first,
            _second_server(folder, url, other) as second,
        ):
            headers = signed(munged, "GET", "/whoami")
            assert whoami(first, headers).status_code == 200
            used = "this credential was used before"
            assert _status_and_detail(whoami(first, headers)) == (401, used)
            assert _status_and_detail(whoami(second, headers)) == (401, used)
            munged.restart()
            assert _status_and_detail(whoami(first, headers)) == (401, used)
            assert whoami(second, signed(other, "GET", "/whoami")).status_code == 200
    finally:
        other.close()


def _second_server(folder: Path, url: str, munged: Munged) -> Any:
    """Start a second server with the same name and another socket."""
    place = folder / "second"
    place.mkdir(exist_ok=True)
    return served(place, store=url, munge=munge_settings(munged))


def _status_and_detail(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["detail"]


def test_request_is_refused_while_munged_is_down(munged: Munged, folder: Path) -> None:
    with served(folder, munge=munge_settings(munged)) as server:
        headers = signed(munged, "GET", "/whoami")
        munged.stop()
        answer = whoami(server, headers)
        assert (answer.status_code, answer.json()["title"]) == (503, "unavailable")
        assert "retry-after" in answer.headers
