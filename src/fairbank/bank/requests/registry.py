"""Requests about rows without an allocation: projects, members, tokens, and notes."""

from __future__ import annotations

from fairbank.bank.project import Role
from fairbank.bank.requests.base import BaseRequest
from fairbank.core.time import Instant


class CreateProject(BaseRequest, frozen=True, kw_only=True, tag="project"):
    """Create a project with its Unix group, gid and Slurm account."""

    gname: str
    gid: int
    account: str
    parent: int | None = None


class AmendProject(BaseRequest, frozen=True, kw_only=True, tag="amend-project"):
    """Change the names of a project or its parent (0: none), or restore it; None leaves a field
    unchanged.

    Its gid and account change only while it never had an allocation or a run.
    """

    project: int
    gname: str | None = None
    gid: int | None = None
    account: str | None = None
    parent: int | None = None
    restore: bool = False


class RemoveProject(BaseRequest, frozen=True, kw_only=True, tag="remove-project"):
    """Remove a project: its allocations have ended, and it has no holds."""

    project: int


class SetMember(BaseRequest, frozen=True, kw_only=True, tag="member"):
    """Give user `uid` a role in a project; None removes the role.

    `by` is the user whose own role decides what they may grant; None is staff, who may grant all.
    The roles at the time of the transaction count.
    """

    project: int
    uid: int
    role: Role | None
    by: int | None = None


class IssueToken(BaseRequest, frozen=True, kw_only=True, tag="issue-token"):
    """Create a token: who knows its secret is authenticated as user `uid` until `expires`.

    The bank has only `digest`, made with a key. `parent` is the token of the request, if it had
    one.
    """

    digest: bytes
    uid: int
    label: str
    scopes: tuple[str, ...]
    expires: Instant
    parent: int | None = None


class RevokeToken(BaseRequest, frozen=True, kw_only=True, tag="revoke-token"):
    """Revoke a token; `uid` is its required owner, None allows any owner."""

    token: int
    uid: int | None = None


class AuditNote(BaseRequest, frozen=True, kw_only=True, tag="note"):
    """Record a fact that moves no credit: a user acted as another user."""

    details: str
