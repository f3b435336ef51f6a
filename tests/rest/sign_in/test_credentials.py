"""A credential is good for one request, once, on whichever server; a token for what it says, until it expires.

Run as a program (`python -m tests.rest.sign_in.test_credentials`), this file is one server of a bank: see `serve`.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import shutil
import socket
import sqlite3
import string
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.server import Server

from fairbank.rest.server.protocol import serving
from fairbank.rest.server.unix_socket import bind_unix
from fairbank.rest.sign_in import credentials
from fairbank.rest.sign_in.authorization import BEARER, authorization, read_munge, read_token, scheme_of
from fairbank.rest.sign_in.credentials import Asked, MungeDoor, check, new_nonce, sign, statement
from fairbank.rest.sign_in.keyfile import read_secret
from fairbank.rest.sign_in.munge import CREDENTIAL_MAX, Decoded, Munge
from fairbank.service.tokens import new_secret
from fairbank.values.time import Clock, Instant, StoppedClock
from fairbank.values.trouble import Corrupt, Forbidden, Malformed, Trouble, Unauthenticated, Unknown
from tests.support.account import Account
from tests.support.keeper import Kept, Order
from tests.support.munge import Munged, MungeTools
from tests.support.nonces import MemoryNonces
from tests.support.waiting import wait_until

BANK = "bank.example.org"
ASKED = Asked.of("POST", "/job?page=2", b'{"amount": 60}', BANK)
NONCE = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
NOW = Instant(1_795_000_000)
SOMEBODY = Account.number(54_321)


class SystemClock:
    def now(self) -> Instant:
        return Instant(int(time.time()))


class SqliteNonces:
    """A nonce table that two servers share and that outlives both: what the store does, in four lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        with closing(sqlite3.connect(path, timeout=30)) as db:
            db.execute("CREATE TABLE IF NOT EXISTS spent (uid INTEGER, nonce TEXT, expires_at INTEGER, PRIMARY KEY (uid, nonce))")

    def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
        with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as db:
            return db.execute("INSERT OR IGNORE INTO spent VALUES (?, ?, ?)", (uid, nonce, expires_at)).rowcount == 1


def speak(munged: Munged, *, only_uid: int | None = None) -> Munge:
    return Munge(socket=str(munged.socket), library=str(munged.libmunge), only_uid=only_uid)


# The statement.

parts = st.tuples(
    st.sampled_from(["GET", "POST", "PUT", "POSTS"]) | st.text(max_size=3),
    st.sampled_from(["/", "/job", "/job?", "/job?a=1", "/job\nPOST", "/é"]) | st.text(max_size=12),
    st.binary(max_size=2),
    st.sampled_from([BANK, BANK + "x", "", "two words"]) | st.text(max_size=3),
    st.sampled_from([NONCE, "1" * 32, NONCE + "\n", NONCE.upper(), ""]),
)


@given(parts, parts)
def test_no_two_requests_have_one_statement(one: tuple[str, str, bytes, str, str], other: tuple[str, str, bytes, str, str]) -> None:
    sealed = []
    for method, target, body, audience, nonce in (one, other):
        try:
            sealed.append(statement(Asked.of(method, target, body, audience), nonce))
        except Malformed as bad:
            assert bad.field, "it says which part cannot be signed"
            return
    assert (sealed[0] == sealed[1]) == (one == other)


printable = st.text(string.ascii_letters + string.digits + string.punctuation, max_size=8)
signable = st.tuples(
    st.text(string.ascii_uppercase, min_size=1, max_size=2),
    printable.map(lambda rest: "/" + rest),
    st.binary(max_size=2),
    st.text("ab.:[]", min_size=1, max_size=2),
    st.text("0123456789abcdef", min_size=32, max_size=32),
)


@given(signable, signable)
def test_whatever_can_be_signed_has_its_own_statement(
    one: tuple[str, str, bytes, str, str], other: tuple[str, str, bytes, str, str]
) -> None:
    first, second = (statement(Asked.of(*request[:4]), request[4]) for request in (one, other))
    assert (first == second) == (one == other)


