"""The signed statement of a request: unique, and lines that cannot be signed are named."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import InvalidInput
from fairbank.rest.auth import credentials
from fairbank.rest.auth.credentials import BoundRequest, statement
from fairbank.rest.auth.munge import CREDENTIAL_MAX
from tests.rest.auth.munge_server import ASKED, BANK, NONCE, munge_of
from tests.support.munge import Munged

parts = st.tuples(
    st.sampled_from(["GET", "POST", "PUT", "POSTS"]) | st.text(max_size=3),
    st.sampled_from(["/", "/job", "/job?", "/job?a=1", "/job\nPOST", "/é"]) | st.text(max_size=12),
    st.binary(max_size=2),
    st.sampled_from([BANK, BANK + "x", "", "two words"]) | st.text(max_size=3),
    st.sampled_from([NONCE, "1" * 32, NONCE + "\n", NONCE.upper(), ""]),
)


@given(parts, parts)
def test_different_requests_have_different_statements(
    one: tuple[str, str, bytes, str, str], other: tuple[str, str, bytes, str, str]
) -> None:
    sealed = []
    for method, target, body, audience, nonce in (one, other):
        try:
            sealed.append(statement(BoundRequest.of(method, target, body, audience), nonce))
        except InvalidInput as bad:
            assert bad.field in ("method", "path or query", "server name", "nonce")
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
def test_every_signable_request_has_its_own_statement(
    one: tuple[str, str, bytes, str, str], other: tuple[str, str, bytes, str, str]
) -> None:
    first, second = (
        statement(BoundRequest.of(*request[:4]), request[4]) for request in (one, other)
    )
    assert (first == second) == (one == other)


def test_statement_matches_the_manual() -> None:
    assert (
        statement(BoundRequest.of("POST", "/job?page=2", b"", BANK), NONCE) == b"fairbank request"
        b" 1\nPOST\n/job?page=2\ne3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n"
        b"bank.example.org\n\n\n0f1e2d3c4b5a69788796a5b4c3d2e1f0"
    )
    assert statement(
        BoundRequest.of("POST", "/job", b"", BANK, acting_as="ayla", key="k-7"), NONCE
    ).endswith(b"\nayla\nk-7\n" + NONCE.encode())


@pytest.mark.parametrize(
    ("part", "bound", "nonce"),
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
def test_unsignable_line_is_named(part: str, bound: BoundRequest, nonce: str) -> None:
    with pytest.raises(InvalidInput) as bad:
        statement(bound, nonce)
    assert bad.value.field == part


def test_target_is_path_and_query_as_sent() -> None:
    assert credentials.target_of(b"/job/a%20b", b"") == "/job/a%20b"
    assert credentials.target_of(b"/job", b"page=2&x=%C3%A9") == "/job?page=2&x=%C3%A9"


def test_longest_request_fits_into_a_credential(munged: Munged) -> None:
    longest = BoundRequest.of("X" * 16, "/" + "x" * 8_191, b"", "b" * 255)
    assert len(munge_of(munged).encode(statement(longest, NONCE))) <= CREDENTIAL_MAX
