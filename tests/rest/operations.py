"""Valid requests for every operation of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fairbank.bank.project import Role
from fairbank.bank.requests import SetMember
from fairbank.cluster.share import ShareRecord
from fairbank.core.time import Instant
from fairbank.rest.app import document
from tests.rest.world import DAY, NOW, OTHER_PI, PI, SUPERUSER, UNKNOWN, World, grant, report

OWN, FOREIGN, NOBODYS = "own", "foreign", "unknown"


class Call(NamedTuple):
    method: str
    path: str
    body: Any = None


def operations() -> dict[str, tuple[str, str]]:
    """Return method and path of each operation of the document, by its id."""
    return {
        operation["operationId"]: (method.upper(), path)
        for path, item in document()["paths"].items()
        for method, operation in item.items()
    }


def call(world: World, operation: str, whose: str, uid: int) -> Call:
    """Return the request of `operation` for an object of the user's project, of another one, or for
    a missing one.
    """
    method, path = operations()[operation]
    things = {OWN: world.own, FOREIGN: world.foreign}.get(whose, {})
    filled = path
    for name in ("project", "allocation", "job", "failure"):
        filled = filled.replace(f"{{{name}}}", str(things.get(name, UNKNOWN)))
    filled = filled.replace("{uid}", str(7_777)).replace("{file}", "start.js")
    if "{token}" in filled:
        owner = {OWN: uid, FOREIGN: OTHER_PI}.get(whose)
        filled = filled.replace(
            "{token}", str(UNKNOWN if owner is None else world.token_number(owner))
        )
    if operation == "list_tokens" and whose != NOBODYS:
        world.token_number(uid if whose == OWN else OTHER_PI)
    if operation == "remove_member" and things:
        world.request(SetMember(project=things["project"], uid=7_777, role=Role.MEMBER))
    if operation == "list_shares":
        world.context.services.store.add_share_records([share_of("chem"), share_of("bio")])
    body = BODIES[operation](world, whose, things) if operation in BODIES else None
    if "{entry}" in filled:
        filled = filled.replace("{entry}", str(_refunded(world, things)))
    query = QUERIES[operation](account(whose)) if operation in QUERIES else ""
    return Call(method, filled + query, body)


def account(whose: str) -> str:
    return {OWN: "chem", FOREIGN: "bio"}.get(whose, "nosuch")


def _by_account(name: str) -> str:
    return f"?account={name}"


_WHY = {"comment": "a test"}

_OF_AN_ACCOUNT = """
    list_projects list_allocations list_balances list_activity list_entries list_credits
    list_predebits list_debits
    list_jobs list_failures show_usage list_shares
"""
QUERIES: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(_OF_AN_ACCOUNT.split(), _by_account),
    "list_tokens": (
        lambda name: {"chem": "", "bio": f"?uid={OTHER_PI}"}.get(name, f"?uid={UNKNOWN}")
    ),
}

BODIES: dict[str, Callable[[World, str, dict[str, int]], Any]] = {
    "enter_project": lambda w, *_: {"gname": f"p{(n := next(w.numbers))}", "gid": n},
    "amend_project": lambda *_: {"parent": 0},
    "set_member": lambda *_: {"role": "member"},
    "open_allocation": lambda w, whose, _: grant(
        account=account(whose), resource=f"r{next(w.numbers)}"
    ),
    "amend_allocation": lambda *_: {"shared": False, **_WHY},
    "set_cap": lambda *_: {"cap": 1_000},
    "deposit": lambda *_: {"amount": 1, **_WHY},
    "withdraw": lambda *_: {"amount": 1, **_WHY},
    "transfer": lambda w, whose, things: {"to": things.get("later", UNKNOWN), "amount": 1, **_WHY},
    "refund_job": lambda *_: {"amount": 1, **_WHY},
    "undo_entry": lambda *_: _WHY,
    "report_run": lambda w, whose, _: _report(w, whose),
    "report_runs": lambda w, whose, _: {"reports": [_report(w, whose)]},
    "record_shares": lambda w, whose, _: {
        "cluster": _cluster(whose),
        "at": NOW,
        "rows": [{"account": "a", "norm_shares": 1, "usage": 0}],
    },
    "quote_job": lambda w, whose, _: {
        "account": account(whose),
        "cluster": "alpha",
        "partition": "std",
        "tres": "cpu=1",
        "time_limit": 60,
    },
    "make_token": lambda w, whose, _: {
        "label": "a test",
        "scopes": ["read"],
        **({} if whose == OWN else {"uid": OTHER_PI}),
    },
}


def _refunded(world: World, things: dict[str, int]) -> int:
    """Create a refund of a run of the own or the other project; return its entry."""
    if "job" not in things:
        return UNKNOWN
    made = world.ask("POST", f"/job/{things['job']}/refund", SUPERUSER, json={"amount": 1, **_WHY})
    return int(made.json()["data"]["entry"])


def _report(world: World, whose: str) -> dict[str, Any]:
    return report(
        next(world.numbers) + 10_000,
        cluster=_cluster(whose),
        resource="cpu",
        submitted=NOW - 1,
        owner_uid=PI,
    )


def _cluster(whose: str) -> str:
    return {OWN: "alpha", FOREIGN: "beta"}.get(whose, "gamma")


def share_of(account: str) -> ShareRecord:
    """Return the fair-share values of an account at one time."""
    return ShareRecord(
        account,
        shares=1,
        norm_shares=0.5,
        effective=0.0,
        cluster="alpha",
        day=NOW // DAY,
        at=Instant(NOW),
    )