def test_the_statement_is_what_the_manual_says() -> None:
    assert statement(Asked.of("POST", "/job?page=2", b"", BANK), NONCE) == (
        b"fairbank request 1\nPOST\n/job?page=2\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
        b"bank.example.org\n\n\n0f1e2d3c4b5a69788796a5b4c3d2e1f0"
    )
    assert statement(Asked.of("POST", "/job", b"", BANK, acting_as="ayla", key="k-7"), NONCE).endswith(b"\nayla\nk-7\n" + NONCE.encode())


@pytest.mark.parametrize(
    ("part", "asked", "nonce"),
    [
        ("method", ASKED._replace(method="post"), NONCE),
        ("path or query", ASKED._replace(target="job"), NONCE),
        ("path or query", ASKED._replace(target="/" + "x" * 8_192), NONCE),
        ("path or query", ASKED._replace(target="/projekt/köln"), NONCE),
        ("path or query", ASKED._replace(target="/job\n" + ASKED.body_sha256), NONCE),
        ("body hash", ASKED._replace(body_sha256="0"), NONCE),
        ("server name", ASKED._replace(audience="the bank"), NONCE),
        ("server name", ASKED._replace(audience="bank\n"), NONCE),
        ("nonce", ASKED, "1"),
    ],
)
def test_what_cannot_be_signed_is_named(part: str, asked: Asked, nonce: str) -> None:
    with pytest.raises(Malformed) as bad:
        statement(asked, nonce)
    assert bad.value.field == part


def test_the_target_is_what_was_sent() -> None:
    assert credentials.target_of(b"/job/a%20b", b"") == "/job/a%20b"
    assert credentials.target_of(b"/job", b"page=2&x=%C3%A9") == "/job?page=2&x=%C3%A9"


def test_the_longest_request_still_fits_into_a_credential(munged: Munged) -> None:
    longest = Asked.of("X" * 16, "/" + "x" * 8_191, b"", "b" * 255)
    assert len(speak(munged).encode(statement(longest, NONCE))) <= CREDENTIAL_MAX


# The check.


def sealed(asked: Asked = ASKED, *, at: int = NOW, payload: bytes | None = None) -> Decoded:
    return Decoded(statement(asked, NONCE) if payload is None else payload, 1000, 1000, Instant(at), 300)


def test_the_right_request_gives_its_nonce() -> None:
    assert check(sealed(), ASKED, NOW) == NONCE


@pytest.mark.parametrize(
    ("differs", "asked"),
    [
        ("method", ASKED._replace(method="PUT")),
        ("path or query", ASKED._replace(target="/job/1")),
        ("path or query", ASKED._replace(target="/job")),
        ("path or query", ASKED._replace(target="/job?page=20")),
        ("body hash", Asked.of("POST", "/job?page=2", b'{"amount": 61}', BANK)),
        ("server name", ASKED._replace(audience="other.example.org")),
        ("user acted as", ASKED._replace(acting_as="root")),
        ("idempotency key", ASKED._replace(key="another")),
    ],
)
def test_another_request_is_refused_and_told_what_differs(differs: str, asked: Asked) -> None:
    with pytest.raises(Unauthenticated, match=f"the {differs} differs"):
        check(sealed(asked), ASKED, NOW)


@pytest.mark.parametrize(
    "payload", [b"x", b"\n" * 5, b"fairbank request 2" + statement(ASKED, NONCE)[18:], statement(ASKED, NONCE) + b"\n"]
)
def test_a_credential_for_another_service_is_refused(payload: bytes) -> None:
    with pytest.raises(Unauthenticated, match="not made for Fairbank"):
        check(sealed(payload=payload), ASKED, NOW)


