"""Requests about what belongs to no allocation: projects, members, tokens, and facts that move nothing."""

from __future__ import annotations

from fairbank.bank.project import Role
from fairbank.bank.requests.base import BaseRequest
from fairbank.core.time import Instant


class CreateProject(BaseRequest, frozen=True, kw_only=True, tag="project"):
    """Enter a project: its Unix group, gid and Slurm account."""

    gname: str
    gid: int
    account: str
    parent: int | None = None


class AmendProject(BaseRequest, frozen=True, kw_only=True, tag="amend-project"):
    """Change the names of a project, or its parent (0: none), or bring back one that was removed; None leaves it as it is.

    Its gid and account change only while it never had an allocation or a run.
    """

    project: int
    gname: str | None = None
    gid: int | None = None
    account: str | None = None
    parent: int | None = None
    restore: bool = False


class RemoveProject(BaseRequest, frozen=True, kw_only=True, tag="remove-project"):
    """Let a project be no more: it has no allocation that is not over, and nothing held."""

    project: int


class SetMember(BaseRequest, frozen=True, kw_only=True, tag="member"):
    """Give user `uid` a role in a project; None takes it away.

    `by` is the user whose own role decides what may be given and taken, as it is when the request is judged; None is staff, who may do all.
    """

    project: int
    uid: int
    role: Role | None
    by: int | None = None


class IssueToken(BaseRequest, frozen=True, kw_only=True, tag="issue-token"):
    """Let whoever knows a secret sign in as user `uid` until `expires`. Of the secret the bank only ever sees `digest`, made with a key;
    `parent` is the token by which this one was asked for."""

    digest: bytes
    uid: int
    label: str
    scopes: tuple[str, ...]
    expires: Instant
    parent: int | None = None


class RevokeToken(BaseRequest, frozen=True, kw_only=True, tag="revoke-token"):
    """Make a token good for nothing from now on; `uid` is whose it must be, None lets it be anybody's."""

    token: int
    uid: int | None = None


class AuditNote(BaseRequest, frozen=True, kw_only=True, tag="note"):
    """Keep a fact that moves nothing: somebody acted as another user."""

    details: str
