"""Use cases of projects and their members."""

from __future__ import annotations

from fairbank.bank.project import Member, Project, Role
from fairbank.bank.query import Page, ProjectQuery
from fairbank.bank.requests import AmendProject, CreateProject, RemoveProject, SetMember
from fairbank.bank.rules import Outcome
from fairbank.core.errors import NotFound
from fairbank.core.time import Clock
from fairbank.service.access.identity import Asker
from fairbank.service.access.permissions import Action, check_allowed
from fairbank.service.dry_run import RequestHandler, apply_request
from fairbank.service.project_cache import ProjectCache
from fairbank.store.contract import Store


class Projects:
    """Use cases of projects."""

    def __init__(
        self, store: Store, handler: RequestHandler, directory: ProjectCache, clock: Clock
    ) -> None:
        self._store, self._handler, self._directory, self._clock = store, handler, directory, clock

    def find(self, query: ProjectQuery, page: Page) -> list[Project]:
        """Return the projects that `query.sight` includes."""
        with self._store.reading() as reader:
            return reader.projects(query, page)

    def get(self, asker: Asker, number: int) -> Project:
        """Return a project. Raises NotFound for a missing project as for a project of others."""
        found = self.find(
            ProjectQuery(visibility=asker.visibility, ids=frozenset({number})), Page(1)
        )
        if not found:
            raise NotFound(
                f"there is no project {number}",
                field="project",
                remedy="list yours with: fairbank project list",
            )
        return found[0]

    def members(self, asker: Asker, number: int, page: Page) -> list[Member]:
        """Return the members by uid; `page.after` is a uid. Raises NotFound."""
        project = self.get(asker, number)
        with self._store.reading() as reader:
            return reader.members(project.id, page)

    def create(self, asker: Asker, request: CreateProject) -> Outcome:
        """Create a project. Raises Forbidden."""
        check_allowed(asker, Action.CREATE_PROJECT)
        outcome = self._ask(asker, request)
        self._directory.refresh()
        return outcome

    def amend(self, asker: Asker, request: AmendProject) -> Outcome:
        """Change the names or the parent of a project, or restore a removed one. Raises NotFound,
        Forbidden.
        """
        self.get(asker, request.project)
        check_allowed(asker, Action.AMEND_PROJECT)
        if request.parent:
            self._directory.refresh()
            try:
                self._directory.by_id(request.parent)
            except NotFound as missing:
                missing.field = "parent"
                raise
        return self._changed(asker, request)

    def remove(self, asker: Asker, request: RemoveProject) -> Outcome:
        """Remove a project. Raises NotFound, Forbidden.

        For some seconds another server may still let its runs use a parent's credit: until its
        project cache is read again.
        """
        self.get(asker, request.project)
        check_allowed(asker, Action.AMEND_PROJECT)
        return self._changed(asker, request)

    def _changed(self, asker: Asker, request: AmendProject | RemoveProject) -> Outcome:
        outcome = self._ask(asker, request)
        self._directory.refresh()
        return outcome

    def set_member(
        self,
        asker: Asker,
        number: int,
        uid: int,
        role: Role | None,
        *,
        comment: str | None = None,
        key: str | None = None,
    ) -> Outcome:
        """Give a user a role in a project; None takes it away. Raises NotFound, Forbidden.

        The ledger checks, with the roles of that moment, if the user may give or take this role.
        """
        project = self.get(asker, number)
        check_allowed(asker, Action.SET_MEMBER, project.id)
        by = None if asker.superuser else asker.uid
        return self._ask(
            asker,
            SetMember(project=project.id, uid=uid, role=role, by=by, comment=comment, key=key),
        )

    def _ask(
        self, asker: Asker, request: CreateProject | AmendProject | RemoveProject | SetMember
    ) -> Outcome:
        return apply_request(self._handler, asker, request, self._clock.now())