@given(
    st.binary()
    | st.binary().map(lambda more: statement(ASKED, NONCE) + more)
    | st.binary(max_size=40).map(lambda b: b + b"\n" + NONCE.encode())
)
def test_no_other_payload_passes(payload: bytes) -> None:
    if payload == statement(ASKED, NONCE):
        return
    with pytest.raises(Unauthenticated):
        check(sealed(payload=payload), ASKED, NOW)


@pytest.mark.parametrize(
    ("age", "told"), [(300, None), (301, "has expired: it is 301 s old"), (-60, None), (-61, "clock skew"), (-(10**9), "clock skew")]
)
def test_the_edges_of_its_life(age: int, told: str | None) -> None:
    made_then = sealed(at=NOW - age)
    if told is None:
        assert check(made_then, ASKED, NOW) == NONCE
    else:
        with pytest.raises(Unauthenticated, match=told):
            check(made_then, ASKED, NOW)


def test_nonces_do_not_repeat() -> None:
    assert len({new_nonce() for _ in range(1_000)}) == 1_000


# The nonce table.


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_nonce_is_spent_once_whoever_hurries(kind: str, tmp_path: Path) -> None:
    nonces = MemoryNonces() if kind == "memory" else SqliteNonces(str(tmp_path / "nonces"))
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda _: nonces.spend(NONCE, 1000, NOW), range(40))) == 1
    assert nonces.spend(NONCE, 1001, NOW), "another user's nonces are his own"


def test_what_expired_is_forgotten() -> None:
    nonces = MemoryNonces()
    nonces.spend("early", 1000, Instant(10))
    nonces.spend("late", 1000, Instant(20))
    nonces.forget(Instant(10))
    assert nonces.spend("early", 1000, Instant(10))
    assert not nonces.spend("late", 1000, Instant(20))


# The door, with a real munged.


def door(munged: Munged, clock: Clock | None = None) -> MungeDoor:
    return MungeDoor(speak(munged), MemoryNonces(), clock or SystemClock())


def test_altered_or_cut_credentials_are_refused_and_spend_nothing(munged: Munged) -> None:
    bank, credential = door(munged), read_munge(sign(speak(munged), ASKED))
    for place in range(0, len(credential), 10):
        altered = bytearray(credential)
        altered[place] ^= 0x01
        for wrong in (bytes(altered), credential[:place]):
            with pytest.raises(Unauthenticated):
                bank.admit(wrong, ASKED)
    assert bank.admit(credential, ASKED).uid == os.geteuid()


def test_the_server_s_clock_decides(munged: Munged) -> None:
    for clock, told in ((StoppedClock(int(time.time()) + 400), "expired"), (StoppedClock(int(time.time()) - 400), "clock skew")):
        credential = read_munge(sign(speak(munged), ASKED))
        with pytest.raises(Unauthenticated, match=told):
            door(munged, clock).admit(credential, ASKED)


def test_a_nonce_is_remembered_longer_than_the_credential_is_good(munged: Munged) -> None:
    class Watched(MemoryNonces):
        kept_for = 0

        def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
            self.kept_for = expires_at - int(time.time())
            return super().spend(nonce, uid, expires_at)

    nonces = Watched()
    MungeDoor(speak(munged), nonces, SystemClock(), ttl_seconds=100, skew_seconds=10).admit(read_munge(sign(speak(munged), ASKED)), ASKED)
    assert nonces.kept_for > 100 + 10 + 60, "even for a server whose clock is a minute behind"


# Two servers of one bank, each with its own munged, and one nonce table.


def serve(socket_path: str, munge_socket: str, library: str, nonce_file: str) -> None:
    """A server that answers every signed request with the uid of who asks."""
    bank = MungeDoor(Munge(socket=munge_socket, library=library), SqliteNonces(nonce_file), SystemClock())

    def admit(scope: Any, body: bytes) -> tuple[int, str]:
        try:
            header = authorization(scope["headers"])
            if header is None:
                raise Unauthenticated("nobody signed this")
            target = credentials.target_of(scope["raw_path"], scope["query_string"])
            return 200, str(bank.admit(read_munge(header), Asked.of(scope["method"], target, body, BANK)).uid)
        except Trouble as no:
            return no.http, no.message

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if scope["type"] == "lifespan":
                await send({"type": event["type"] + ".complete"})
                if event["type"].endswith("shutdown"):
                    return
            elif not event.get("more_body"):
                break
        status, said = await asyncio.to_thread(admit, scope, body)
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", str(len(said)).encode())]})
        await send({"type": "http.response.body", "body": said.encode()})

    Server(serving(app)).run(sockets=[bind_unix(Path(socket_path))])


