"""What may be asked of the bank: one value for each wish. The ledger judges them; doors translate into them."""

from __future__ import annotations

import hashlib

import msgspec

from fairbank.bank.allocation import AllocationEvent
from fairbank.bank.project import Role
from fairbank.cluster.job import Run
from fairbank.values.time import Instant
from fairbank.values.units import SuMinutes


class Wish(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag_field="do"):
    """`key` makes a wish of one actor idempotent: the same again gets the same answer, another wish under it is a conflict.

    A wish that is found granted already (a run held before, said again without its key) leaves no entry, nor its key.
    """

    key: str | None = None
    comment: str | None = None


# --- runs ---


class Hold(Wish, frozen=True, kw_only=True, tag="hold"):
    """A run starts: set its highest possible cost aside.

    `line` names the projects whose credit may be drawn on, the run's own first, then its parents; it is empty where no
    project has the `account` that was reported. `billing` is the price of one hour in SU (as text, exact) and
    `limit_seconds` the time limit: like `account` only to explain a refusal.
    """

    run: Run
    line: tuple[int, ...]
    resource: str
    owner: int
    amount: SuMinutes
    start: Instant
    until: Instant
    partition: str = ""
    account: str | None = None
    billing: str | None = None
    limit_seconds: int | None = None


class Adjust(Wish, frozen=True, kw_only=True, tag="adjust"):
    """A running job's time limit changed: its hold becomes `amount` and lapses at `until`.

    Fields from `line` on as in Hold; they only tell whose run it is, where it has no hold.
    """

    run: Run
    amount: SuMinutes
    until: Instant
    line: tuple[int, ...] = ()
    account: str | None = None
    resource: str | None = None
    owner: int | None = None


class Charge(Wish, frozen=True, kw_only=True, tag="charge"):
    """A run ended and cost `amount`. The fields from `line` on, as in Hold, are used only when its hold never arrived."""

    run: Run
    amount: SuMinutes
    ended: Instant
    outcome: str
    elapsed_seconds: int
    line: tuple[int, ...] = ()
    account: str | None = None
    resource: str | None = None
    owner: int | None = None
    start: Instant | None = None
    partition: str = ""


class Release(Wish, frozen=True, kw_only=True, tag="release"):
    """A run ended and costs nothing: a node failed, or it never ran. Fields from `line` on as in Charge."""

    run: Run
    ended: Instant
    outcome: str
    elapsed_seconds: int = 0
    line: tuple[int, ...] = ()
    account: str | None = None
    resource: str | None = None
    owner: int | None = None
    start: Instant | None = None
    partition: str = ""


class Unpriced(Wish, frozen=True, kw_only=True, tag="unpriced"):
    """A run ended, and the bank cannot tell what it cost: `why`. It is refused and kept, to count when it is said again.

    Fields as in Charge.
    """

    run: Run
    why: str
    ended: Instant
    outcome: str
    elapsed_seconds: int
    line: tuple[int, ...] = ()
    account: str | None = None
    resource: str | None = None
    owner: int | None = None
    start: Instant | None = None
    partition: str = ""


class Lapse(Wish, frozen=True, kw_only=True, tag="lapse"):
    """Nothing was heard of a run until its hold's deadline: give the credit back. Only the sweep asks this."""

    run: Run


class Refund(Wish, frozen=True, kw_only=True, tag="refund"):
    """Give back `amount` of what a run was charged; None gives back all that is left of it."""

    run: Run
    amount: SuMinutes | None = None


class Recharge(Wish, frozen=True, kw_only=True, tag="recharge"):
    """Take back the refund of a run that the entry `undoes` made: the run costs that much again."""

    run: Run
    undoes: int


# --- credit ---


class Deposit(Wish, frozen=True, kw_only=True, tag="deposit"):
    """Put credit into an allocation.

    Here and below `undoes` is the number of the entry that this takes back, if it takes one back: that is done once and whole.
    """

    allocation: int
    amount: SuMinutes
    undoes: int | None = None


class Withdraw(Wish, frozen=True, kw_only=True, tag="withdraw"):
    """Take unused credit out of an allocation; a credit limit is none."""

    allocation: int
    amount: SuMinutes
    undoes: int | None = None


