"""Use cases of projects and their members."""

from __future__ import annotations

from fairbank.bank.project import Member, Project, Role
from fairbank.bank.query import ListedMember, Page, ProjectQuery
from fairbank.bank.requests import AmendProject, CreateProject, RemoveProject, Request, SetMember
from fairbank.bank.rules import Outcome
from fairbank.core.errors import NotFound
from fairbank.core.ids import user_uid
from fairbank.service.access.identity import Action, Identity, check_allowed
from fairbank.service.use_cases import UseCases, only


class Projects(UseCases):
    """Use cases of projects."""

    def find(self, query: ProjectQuery, page: Page) -> list[Project]:
        """Return the projects that `query.visibility` includes."""
        with self._store.reading() as reader:
            return reader.projects(query, page)

    def get(self, identity: Identity, number: int) -> Project:
        """Return a project. Raises NotFound for a missing project as for a project of others."""
        projects = self.find(
            ProjectQuery(visibility=identity.visibility, ids=frozenset({number})), Page(1)
        )
        remedy = "list yours with: fairbank project list"
        return only(projects, f"project {number}", "project", remedy)

    def members(self, identity: Identity, number: int, page: Page) -> list[ListedMember]:
        """Return the members by uid, those through the Unix group too.

        Raises NotFound. It may query LDAP: call it from a worker thread.

        Args:
            identity: the user who asks; must see the project.
            number: the project.
            page: the rows of the page; `page.after` is a uid.
        """
        project = self.get(identity, number)
        by_group = self._context.memberships.by_group(project)
        with self._store.reading() as reader:
            rows = reader.members(project.id, page)
        listed = {
            uid: ListedMember(Member(project.id, uid, Role.MEMBER), by_group=True)
            for uid in by_group
            if page.after is None or uid > page.after
        }
        # A row of the bank overrides the group. One beyond this page is cut off with its group's.
        listed |= {row.uid: ListedMember(row, by_group=False) for row in rows}
        return [listed[uid] for uid in sorted(listed)[: page.size]]

    def create(self, identity: Identity, request: CreateProject) -> Outcome:
        """Create a project. Raises Forbidden."""
        check_allowed(identity, Action.CREATE_PROJECT)
        return self._apply_and_refresh(identity, request)

    def amend(self, identity: Identity, request: AmendProject) -> Outcome:
        """Change the names or the parent of a project, or restore a removed one. Raises NotFound,
        Forbidden.
        """
        self.get(identity, request.project)
        check_allowed(identity, Action.AMEND_PROJECT)
        if request.parent:
            self._project_cache.refresh()
            try:
                self._project_cache.by_id(request.parent)
            except NotFound as missing:
                missing.field = "parent"
                raise
        return self._apply_and_refresh(identity, request)

    def remove(self, identity: Identity, request: RemoveProject) -> Outcome:
        """Remove a project. Raises NotFound, Forbidden.

        For some seconds another server may still let its runs use a parent's credit: until its
        project cache is read again.
        """
        self.get(identity, request.project)
        check_allowed(identity, Action.AMEND_PROJECT)
        return self._apply_and_refresh(identity, request)

    def _apply_and_refresh(self, identity: Identity, request: Request) -> Outcome:
        outcome = self._apply(identity, request)
        self._project_cache.refresh()
        return outcome

    def set_member(
        self,
        identity: Identity,
        number: int,
        uid: int,
        role: Role | None,
        *,
        comment: str | None = None,
        key: str | None = None,
    ) -> Outcome:
        """Give a user a role in a project, or take it away. Raises NotFound, Forbidden,
        InvalidInput.

        The ledger checks, with the roles of that moment, if the user may give or take this role.

        Args:
            identity: the user who asks. Their own role limits the roles that they may give or take,
                unless they are a superuser.
            number: the project.
            uid: the user who gets the role.
            role: the new role; None takes it away.
            comment: reason, stored in the journal.
            key: idempotency key; None: a repeated request is a new one.
        """
        project = self.get(identity, number)
        check_allowed(identity, Action.SET_MEMBER, project.id)
        if role is not None:
            user_uid(uid)
        by = None if identity.superuser else identity.uid
        return self._apply(
            identity,
            SetMember(project=project.id, uid=uid, role=role, by=by, comment=comment, key=key),
        )

    def warnings_of_removal(self, identity: Identity, number: int, uid: int) -> list[str]:
        """Return the warning that a user without a role of the bank is still a member of a project
        through its Unix group, if so. It may query LDAP: call it from a worker thread.
        """
        project = self.get(identity, number)
        if uid not in self._context.memberships.by_group(project):
            return []
        return [
            f"user {uid} is still a member through the Unix group {project.gname}: remove them"
            " there"
        ]
