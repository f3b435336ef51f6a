"""Table of permissions: every operation of the OpenAPI document, by every role, on the user's own
project, on another one and on none.

A user who may not see an object gets 404, as if it did not exist. A user who sees it and may not
do the operation gets 403.

    strangr  a user with no project        agent  reports the runs of cluster alpha
    coord    a coordinator of chem         other  the agent of cluster beta
    super    a superuser                   token  a read-only token of chem's PI

"own" is project chem (and cluster alpha, and the user's own token), "foreign" is bio (and beta),
"unknown" is none. 200:0 is an empty list. 200:403 is a response to a batch with status 403 for its
only report.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx

from tests.rest.operations import FOREIGN, NOBODYS, OWN, Call, call
from tests.rest.world import (
    ADMIN,
    AGENT,
    COORDINATOR,
    MEMBER,
    OTHER_AGENT,
    PI,
    STRANGER,
    SUPERUSER,
    World,
)

TABLE = """
# operation      on what anon strangr member  coord   pi      admin   super   agent   other   token
show_health      any     200  200     200     200     200     200     200     200     200     200
show_myself      any     401  200     200     200     200     200     200     200     200     200
show_metrics     any     401  403     403     403     403     200     200     403     403     403
list_clusters    any     401  200     200     200     200     200     200     200     200     200
list_projects    own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_projects    foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_projects    unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
enter_project    any     401  403     403     403     403     403     201     403     403     403
show_project     own     401  404     200     200     200     200     200     404     404     200
show_project     foreign 401  404     404     404     404     200     200     404     404     404
show_project     unknown 401  404     404     404     404     404     404     404     404     404
amend_project    own     401  404     403     403     403     403     200     404     404     403
amend_project    foreign 401  404     404     404     404     403     200     404     404     403
amend_project    unknown 401  404     404     404     404     404     404     404     404     403
remove_project   own     401  404     403     403     403     403     409     404     404     403
remove_project   foreign 401  404     404     404     404     403     409     404     404     403
remove_project   unknown 401  404     404     404     404     404     404     404     404     403
list_members     own     401  404     200     200     200     200     200     404     404     200
list_members     foreign 401  404     404     404     404     200     200     404     404     404
list_members     unknown 401  404     404     404     404     404     404     404     404     404
set_member       own     401  404     403     200     200     403     200     404     404     403
set_member       foreign 401  404     404     404     404     403     200     404     404     403
set_member       unknown 401  404     404     404     404     404     404     404     404     403
remove_member    own     401  404     403     200     200     403     200     404     404     403
remove_member    foreign 401  404     404     404     404     403     200     404     404     403
remove_member    unknown 401  404     404     404     404     404     404     404     404     403
list_allocations own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_allocations foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_allocations unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
open_allocation  own     401  403     403     403     403     403     201     403     403     403
open_allocation  foreign 401  403     403     403     403     403     201     403     403     403
open_allocation  unknown 401  403     403     403     403     403     404     403     403     403
list_balances    own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_balances    foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_balances    unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
show_allocation  own     401  404     200     200     200     200     200     404     404     200
show_allocation  foreign 401  404     404     404     404     200     200     404     404     404
show_allocation  unknown 401  404     404     404     404     404     404     404     404     404
amend_allocation own     401  404     403     403     403     403     200     404     404     403
amend_allocation foreign 401  404     404     404     404     403     200     404     404     403
amend_allocation unknown 401  404     404     404     404     404     404     404     404     403
remove_allocation own    401  404     403     403     403     403     409     404     404     403
remove_allocation foreign 401 404     404     404     404     403     409     404     404     403
remove_allocation unknown 401 404     404     404     404     404     404     404     404     403
list_users       own     401  404     200     200     200     200     200     404     404     200
list_users       foreign 401  404     404     404     404     200     200     404     404     404
list_users       unknown 401  404     404     404     404     404     404     404     404     404
set_cap          own     401  404     403     200     200     403     200     404     404     403
set_cap          foreign 401  404     404     404     404     403     200     404     404     403
set_cap          unknown 401  404     404     404     404     404     404     404     404     403
deposit          own     401  404     403     403     403     403     201     404     404     403
deposit          foreign 401  404     404     404     404     403     201     404     404     403
deposit          unknown 401  404     404     404     404     404     404     404     404     403
withdraw         own     401  404     403     403     403     403     201     404     404     403
withdraw         foreign 401  404     404     404     404     403     201     404     404     403
withdraw         unknown 401  404     404     404     404     404     404     404     404     403
transfer         own     401  404     403     403     201     403     201     404     404     403
transfer         foreign 401  404     404     404     404     403     201     404     404     403
transfer         unknown 401  404     404     404     404     404     404     404     404     403
show_statement   own     401  404     200     200     200     200     200     404     404     200
show_statement   foreign 401  404     404     404     404     200     200     404     404     404
show_statement   unknown 401  404     404     404     404     404     404     404     404     404
show_series      own     401  404     200     200     200     200     200     404     404     200
show_series      foreign 401  404     404     404     404     200     200     404     404     404
show_series      unknown 401  404     404     404     404     404     404     404     404     404
list_entries     own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_entries     foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_entries     unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_activity    own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_activity    foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_activity    unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_credits     own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_credits     foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_credits     unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_predebits   own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_predebits   foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_predebits   unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_debits      own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_debits      foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_debits      unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
list_jobs        own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_jobs        foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_jobs        unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
report_run       own     401  403     403     403     403     403     201     201     403     403
report_run       foreign 401  403     403     403     403     403     201     403     201     403
report_run       unknown 401  403     403     403     403     403     201     403     403     403
report_runs      own     401  200:403 200:403 200:403 200:403 200:403 200:201 200:201 200:403 403
report_runs      foreign 401  200:403 200:403 200:403 200:403 200:403 200:201 200:403 200:201 403
report_runs      unknown 401  200:403 200:403 200:403 200:403 200:403 200:201 200:403 200:403 403
show_job         own     401  404     200     200     200     200     200     404     404     200
show_job         foreign 401  404     404     404     404     200     200     404     404     404
show_job         unknown 401  404     404     404     404     404     404     404     404     404
refund_job       own     401  404     403     403     403     403     201     404     404     403
refund_job       foreign 401  404     404     404     404     403     201     404     404     403
refund_job       unknown 401  404     404     404     404     404     404     404     404     403
undo_entry       own     401  404     403     403     403     403     201     404     404     403
undo_entry       foreign 401  404     404     404     404     403     201     404     404     403
undo_entry       unknown 401  404     404     404     404     404     404     404     404     403
list_failures    own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_failures    foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_failures    unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
show_failure     own     401  404     200     200     200     200     200     404     404     200
show_failure     foreign 401  404     404     404     404     200     200     404     404     404
show_failure     unknown 401  404     404     404     404     404     404     404     404     404
show_usage       own     401  200:0   200     200     200     200     200     200:0   200:0   200
show_usage       foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
show_usage       unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
show_centre      own     401  403     403     403     403     200     200     403     403     403
show_centre      foreign 401  403     403     403     403     200     200     403     403     403
show_centre      unknown 401  403     403     403     403     200     200     403     403     403
list_shares      own     401  200:0   200     200     200     200     200     200:0   200:0   200
list_shares      foreign 401  200:0   200:0   200:0   200:0   200     200     200:0   200:0   200:0
list_shares      unknown 401  200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0   200:0
record_shares    own     401  403     403     403     403     403     200     200     403     403
record_shares    foreign 401  403     403     403     403     403     200     403     200     403
record_shares    unknown 401  403     403     403     403     403     200     403     403     403
quote_job        own     401  404     200     200     200     200     200     404     404     200
quote_job        foreign 401  404     404     404     404     200     200     404     404     404
quote_job        unknown 401  404     404     404     404     404     404     404     404     404
list_tokens      own     401  200     200     200     200     200     200     200     200     200
list_tokens      foreign 401  403     403     403     403     403     200     403     403     403
list_tokens      unknown 401  403     403     403     403     403     200:0   403     403     403
make_token       own     401  201     201     201     201     201     201     201     201     403
make_token       foreign 401  403     403     403     403     403     201     403     403     403
make_token       unknown 401  403     403     403     403     403     201     403     403     403
revoke_token     own     401  200     200     200     200     200     200     200     200     403
revoke_token     foreign 401  404     404     404     404     404     200     404     404     403
revoke_token     unknown 401  404     404     404     404     404     404     404     404     403
show_heads       any     401  403     403     403     403     200     200     403     403     403
show_document    any     200  200     200     200     200     200     200     200     200     200
show_docs        any     200  200     200     200     200     200     200     200     200     200
show_asset       any     200  200     200     200     200     200     200     200     200     200
"""


ROLES = "nobody strangr member coord pi admin super agent other token".split()
UIDS = dict(
    zip(
        ROLES,
        (None, STRANGER, MEMBER, COORDINATOR, PI, ADMIN, SUPERUSER, AGENT, OTHER_AGENT, PI),
        strict=True,
    )
)


class Cell(NamedTuple):
    operation: str
    whose: str
    role: str
    expected: str


def cells() -> Iterator[Cell]:
    """Yield the cells of the table; a line about "any" stands for three cells."""
    for line in TABLE.strip().splitlines()[1:]:
        operation, on_what, *expected = line.split()
        for whose in (OWN, FOREIGN, NOBODYS) if on_what == "any" else (on_what,):
            for role, status in zip(ROLES, expected, strict=True):
                yield Cell(operation, whose, role, status)


EXPECTED = {(cell.operation, cell.whose, cell.role): cell.expected for cell in cells()}


class RoleRequests:
    """Requests for operations in each role."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._token = world.token(PI, "read")

    def call(self, operation: str, whose: str, role: str) -> Call:
        uid = UIDS[role]
        return call(self.world, operation, whose, SUPERUSER if uid is None else uid)

    def send(self, made: Call, role: str, **more: Any) -> httpx.Response:
        if made.body is not None:
            more["json"] = made.body
        if role == "token":
            return self.world.ask(made.method, made.path, token=self._token, **more)
        return self.world.ask(made.method, made.path, UIDS[role], **more)

    def response(self, operation: str, whose: str, role: str, **more: Any) -> httpx.Response:
        return self.send(self.call(operation, whose, role), role, **more)

    def outcome(self, operation: str, whose: str, role: str) -> str:
        return cell_of(operation, self.response(operation, whose, role))


def cell_of(operation: str, response: httpx.Response) -> str:
    """Return a response in the form of the table."""
    text = str(response.status_code)
    data = response.json().get("data") if "json" in response.headers["content-type"] else None
    if isinstance(data, list) and operation == "report_runs":
        return f"{text}:{data[0]['status']}"
    return f"{text}:0" if data == [] else text