class Transfer(Wish, frozen=True, kw_only=True, tag="transfer"):
    """Move credit between two allocations of one resource, both active and not over."""

    source: int
    target: int
    amount: SuMinutes
    undoes: int | None = None


# --- terms ---


class Open(Wish, frozen=True, kw_only=True, tag="open"):
    """Make an allocation, valid at `t` when start <= t < end, with a first deposit if there is one."""

    project: int
    resource: str
    category: str
    start: Instant
    end: Instant
    shared: bool = False
    credit_limit: SuMinutes = SuMinutes(0)
    deposit: SuMinutes = SuMinutes(0)


class Amend(Wish, frozen=True, kw_only=True, tag="amend"):
    """Change the terms of an allocation; None leaves a term as it is. The event END also ends the period now.

    `project` and `resource` are the allocation's own: they never change, and tell which others it must not overlap. `undoes` is the
    entry whose terms these are to replace, if it takes one back: only while the terms are still as that one made them.
    """

    allocation: int
    project: int
    resource: str
    start: Instant | None = None
    end: Instant | None = None
    shared: bool | None = None
    credit_limit: SuMinutes | None = None
    event: AllocationEvent | None = None
    undoes: int | None = None


class Expire(Wish, frozen=True, kw_only=True, tag="expire"):
    """End an allocation whose period is over. Only the sweep asks this."""

    allocation: int


class SetCap(Wish, frozen=True, kw_only=True, tag="cap"):
    """Let user `uid` draw at most `cap` in all from an allocation; None lifts the cap.

    `by` is the user whose own role in `project`, the allocation's, decides whom they may cap, as it is when the wish is judged; None is
    staff, who may cap anybody. `undoes` is the entry whose cap this replaces, if it takes one back: only while that cap still stands.
    """

    allocation: int
    uid: int
    cap: SuMinutes | None
    project: int | None = None
    by: int | None = None
    undoes: int | None = None


# --- the office ---


class Found(Wish, frozen=True, kw_only=True, tag="found"):
    """Enter a project: its Unix group, gid and Slurm account."""

    gname: str
    gid: int
    account: str
    parent: int | None = None


class SetMember(Wish, frozen=True, kw_only=True, tag="member"):
    """Give user `uid` a role in a project; None takes it away.

    `by` is the user whose own role decides what may be given and taken, as it is when the wish is judged; None is staff, who may do all.
    """

    project: int
    uid: int
    role: Role | None
    by: int | None = None


class IssueToken(Wish, frozen=True, kw_only=True, tag="issue-token"):
    """Let whoever knows a secret sign in as user `uid` until `expires`. Of the secret the bank only ever sees `digest`, made with a key."""

    digest: bytes
    uid: int
    label: str
    scopes: tuple[str, ...]
    expires: Instant


class RevokeToken(Wish, frozen=True, kw_only=True, tag="revoke-token"):
    """Make a token good for nothing from now on; `uid` is whose it must be, None lets it be anybody's."""

    token: int
    uid: int | None = None


class Note(Wish, frozen=True, kw_only=True, tag="note"):
    """Keep a fact that moves nothing: somebody acted as another user."""

    details: str


Request = (
    Hold
    | Adjust
    | Charge
    | Release
    | Unpriced
    | Lapse
    | Refund
    | Recharge
    | Deposit
    | Withdraw
    | Transfer
    | Open
    | Amend
    | Expire
    | SetCap
    | Found
    | SetMember
    | IssueToken
    | RevokeToken
    | Note
)


class Asked(msgspec.Struct, frozen=True, gc=False):
    """A wish with who asks and when. `actor` is the authenticated user, perhaps acting as another.

    `said` is the fingerprint of the report that the wish was made from; None where the wish itself is what was said.
    """

    wish: Request
    at: Instant
    actor: int
    acting_as: int | None = None
    said: bytes | None = None


_encode = msgspec.msgpack.Encoder().encode


def digest(asked: Asked) -> bytes:
    """Sixteen bytes that differ between different wishes; what "the same wish again" means.

    Where the wish was made from a report they are of the report: between two sendings of it prices may change, and with
    them the wish.
    """
    wish = asked.wish
    told = wish if asked.said is None else (asked.said, wish.key, wish.comment)
    return hashlib.blake2b(_encode(told), digest_size=16).digest()
