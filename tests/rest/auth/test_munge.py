"""MUNGE through libmunge, with a real daemon: credentials, and the message of each error."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairbank.core.errors import InvalidInput, Unauthenticated, Unavailable
from fairbank.rest.auth.munge import CREDENTIAL_MAX, PAYLOAD_MAX, Munge, decoding_error
from tests.support.account import Account
from tests.support.conditions import wait_until
from tests.support.munge import Munged, MungeTools

OTHER_UID = Account.number(54_321)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def munge_of(
    munged: Munged, *, ttl_seconds: int | None = None, only_uid: int | None = None
) -> Munge:
    return Munge(
        socket=str(munged.socket),
        library=str(munged.libmunge),
        ttl_seconds=ttl_seconds,
        only_uid=only_uid,
    )


@pytest.fixture
def munge(munged: Munged) -> Munge:
    return munge_of(munged)


@pytest.fixture
def second(munge_tools: MungeTools, munged: Munged) -> Iterator[Munged]:
    """Provide a second daemon of the same realm."""
    daemon = Munged(munge_tools, key=munged.key)
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.close()


@pytest.mark.parametrize(
    "payload", [b"", b"debit my account", b"with \0 inside \xff", b"x" * PAYLOAD_MAX]
)
def test_credential_has_user_time_and_payload(munge: Munge, payload: bytes) -> None:
    credential = munge.encode(payload)
    assert len(credential) <= CREDENTIAL_MAX
    decoded = munge.decode(credential)
    assert (decoded.payload, decoded.uid, decoded.gid, decoded.ttl_seconds) == (
        payload,
        os.geteuid(),
        os.getegid(),
        300,
    )
    assert 0 <= time.time() - decoded.encoded_at < 30


@needs_root
def test_credential_of_another_user_has_that_uid(munged: Munged, munge: Munge) -> None:
    decoded = munge.decode(munged.encode(b"hello", account=OTHER_UID).encode())
    assert (decoded.uid, decoded.gid, decoded.payload) == (OTHER_UID.uid, OTHER_UID.gid, b"hello")


def test_daemon_with_the_same_key_decodes_it(munge: Munge, second: Munged) -> None:
    assert munge_of(second).decode(munge.encode(b"over the wire")).payload == b"over the wire"


def test_daemon_with_another_key_refuses_it(munge: Munge, munge_tools: MungeTools) -> None:
    stranger = Munged(munge_tools)
    try:
        stranger.start()
        with pytest.raises(Unauthenticated, match="does not accept") as refused:
            munge_of(stranger).decode(munge.encode(b"hello"))
    finally:
        stranger.close()
    assert refused.value.remedy is not None
    assert "same munge.key" in refused.value.remedy


def test_credential_is_decoded_once(munge: Munge) -> None:
    credential = munge.encode(b"once")
    munge.decode(credential)
    with pytest.raises(Unauthenticated, match="used before"):
        munge.decode(credential)


def test_expired_credential_is_refused(munged: Munged, munge: Munge) -> None:
    credential = munge_of(munged, ttl_seconds=1).encode(b"soon over")
    made = time.time()
    wait_until(lambda: time.time() > made + 2, "the credential to be too old")
    with pytest.raises(
        Unauthenticated, match=r"expired: made at 20..-..-..T..:..:..Z, [2-9] s ago, valid for 1 s"
    ):
        munge.decode(credential)


def test_credential_from_the_future_is_refused_as_clock_skew() -> None:
    """EMUNGE_CRED_REWOUND needs two hosts with different clocks, so only the message is tested."""
    error = decoding_error(16, "Rewound credential", encoded_at=1_000, now=400, ttl=300)
    assert isinstance(error, Unauthenticated)
    assert "clock skew" in error.message
    assert "600 s" in error.message
    assert "clocks" in (error.remedy or "")


def test_restricted_credential_is_refused_for_other_users(munged: Munged, munge: Munge) -> None:
    assert (
        munge.decode(munge_of(munged, only_uid=os.geteuid()).encode(b"for us")).payload == b"for us"
    )
    with pytest.raises(Unauthenticated, match="for another user"):
        munge.decode(munge_of(munged, only_uid=os.geteuid() + 1).encode(b"for a neighbour"))


def test_changed_credential_is_refused(munge: Munge) -> None:
    credential = munge.encode(b"POST /deposit " * 10)
    for place in range(0, len(credential), 10):
        altered = bytearray(credential)
        altered[place] ^= 0x01
        with pytest.raises(Unauthenticated):
            munge.decode(bytes(altered))
    assert munge.decode(credential).payload.startswith(b"POST"), "the original credential is valid"


def test_shortened_or_extended_credential_is_refused(munge: Munge) -> None:
    credential = munge.encode(b"POST /deposit " * 10)
    wrong = [credential[:length] for length in range(0, len(credential), 10)]
    wrong += [
        credential[:-1],
        credential + b"A",
        credential + b"\n",
        credential + b"\0",
        b" " + credential,
        credential * 2,
    ]
    for text in wrong:
        with pytest.raises(Unauthenticated):
            munge.decode(text)


def test_other_base64_of_the_same_bytes_is_refused(munged: Munged, munge: Munge) -> None:
    """munged itself ignores the unused bits at the end of base64."""
    other = next(filter(None, (_other_base64(munge.encode(b"x" * length)) for length in range(3))))
    with pytest.raises(Unauthenticated, match="not a MUNGE credential"):
        munge.decode(other)
    assert munged.decode(other.decode()).returncode == 0


def _other_base64(credential: bytes) -> bytes | None:
    """Return the same bytes with the last unused bit set; None if the text has no unused bit."""
    sealed = credential[len(b"MUNGE:") : -1].rstrip(b"=")
    padding = credential[6 + len(sealed) :]
    if padding == b":":
        return None
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = b"MUNGE:" + sealed[:-1] + alphabet[alphabet.index(sealed[-1]) + 1 :][:1] + padding
    assert base64.b64decode(other[6:-1]) == base64.b64decode(credential[6:-1])
    return other


def test_too_long_credential_is_refused_first() -> None:
    nowhere = Munge(library="libnothing.so.0")
    with pytest.raises(Unauthenticated, match="16385 bytes"):
        nowhere.decode(b"A" * (CREDENTIAL_MAX + 1))
    with pytest.raises(InvalidInput, match="12001 bytes"):
        nowhere.encode(b"A" * (PAYLOAD_MAX + 1))


@pytest.mark.slow
def test_stopped_daemon_is_unreachable_until_restarted(munged: Munged, munge: Munge) -> None:
    credential = munge.encode(b"before")
    for end in (munged.stop, munged.kill):  # the second leaves a socket without a listener
        munged.start()
        end()
        for call in (lambda: munge.encode(b"now"), lambda: munge.decode(credential)):
            with pytest.raises(Unavailable, match="munged does not answer") as silent:
                call()
            assert "systemctl start munge" in (silent.value.remedy or "")
    munged.start()
    assert munge.decode(credential).payload == b"before"


@pytest.mark.parametrize("library", ["libnothing.so.0", "libc.so.6"])
def test_missing_libmunge_is_reported_with_the_unix_socket(library: str) -> None:
    with pytest.raises(Unavailable, match="cannot be used here") as missing:
        Munge(library=library).encode(b"")
    assert "libmunge2" in (missing.value.remedy or "")


def test_decoding_is_thread_safe(munge: Munge) -> None:
    payloads = [f"request {number}".encode() for number in range(400)]
    with ThreadPoolExecutor(8) as threads:
        assert [
            decoded.payload
            for decoded in threads.map(munge.decode, threads.map(munge.encode, payloads))
        ] == payloads


def test_import_loads_no_library() -> None:
    """Commands that do not use MUNGE import the module too."""
    heavy = (
        "{'asyncio', 'dataclasses', 'inspect', 'litestar', 'logging', 'msgspec', 'pathlib', 'ssl',"
        " 'subprocess', 'uvicorn'}"
    )
    program = (
        "import sys; bare = set(sys.modules); import"
        f" fairbank.rest.auth.credentials\nprint(sorted({heavy} & (set(sys.modules) - bare)),"
        " 'libmunge' in open('/proc/self/maps').read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[] False"
