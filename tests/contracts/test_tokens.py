"""Tokens and nonces: stored, revoked, and used once across all servers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

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
from tests.contracts.places import Place
from tests.contracts.site import ALICE, BOB, CAROL, Look, ask, contents, granted, token

NOW, LATER = Instant(1_000), Instant(2_000)
LAPTOP, PHONE = token("laptop", expires=LATER), token("phone", BOB, (), LATER)


def issued(store: Store, *requests: IssueToken) -> list[int]:
    """Return the numbers of new tokens."""
    return [each.token or 0 for each in granted(store, *requests, at=NOW)]


def reason(outcomes: list[Outcome]) -> Reason:
    (no,) = outcomes
    assert isinstance(no, Refusal)
    return no.reason


def test_tokens_are_found_by_their_digest_and_by_their_owner(store: Store) -> None:
    laptop, phone = issued(store, LAPTOP, PHONE)
    look = Look(store)
    kept = Token(
        id=laptop,
        digest=LAPTOP.digest,
        uid=ALICE,
        label="laptop",
        scopes=("agent:darwin", "read"),
        created=NOW,
        expires=LATER,
    )
    assert look.token(LAPTOP.digest) == kept
    assert look.token(b"other") is None
    assert [each.id for each in look.tokens(None, Page())] == [laptop, phone]
    assert [each.scopes for each in look.tokens(BOB, Page())] == [()]
    assert look.tokens(CAROL, Page()) == []


def test_a_token_remembers_by_which_it_was_made(store: Store) -> None:
    (laptop,) = issued(store, LAPTOP)
    (phone,) = issued(store, msgspec.structs.replace(PHONE, parent=laptop))
    look = Look(store)
    assert [each.parent for each in look.tokens(None, Page())] == [None, laptop]
    assert look.token_by_id(phone) == look.token(PHONE.digest)
    assert look.token_by_id(phone + 1) is None
    assert reason(ask(store, PHONE, at=NOW)) is Reason.TOKEN_TAKEN


def test_tokens_come_in_pages(store: Store) -> None:
    numbers = issued(
        store,
        *(
            msgspec.structs.replace(LAPTOP, digest=b"%d" % each, uid=1001 + each % 2)
            for each in range(6)
        ),
    )
    look = Look(store)
    assert [each.id for each in look.tokens(None, Page(4))] == numbers[:4]
    assert [each.id for each in look.tokens(None, Page(4, after=numbers[3]))] == numbers[4:]
    assert [each.id for each in look.tokens(1001, Page(2, after=numbers[0]))] == [
        numbers[2],
        numbers[4],
    ]
    assert look.tokens(1001, Page(2, after=numbers[4])) == []


def test_a_revoked_token_stays_revoked(store: Store) -> None:
    (number,) = issued(store, LAPTOP)
    granted(store, RevokeToken(token=number), at=NOW)
    assert reason(ask(store, RevokeToken(token=number), at=LATER)) is Reason.UNKNOWN_TOKEN
    assert Look(store).token(LAPTOP.digest).revoked == NOW


def test_there_is_nothing_to_revoke_of_a_token_that_is_unknown_or_expired_or_not_ones_own(
    store: Store,
) -> None:
    (number,) = issued(store, LAPTOP)
    for request, at in (
        (RevokeToken(token=number + 1), NOW),
        (RevokeToken(token=number), LATER),
        (RevokeToken(token=number, uid=BOB), NOW),
    ):
        assert reason(ask(store, request, at=at)) is Reason.UNKNOWN_TOKEN
    granted(store, RevokeToken(token=number, uid=ALICE), at=NOW)


def test_one_digest_is_one_token(store: Store) -> None:
    (number,) = issued(store, LAPTOP)
    (again,) = granted(store, LAPTOP, at=NOW)
    assert (again.token, again.again) == (number, True)
    assert (
        reason(ask(store, msgspec.structs.replace(LAPTOP, uid=BOB), at=NOW)) is Reason.TOKEN_TAKEN
    )
    assert len(Look(store).tokens(None, Page())) == 1


def test_a_token_made_and_revoked_in_one_batch(store: Store) -> None:
    done = granted(store, LAPTOP, RevokeToken(token=1), PHONE, at=NOW)
    assert [each.token for each in done] == [1, 1, 2]
    assert [each.revoked for each in Look(store).tokens(None, Page())] == [NOW, None]
    assert Audit(store).verify().findings == ()


def test_row_and_entry_are_written_together_or_not_at_all(store: Store) -> None:
    issued(store, LAPTOP)
    before = contents(store)
    asked = [SubmittedRequest(request, NOW, 0) for request in (PHONE, RevokeToken(token=1))]
    with pytest.raises(ZeroDivisionError), store.transaction() as transaction:
        work = transaction.load(lock_set_of(asked))
        assert all(isinstance(apply(work, each, Policy()), Done) for each in asked)
        transaction.write(work)
        _ = 1 / 0
    assert contents(store) == before
    granted(store, *(each.request for each in asked), at=NOW)
    assert [(each.kind, each.owner) for each in contents(store)[5]] == [
        (Kind.TOKEN, uid) for uid in (ALICE, BOB, ALICE)
    ]
    assert Audit(store).verify().findings == ()


def test_of_two_servers_that_revoke_a_token_one_does(place: Place) -> None:
    stores = [place.open(), place.open()]
    for number in range(1, 11):
        issued(stores[0], token(f"t{number}"))
        with ThreadPoolExecutor(2) as pool:
            answers = [
                pool.submit(ask, store, RevokeToken(token=number), at=NOW) for store in stores
            ]
        assert sorted(isinstance(each.result()[0], Done) for each in answers) == [False, True]
    assert Audit(stores[0]).verify().findings == ()


def test_the_audit_finds_a_token_that_was_given_back_its_validity(sql_place: Place) -> None:
    store = sql_place.open()
    (number,) = issued(store, LAPTOP)
    granted(store, RevokeToken(token=number), at=NOW)
    sql_place.run("UPDATE token SET revoked_at = NULL")
    assert [each.what for each in Audit(store).verify().findings] == [
        "the row of token 1 was altered: revoked is nothing, due 1970-01-01T00:16:40Z"
    ]


def test_a_nonce_is_spent_once_until_it_expires(store: Store) -> None:
    assert store.use_nonce(b"\x00\xffn", 1001, NOW, LATER)
    assert not store.use_nonce(b"\x00\xffn", 1001, NOW, LATER)
    assert not store.use_nonce(b"\x00\xffn", 1002, Instant(LATER - 1), Instant(LATER + 1))
    assert store.use_nonce(b"other", 1001, NOW, LATER)
    assert store.use_nonce(b"\x00\xffn", 1001, LATER, Instant(LATER + 1_000))
    assert not store.use_nonce(b"\x00\xffn", 1001, LATER, Instant(LATER + 1_000))


def test_expired_nonces_are_forgotten(sql_place: Place) -> None:
    store = sql_place.open()
    for number in range(150):
        store.use_nonce(b"%d" % number, 1001, NOW, LATER)
    for number in range(3):
        store.use_nonce(b"later%d" % number, 1001, LATER, Instant(LATER + 1))
    assert sql_place.run("SELECT count(*) FROM nonce") == [(3,)]


def test_a_nonce_spent_on_many_servers_at_once_is_spent_on_one(place: Place) -> None:
    stores = [place.open(), place.open()]
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            expiring = [
                pool.submit(
                    stores[each % 2].use_nonce, b"%d" % number, 1001, NOW, Instant(NOW + number)
                )
                for each in range(8)
            ]
            assert sum(each.result() for each in expiring) == (1 if number else 8)


def test_a_spent_nonce_outlives_the_server(sql_place: Place) -> None:
    store = sql_place.open()
    assert store.use_nonce(b"n", 1001, NOW, LATER)
    store.close()
    assert not sql_place.open().use_nonce(b"n", 1001, NOW, LATER)
