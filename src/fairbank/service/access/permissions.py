"""Permissions: one table, denied by default. A user gets 404, not 403, for what they may not
see.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from fairbank.bank.project import Role
from fairbank.core.errors import Forbidden
from fairbank.service.access.identity import Identity


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
    AUDIT = "audit the books"
    MANAGE_TOKENS = "manage other people's tokens"


# Project roles that may do it in their own project. Superusers may do everything; admins may see
# everything and change nothing.
ALLOWED_TO_ROLES: Mapping[Action, frozenset[Role]] = {
    Action.SET_MEMBER: frozenset({Role.PI, Role.COORDINATOR}),
    Action.SET_CAP: frozenset({Role.PI, Role.COORDINATOR}),
    Action.TRANSFER: frozenset({Role.PI}),
}
ALLOWED_TO_ADMINS = frozenset({Action.AUDIT})


def is_allowed(identity: Identity, what: Action, project: int | None = None) -> bool:
    """Return True if a user may do this, in a project if one is given."""
    if _lacks_scope(identity, what):
        return False
    if identity.superuser or (identity.admin and what in ALLOWED_TO_ADMINS):
        return True
    role = None if project is None else identity.roles.get(project)
    return role in ALLOWED_TO_ROLES.get(what, frozenset())


def check_allowed(identity: Identity, what: Action, project: int | None = None) -> None:
    """Raise Forbidden unless a user may do this, in a project if one is given."""
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


def check_cluster(identity: Identity, cluster: str, what: str = "report runs") -> None:
    """Raise Forbidden unless a user may report for a cluster; `what` names the action in the
    message.
    """
    if cluster in identity.clusters or (identity.superuser and "write" in identity.scopes):
        return
    raise Forbidden(
        f"you may not {what} of cluster {cluster}",
        field="cluster",
        remedy=f"use the cluster's agent, or a token with the scope agent:{cluster}",
    )
