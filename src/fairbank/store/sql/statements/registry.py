"""Statements on projects, members and tokens."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select, true

from fairbank.bank.query import Page, ProjectQuery
from fairbank.store.schema import member, project, token
from fairbank.store.sql.statements.conditions import equal, paged
from fairbank.store.sql.statements.visibility import is_in, is_visible


def projects(query: ProjectQuery, page: Page) -> Select[Any]:
    p = project.c
    wanted = [
        is_visible(query.visibility, p.id),
        is_in(p.id, query.ids),
        equal(p.gname, query.gname),
        equal(p.gid, query.gid),
        equal(p.account, query.account),
        true() if query.removed is None else p.removed.is_(query.removed),
    ]
    return paged(select(project).where(*wanted), p.id, page)


def members(project: int, page: Page) -> Select[Any]:
    return paged(select(member).where(member.c.project == project), member.c.uid, page)


def tokens(uid: int | None, page: Page | None) -> Select[Any]:
    found = select(token).where(equal(token.c.uid, uid))
    return found.order_by(token.c.id) if page is None else paged(found, token.c.id, page)