class Branch:
    """One server process of the bank."""

    def __init__(self, folder: Path, munged: Munged, nonce_file: Path, checkout: Path) -> None:
        self._path = str(folder / "http")
        us = Account.ourselves()
        command = [sys.executable, "-m", __name__, self._path, str(munged.socket), str(munged.libmunge), str(nonce_file)]
        environment = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "PYTHONPATH": os.pathsep.join([str(checkout), *filter(None, sys.path)])}
        self._log = folder / "log"
        self._kept = Kept(Order(command, environment, str(folder), str(self._log), us.uid, us.gid, us.groups, 15))
        wait_until(lambda: self._listens() or not self._kept.running, "the server to listen")
        assert self._kept.running, self._log.read_text()

    def ask(
        self, authorization: str, *, method: str = "POST", target: str = "/job?page=2", body: bytes = b'{"amount": 60}'
    ) -> tuple[int, str]:
        with closing(http.client.HTTPConnection("localhost")) as connection:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(self._path)
            connection.request(method, target, body, {"Authorization": authorization})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def close(self) -> None:
        self._kept.stop()

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(self._path) == 0


@pytest.fixture
def munged_pair(munge_tools: MungeTools, munged: Munged) -> Iterator[tuple[Munged, Munged]]:
    """Two hosts of one realm."""
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
def test_signing_in_at_either_server(munged: Munged, branches: list[Branch]) -> None:
    for branch in branches:
        assert branch.ask(sign(speak(munged), ASKED)) == (200, str(os.geteuid()))
        somebody = munged.encode(statement(ASKED, new_nonce()), account=SOMEBODY)
        assert branch.ask(f"munge {somebody}") == (200, str(SOMEBODY.uid))
        assert branch.ask(sign(speak(munged, only_uid=os.geteuid()), ASKED)) == (200, str(os.geteuid()))
        for_a_neighbour = sign(speak(munged, only_uid=os.geteuid() + 1), ASKED)
        assert branch.ask(for_a_neighbour) == (401, "the credential is for another user to read")


@pytest.mark.slow
def test_a_credential_opens_no_other_request(munged: Munged, branches: list[Branch]) -> None:
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
def test_a_replay_is_refused_everywhere_and_for_ever(munged_pair: tuple[Munged, Munged], branches: list[Branch]) -> None:
    here, there = branches
    seen = [sign(speak(munged_pair[0]), ASKED) for _ in range(3)]
    for each in seen:
        assert here.ask(each)[0] == 200
    used = (401, "this credential was used before")
    assert here.ask(seen[0]) == used, "munged's own memory says so"
    assert there.ask(seen[0]) == used, "the other munged has never seen it: the shared table says so"
    for munged in munged_pair:
        munged.restart()
    assert [branch.ask(seen[1]) for branch in branches] == [used, used], "both munged have forgotten"
    for munged in munged_pair:
        munged.kill()
        munged.start()
    assert [branch.ask(seen[2]) for branch in reversed(branches)] == [used, used]
    assert there.ask(sign(speak(munged_pair[0]), ASKED))[0] == 200


@pytest.mark.slow
def test_of_two_servers_asked_at_once_one_says_yes(munged: Munged, branches: list[Branch]) -> None:
    with ThreadPoolExecutor(2) as threads:
        for _ in range(10):
            authorization = sign(speak(munged), ASKED)
            answers = [status for status, _ in threads.map(Branch.ask, branches, [authorization] * 2)]
            assert sorted(answers) == [200, 401]


