"""Changes of roles: they depend on the roles at the time of application, not on those that the
identity had before.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from fairbank.bank.policy import Policy
from fairbank.bank.project import Role
from fairbank.bank.query import Page
from fairbank.bank.refusals import Reason, Refusal
from fairbank.bank.requests import CreateProject, SetMember, SubmittedRequest
from fairbank.bank.rules import Done, Outcome
from fairbank.core.errors import Forbidden
from fairbank.core.time import Instant
from fairbank.service.access.identity import Identity, Staff, identity_of
from fairbank.service.ledger import Ledger
from fairbank.service.projects import Projects
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.memory.store import MemoryStore
from tests.service.contexts import bank_context
from tests.support.clock import ManualClock
from tests.support.conditions import wait_until

SUPERUSER, PI, COORDINATOR, MEMBER = 1, 1001, 1002, 1003
STAFF = Staff(frozenset({SUPERUSER}), frozenset(), {})


class ProjectSite:
    """Services with one project that has a PI, a coordinator and a member."""

    def __init__(self) -> None:
        self.store, clock = MemoryStore(), ManualClock(1_795_000_000)
        self.write_queue = WriterThreads(Ledger(self.store, Policy()))
        self.projects = Projects(bank_context(self.store, clock, handler=self.write_queue))
        roles = {PI: Role.PI, COORDINATOR: Role.COORDINATOR, MEMBER: Role.MEMBER}
        self.write_queue.apply([staff_request(CreateProject(gname="chem", gid=1, account="chem"))])
        self.write_queue.apply(
            [staff_request(SetMember(project=1, uid=uid, role=role)) for uid, role in roles.items()]
        )

    def identity(self, uid: int) -> Identity:
        """Return the identity of a user with their current permissions."""
        with self.store.reading() as reader:
            return identity_of(
                uid,
                STAFF,
                {membership.project: membership.role for membership in reader.memberships(uid)},
            )

    def roles(self) -> dict[int, Role]:
        with self.store.reading() as reader:
            return {member.uid: member.role for member in reader.members(1, Page())}

    def set_member_after(
        self, change: SetMember, identity: Identity, uid: int, role: Role | None
    ) -> Outcome:
        """Return the result for a user whose permissions changed between the request and its
        application.
        """
        with ThreadPoolExecutor(1) as pool:
            with self.store.transaction():
                self.write_queue.submit([staff_request(change)], lambda result: None)
                wait_until(lambda: self.write_queue.waiting == 0, "the change is taken up")
                future = pool.submit(self.projects.set_member, identity, 1, uid, role)
                wait_until(lambda: self.write_queue.waiting == 1, "the request waits in the queue")
            return future.result()


def staff_request(request: CreateProject | SetMember) -> SubmittedRequest:
    return SubmittedRequest(request, Instant(1_795_000_000), SUPERUSER)


@pytest.fixture
def site() -> Iterator[ProjectSite]:
    site = ProjectSite()
    yield site
    site.write_queue.close()


def refusal_reason(outcome: Outcome) -> Reason:
    assert isinstance(outcome, Refusal)
    return outcome.reason


@pytest.mark.parametrize("role", [Role.COORDINATOR, Role.MEMBER, None])
def test_coordinator_cannot_change_a_member_promoted_to_pi_meanwhile(
    site: ProjectSite, role: Role | None
) -> None:
    promotion = SetMember(project=1, uid=MEMBER, role=Role.PI)
    assert (
        refusal_reason(site.set_member_after(promotion, site.identity(COORDINATOR), MEMBER, role))
        is Reason.ROLE_ABOVE
    )
    assert site.roles()[MEMBER] is Role.PI


def test_user_demoted_meanwhile_cannot_add_members(site: ProjectSite) -> None:
    demotion = SetMember(project=1, uid=COORDINATOR, role=None)
    assert (
        refusal_reason(
            site.set_member_after(demotion, site.identity(COORDINATOR), 1004, Role.MEMBER)
        )
        is Reason.ROLE_ABOVE
    )
    assert site.roles() == {PI: Role.PI, MEMBER: Role.MEMBER}


def test_coordinator_may_remove_a_member_demoted_meanwhile(site: ProjectSite) -> None:
    site.write_queue.apply([staff_request(SetMember(project=1, uid=MEMBER, role=Role.COORDINATOR))])
    demotion = SetMember(project=1, uid=MEMBER, role=Role.MEMBER)
    assert isinstance(
        site.set_member_after(demotion, site.identity(COORDINATOR), MEMBER, None), Done
    )
    assert MEMBER not in site.roles()


def test_staff_may_remove_the_pi(site: ProjectSite) -> None:
    assert isinstance(site.projects.set_member(site.identity(SUPERUSER), 1, PI, None), Done)


def test_members_may_not_change_roles(site: ProjectSite) -> None:
    with pytest.raises(Forbidden):
        site.projects.set_member(site.identity(MEMBER), 1, 1004, Role.MEMBER)
