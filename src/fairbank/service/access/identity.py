"""Identity of the user who sends a request, perhaps on behalf of another user, and permissions.

Permissions are one table, denied by default. A user gets 404, not 403, for what they may not see.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from fairbank.bank.project import Role
from fairbank.bank.query import Visibility
from fairbank.cluster.partition import Cluster, cluster_names
from fairbank.core.errors import Forbidden
from fairbank.core.ids import known_uid
from fairbank.core.time import Instant

FULL = frozenset({"read", "write"})
"""Scopes of a user who signed in without a token."""


class VisibleJobs(Enum):
    """Jobs and usage that users who are not staff see: their own and those of projects that they
    lead, those of their projects, or all.
    """

    OWN = "own"
    PROJECT = "project"
    ALL = "all"


class Staff(msgspec.Struct, frozen=True):
    """Staff and agents named in the settings, and what all others see of jobs."""

    superusers: frozenset[int] = frozenset()
    admins: frozenset[int] = frozenset()
    agents: Mapping[int, frozenset[str]] = {}
    visible_jobs: VisibleJobs = VisibleJobs.PROJECT


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Authenticated user. `actor` signed in; `uid` is the user whose permissions count: the actor,
    or the user acted as.

    `roles` are the uid's roles in projects, `clusters` those it may report runs for, and `scopes`
    what the credential allows. `until` is when the credential ends and `token` its number; None
    without a token.
    """

    actor: int
    uid: int
    superuser: bool = False
    admin: bool = False
    clusters: frozenset[str] = frozenset()
    roles: Mapping[int, Role] = {}
    scopes: frozenset[str] = FULL
    until: Instant | None = None
    token: int | None = None
    visible_jobs: VisibleJobs = VisibleJobs.PROJECT

    @property
    def acting_as(self) -> int | None:
        return self.uid if self.uid != self.actor else None

    @property
    def visibility(self) -> Visibility:
        """Return what the user may see: staff everything, others their projects and what they
        own.
        """
        if self.superuser or self.admin:
            return Visibility(everything=True)
        return Visibility(uid=known_uid(self.uid), projects=frozenset(self.roles))

    @property
    def sender_of_faults(self) -> int | None:
        """Return whose refused reports with faults of the sender the user sees: their own, staff
        those of all (None).
        """
        return None if self.visibility.everything else self.uid

    @property
    def job_visibility(self) -> Visibility:
        """Return what the user may see of jobs and usage."""
        if self.visible_jobs is VisibleJobs.ALL:
            return Visibility(everything=True)
        return self.journal_visibility

    @property
    def journal_visibility(self) -> Visibility:
        """Return what the user may see of journals, which also have entries of jobs."""
        visibility = self.visibility
        if visibility.everything or self.visible_jobs is not VisibleJobs.OWN:
            return visibility
        led = frozenset(number for number, role in self.roles.items() if role is not Role.MEMBER)
        return msgspec.structs.replace(
            visibility, projects=led, own_jobs_of=visibility.projects - led
        )


def identity_of(
    actor: int,
    staff: Staff,
    roles: Mapping[int, Role],
    *,
    acting_as: int | None = None,
    scopes: frozenset[str] = FULL,
    until: Instant | None = None,
    token: int | None = None,
) -> Identity:
    """Return the identity of a signed-in user.

    Acting as another user leaves one's own permissions behind.

    Args:
        actor: user who signed in.
        staff: staff and agents of the settings.
        roles: roles of the user whose permissions count.
        acting_as: the user for whom the actor acts, if any.
        until: end of the credential.
        token: number of the token, if the user signed in with one.

    Raises:
        Forbidden: the actor may not act as that user, or an admin would act as a superuser.
    """
    uid = actor if acting_as is None else acting_as
    if uid != actor:
        _check_acting_as(actor, uid, staff)
    own = (
        frozenset()
        if uid != actor
        else frozenset(
            scope.removeprefix("agent:") for scope in scopes if scope.startswith("agent:")
        )
    )
    named = staff.agents.get(uid, frozenset()) if "write" in scopes else frozenset()
    return Identity(
        actor=actor,
        uid=uid,
        superuser=uid in staff.superusers,
        admin=uid in staff.admins,
        clusters=own | named,
        roles=roles,
        scopes=scopes,
        until=until,
        token=token,
        visible_jobs=staff.visible_jobs,
    )