# The header.


def test_a_request_has_one_authorization() -> None:
    assert authorization([(b"host", b"bank")]) is None
    assert authorization([(b"host", b"bank"), (b"Authorization", b"Munge MUNGE:x:")]) == "Munge MUNGE:x:"
    with pytest.raises(Unauthenticated, match="two Authorization headers"):
        authorization([(b"authorization", b"Munge MUNGE:x:"), (b"authorization", b"Bearer fbk_x")])


def test_each_scheme_has_its_reader() -> None:
    token = new_secret()
    assert scheme_of("munge MUNGE:x:") == credentials.MUNGE
    assert read_munge("MUNGE MUNGE:x:") == b"MUNGE:x:"
    assert scheme_of(f"bearer {token}") == BEARER
    assert read_token(f"BEARER  {token}") == token
    for header in ("", "Basic cm9vdDpyb290", "Mungex MUNGE:x:", token):
        for read in (scheme_of, read_munge, read_token):
            with pytest.raises(Unauthenticated, match="not known here"):
                read(header)
    with pytest.raises(Unauthenticated, match="not signed with Bearer"):
        read_token("Munge MUNGE:x:")


@given(st.text(max_size=60))
def test_no_header_breaks_the_readers(header: str) -> None:
    for read in (scheme_of, read_munge, read_token):
        try:
            read(header)
        except Unauthenticated as no:
            assert header not in no.message or len(header) < 10


# Tokens.


def test_tokens_are_random_and_known_when_seen() -> None:
    tokens = {new_secret() for _ in range(500)}
    assert len(tokens) == 500
    for token in tokens:
        assert token.startswith("fbk_")
        assert read_token(f"Bearer {token}") == token


def test_a_damaged_token_is_refused_and_not_repeated() -> None:
    token = new_secret()
    for wrong in (token[:-1], token + "A", token[4:], "fbk-" + token[4:], token.replace(token[7], "+"), token + " x", token + "\n"):
        with pytest.raises(Unauthenticated) as no:
            read_token(f"Bearer {wrong}")
        assert wrong not in f"{no.value.message}{no.value.remedy}"


# The key.


def test_a_key_is_made_once_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(Unknown, match="no key"):
        read_secret(path)
    key = read_secret(path, create=True)
    assert len(key) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_secret(path) == read_secret(path, create=True) == key
    assert list(tmp_path.iterdir()) == [path], "nothing is left beside it"


def test_makers_at_the_same_moment_get_the_same_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: read_secret(tmp_path / "key", create=True), range(16)))) == 1
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o666])
def test_a_key_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "key"
    read_secret(path, create=True)
    path.chmod(mode)
    with pytest.raises(Forbidden, match="others can read or change") as no:
        read_secret(path, create=True)
    assert f"chmod 600 {path}" in (no.value.remedy or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    read_secret(path, create=True)
    SOMEBODY.give(path)
    with pytest.raises(Forbidden):
        read_secret(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    read_secret(tmp_path / "key", create=True)
    (tmp_path / "link").symlink_to(tmp_path / "key")
    (tmp_path / "folder").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "folder", "pipe"):
        with pytest.raises(Forbidden):
            read_secret(tmp_path / name)
    with pytest.raises(Unknown):
        read_secret(tmp_path / "nowhere" / "key", create=True)


@pytest.mark.parametrize("text", ["", "secret\n", "0" * 63, "0" * 65, "0" * 64 + "\n\n", "G" * 64, "é" * 32])
def test_a_damaged_key_is_never_used(tmp_path: Path, text: str) -> None:
    path = tmp_path / "key"
    path.touch(mode=0o600)
    path.write_text(text)
    with pytest.raises(Corrupt, match="holds no key"):
        read_secret(path, create=True)
    assert path.read_text() == text, "and never overwritten"


if __name__ == "__main__":
    serve(*sys.argv[1:])
