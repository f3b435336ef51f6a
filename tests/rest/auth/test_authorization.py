"""The Authorization header: one per request, read by its scheme. Tokens are random and
recognisable.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import Unauthenticated
from fairbank.rest.auth import credentials
from fairbank.rest.auth.credentials import BEARER, authorization, read_munge, read_token, scheme_of
from fairbank.service.access.tokens import new_secret

# --- header ---


def test_request_may_have_one_authorization_header() -> None:
    assert authorization([(b"host", b"bank")]) is None
    assert (
        authorization([(b"host", b"bank"), (b"Authorization", b"Munge MUNGE:x:")])
        == "Munge MUNGE:x:"
    )
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
            with pytest.raises(Unauthenticated, match="is not supported"):
                read(header)
    with pytest.raises(Unauthenticated, match="not signed with Bearer"):
        read_token("Munge MUNGE:x:")


@given(st.text(max_size=60))
def test_any_header_is_read_or_refused(header: str) -> None:
    for read in (scheme_of, read_munge, read_token):
        try:
            read(header)
        except Unauthenticated as raised:
            # A short text can be a part of the message by chance.
            assert header not in raised.message or len(header) < 20


# --- tokens ---


def test_tokens_are_random_and_recognised() -> None:
    tokens = {new_secret() for _ in range(500)}
    assert len(tokens) == 500
    for token in tokens:
        assert token.startswith("fbk_")
        assert read_token(f"Bearer {token}") == token


def test_damaged_token_is_refused_and_not_repeated() -> None:
    token = new_secret()
    for wrong in (
        token[:-1],
        token + "A",
        token[4:],
        "fbk-" + token[4:],
        token.replace(token[7], "+"),
        token + " x",
        token + "\n",
    ):
        with pytest.raises(Unauthenticated) as raised:
            read_token(f"Bearer {wrong}")
        assert wrong not in f"{raised.value.message}{raised.value.remedy}"