def _check_acting_as(actor: int, uid: int, staff: Staff) -> None:
    """Check that one user may act as another. Raises Forbidden."""
    if actor not in staff.superusers and actor not in staff.admins:
        raise Forbidden(
            "only staff may act as another user",
            field="X-Fairbank-As",
            remedy="send the request as yourself",
        )
    # Else an admin could get the permissions of a superuser.
    if uid in staff.superusers and actor not in staff.superusers:
        raise Forbidden(
            "an admin may not act as a superuser",
            field="X-Fairbank-As",
            remedy="name a user without that role",
        )


# --- permissions ---


class Action(Enum):
    """Operations that change something, or show what members may not see."""

    CREATE_PROJECT = "enter projects"
    AMEND_PROJECT = "change or remove projects"
    SET_MEMBER = "add or remove members"
    OPEN_ALLOCATION = "make allocations"
    AMEND_ALLOCATION = "change allocations"
    SET_CAP = "cap users"
    DEPOSIT = "deposit"
    WITHDRAW = "withdraw"
    TRANSFER = "transfer"
    REFUND = "refund"
    AUDIT = "audit the ledger"
    MANAGE_TOKENS = "manage other people's tokens"


# Project roles that may do it in their own project. Superusers may do everything; admins may see
# everything and change nothing as themselves.
ALLOWED_TO_ROLES: Mapping[Action, frozenset[Role]] = {
    Action.SET_MEMBER: frozenset({Role.PI, Role.COORDINATOR}),
    Action.SET_CAP: frozenset({Role.PI, Role.COORDINATOR}),
    Action.TRANSFER: frozenset({Role.PI}),
}
ALLOWED_TO_ADMINS = frozenset({Action.AUDIT})


def is_allowed(identity: Identity, what: Action, project: int | None = None) -> bool:
    """Return True if a user may do this.

    Args:
        identity: the user, and the scopes of their credential, which must allow it, too.
        what: the action.
        project: the project in which they would do it, by number; None: in none, so only staff may.
    """
    if _lacks_scope(identity, what):
        return False
    if identity.superuser or (identity.admin and what in ALLOWED_TO_ADMINS):
        return True
    role = None if project is None else identity.roles.get(project)
    return role in ALLOWED_TO_ROLES.get(what, frozenset())


def check_allowed(identity: Identity, what: Action, project: int | None = None) -> None:
    """Raise Forbidden unless a user may do this (arguments: `is_allowed`)."""
    if not is_allowed(identity, what, project):
        who = sorted(role.value for role in ALLOWED_TO_ROLES.get(what, ()))
        who = [*who, *(["admin"] if what in ALLOWED_TO_ADMINS else []), "superuser"]
        scope = "; a token needs the scope 'write'" if _lacks_scope(identity, what) else ""
        raise Forbidden(
            f"you may not {what.value} here",
            remedy=f"ask {'an' if who[0] == 'admin' else 'a'} {' or '.join(who)}{scope}",
        )


def _lacks_scope(identity: Identity, what: Action) -> bool:
    """Return True if the token allows only reading and the action needs more."""
    return what is not Action.AUDIT and "write" not in identity.scopes


def check_cluster(
    identity: Identity, cluster: str, known: Mapping[str, Cluster], what: str = "report runs"
) -> None:
    """Raise Forbidden unless a user may report for a cluster.

    Args:
        identity: an agent of the cluster, or a superuser whose credential has the scope `write`.
        cluster: name of the cluster.
        known: clusters of the settings, which only agents and staff learn from the error.
        what: name of the action in the message, after "you may not".
    """
    if cluster in identity.clusters or (identity.superuser and "write" in identity.scopes):
        return
    missing, remedy = "", "use the cluster's agent"
    if cluster not in known and (identity.clusters or identity.admin or identity.superuser):
        missing = ", which the settings do not have"
        remedy = f"{cluster_names(known)}; add [clusters.{cluster}] with the agent's user in agents"
    raise Forbidden(
        f"you may not {what} of cluster {cluster}{missing}",
        field="cluster",
        remedy=f"{remedy}, or a token with the scope agent:{cluster}",
    )
