"""Tokens and nonces: stored, revoked, and used once across all servers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from fairbank.bank.entry import Kind
from fairbank.bank.lock_set import lock_set_of
from fairbank.bank.policy import Policy
from fairbank.bank.query import Page
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import IssueToken, RevokeToken, SubmittedRequest
from fairbank.bank.rules import Done, Outcome, apply
from fairbank.bank.token import Token
from fairbank.core.time import Instant
from fairbank.service.ops.audit import Audit
from fairbank.store.contract import Store
from tests.contracts.databases import Place
from tests.contracts.small_site import (
    ALICE,
    BOB,
    CAROL,
    SnapshotReader,
    ask,
    contents,
    granted,
    token,
)

NOW, LATER = Instant(1_000), Instant(2_000)
LAPTOP, PHONE = token("laptop", expires=LATER), token("phone", BOB, (), LATER)


def issued(store: Store, *requests: IssueToken) -> list[int]:
    """Return the numbers of new tokens."""
    return [outcome.token or 0 for outcome in granted(store, *requests, at=NOW)]


def with_grant(request: IssueToken, **facts: Any) -> IssueToken:
    """Return the request for a token with other facts."""
    return IssueToken(grant=msgspec.structs.replace(request.grant, **facts))


def reason(outcomes: list[Outcome]) -> Reason:
    (no,) = outcomes
    assert isinstance(no, Refusal)
    return no.reason


def test_tokens_are_found_by_their_digest_and_by_their_owner(store: Store) -> None:
    laptop, phone = issued(store, LAPTOP, PHONE)
    reader = SnapshotReader(store)
    kept = Token(
        id=laptop,
        digest=LAPTOP.grant.digest,
        uid=ALICE,
        label="laptop",
        scopes=("agent:darwin", "read"),
        created=NOW,
        expires=LATER,
    )
    assert reader.token(LAPTOP.grant.digest) == kept
    assert reader.token(b"other") is None
    assert [row.id for row in reader.tokens(None, Page())] == [laptop, phone]
    assert [row.scopes for row in reader.tokens(BOB, Page())] == [()]
    assert reader.tokens(CAROL, Page()) == []


def test_token_records_its_parent_token(store: Store) -> None:
    (laptop,) = issued(store, LAPTOP)
    (phone,) = issued(store, with_grant(PHONE, parent=laptop))
    reader = SnapshotReader(store)
    assert [row.parent for row in reader.tokens(None, Page())] == [None, laptop]
    assert reader.token_by_id(phone) == reader.token(PHONE.grant.digest)
    assert reader.token_by_id(phone + 1) is None
    assert reason(ask(store, PHONE, at=NOW)) is Reason.TOKEN_TAKEN


def test_tokens_come_in_pages(store: Store) -> None:
    numbers = issued(
        store,
        *(with_grant(LAPTOP, digest=b"%d" % number, uid=1001 + number % 2) for number in range(6)),
    )
    reader = SnapshotReader(store)
    assert [row.id for row in reader.tokens(None, Page(4))] == numbers[:4]
    assert [row.id for row in reader.tokens(None, Page(4, after=numbers[3]))] == numbers[4:]
    assert [row.id for row in reader.tokens(1001, Page(2, after=numbers[0]))] == [
        numbers[2],
        numbers[4],
    ]
    assert reader.tokens(1001, Page(2, after=numbers[4])) == []


def test_revoked_token_stays_revoked(store: Store) -> None:
    (number,) = issued(store, LAPTOP)
    granted(store, RevokeToken(token=number), at=NOW)
    assert reason(ask(store, RevokeToken(token=number), at=LATER)) is Reason.UNKNOWN_TOKEN
    assert SnapshotReader(store).token(LAPTOP.grant.digest).revoked == NOW


def test_revoking_unknown_expired_or_foreign_token_is_refused(store: Store) -> None:
    (number,) = issued(store, LAPTOP)
    for request, at in (
        (RevokeToken(token=number + 1), NOW),
        (RevokeToken(token=number), LATER),
        (RevokeToken(token=number, uid=BOB), NOW),
    ):
        assert reason(ask(store, request, at=at)) is Reason.UNKNOWN_TOKEN
    granted(store, RevokeToken(token=number, uid=ALICE), at=NOW)


def test_digests_of_tokens_are_unique(store: Store) -> None:
    (number,) = issued(store, LAPTOP)
    (again,) = granted(store, LAPTOP, at=NOW)
    assert (again.token, again.again) == (number, True)
    assert reason(ask(store, with_grant(LAPTOP, uid=BOB), at=NOW)) is Reason.TOKEN_TAKEN
    assert len(SnapshotReader(store).tokens(None, Page())) == 1


def test_token_can_be_issued_and_revoked_in_one_batch(store: Store) -> None:
    done = granted(store, LAPTOP, RevokeToken(token=1), PHONE, at=NOW)
    assert [outcome.token for outcome in done] == [1, 1, 2]
    assert [row.revoked for row in SnapshotReader(store).tokens(None, Page())] == [NOW, None]
    assert Audit(store).verify().findings == ()


def test_token_row_and_entry_are_written_atomically(store: Store) -> None:
    issued(store, LAPTOP)
    before = contents(store)
    submitted = [SubmittedRequest(request, NOW, 0) for request in (PHONE, RevokeToken(token=1))]
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:
        work = transaction.load(lock_set_of(submitted))
        assert all(isinstance(apply(work, item, Policy()), Done) for item in submitted)
        transaction.write(work)
        _ = 1 / 0
    assert contents(store) == before
    granted(store, *(item.request for item in submitted), at=NOW)
    assert [(row.kind, row.owner) for row in contents(store)[5]] == [
        (Kind.TOKEN, uid) for uid in (ALICE, BOB, ALICE)
    ]
    assert Audit(store).verify().findings == ()


def test_token_is_revoked_by_one_of_two_servers(place: Place) -> None:
    stores = [place.open(), place.open()]
    for number in range(1, 11):
        issued(stores[0], token(f"t{number}"))
        with ThreadPoolExecutor(2) as pool:
            answers = [
                pool.submit(ask, store, RevokeToken(token=number), at=NOW) for store in stores
            ]
        assert sorted(isinstance(answer.result()[0], Done) for answer in answers) == [False, True]
    assert Audit(stores[0]).verify().findings == ()


def test_audit_finds_reactivated_token(sql_place: Place) -> None:
    store = sql_place.open()
    (number,) = issued(store, LAPTOP)
    granted(store, RevokeToken(token=number), at=NOW)
    sql_place.run("UPDATE token SET revoked_at = NULL")
    assert [finding.what for finding in Audit(store).verify().findings] == [
        "the row of token 1 was altered: revoked is nothing, due 1970-01-01T00:16:40Z"
    ]


def test_nonce_is_used_once_until_it_expires(store: Store) -> None:
    assert store.use_nonce(b"\x00\xffn", 1001, NOW, LATER)
    assert not store.use_nonce(b"\x00\xffn", 1001, NOW, LATER)
    assert not store.use_nonce(b"\x00\xffn", 1002, Instant(LATER - 1), Instant(LATER + 1))
    assert store.use_nonce(b"other", 1001, NOW, LATER)
    assert store.use_nonce(b"\x00\xffn", 1001, LATER, Instant(LATER + 1_000))
    assert not store.use_nonce(b"\x00\xffn", 1001, LATER, Instant(LATER + 1_000))


def test_expired_nonces_are_deleted(sql_place: Place) -> None:
    store = sql_place.open()
    for number in range(150):
        store.use_nonce(b"%d" % number, 1001, NOW, LATER)
    for number in range(3):
        store.use_nonce(b"later%d" % number, 1001, LATER, Instant(LATER + 1))
    assert sql_place.run("SELECT count(*) FROM nonce") == [(3,)]


def test_nonce_is_accepted_by_one_of_many_servers(place: Place) -> None:
    stores = [place.open(), place.open()]
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            expiring = [
                pool.submit(
                    stores[index % 2].use_nonce, b"%d" % number, 1001, NOW, Instant(NOW + number)
                )
                for index in range(8)
            ]
            assert sum(nonce.result() for nonce in expiring) == (1 if number else 8)


def test_used_nonce_is_remembered_after_restart(sql_place: Place) -> None:
    store = sql_place.open()
    assert store.use_nonce(b"n", 1001, NOW, LATER)
    store.close()
    assert not sql_place.open().use_nonce(b"n", 1001, NOW, LATER)
