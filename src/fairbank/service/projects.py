"""Projects and their members."""

from __future__ import annotations

from fairbank.bank.ledger import Outcome
from fairbank.bank.project import Member, Project, Role
from fairbank.bank.query import Page, ProjectQuery
from fairbank.bank.wish import AmendProject, CreateProject, RemoveProject, SetMember
from fairbank.core.errors import Unknown
from fairbank.core.time import Clock
from fairbank.service.access.identity import Asker
from fairbank.service.access.permissions import Action, check_allowed
from fairbank.service.dry_run import RequestHandler, apply_request
from fairbank.service.project_cache import ProjectCache
from fairbank.store.contract import Store


class Projects:
    """The use cases around projects."""

    def __init__(
        self, store: Store, judge: RequestHandler, directory: ProjectCache, clock: Clock
    ) -> None:
        self._store, self._judge, self._directory, self._clock = store, judge, directory, clock

    def find(self, query: ProjectQuery, page: Page) -> list[Project]:
        """Projects, as far as `query.sight` sees them."""
        with self._store.reading() as reader:
            return reader.projects(query, page)

    def get(self, asker: Asker, number: int) -> Project:
        """Raises Unknown, for a project that is not there as for one of others."""
        found = self.find(ProjectQuery(sight=asker.sight, ids=frozenset({number})), Page(1))
        if not found:
            raise Unknown(
                f"there is no project {number}",
                field="project",
                remedy="list yours with: fairbank project list",
            )
        return found[0]

    def members(self, asker: Asker, number: int, page: Page) -> list[Member]:
        """By uid; `page.after` is one. Raises Unknown."""
        project = self.get(asker, number)
        with self._store.reading() as reader:
            return reader.members(project.id, page)

    def create(self, asker: Asker, wish: CreateProject) -> Outcome:
        """Enter a project. Raises Forbidden."""
        check_allowed(asker, Action.CREATE_PROJECT)
        outcome = self._ask(asker, wish)
        self._directory.refresh()
        return outcome

    def amend(self, asker: Asker, wish: AmendProject) -> Outcome:
        """Change names or parent, or bring a removed project back. Raises Unknown, Forbidden."""
        self.get(asker, wish.project)
        check_allowed(asker, Action.AMEND_PROJECT)
        if wish.parent:
            self._directory.refresh()
            try:
                self._directory.by_id(wish.parent)
            except Unknown as missing:
                missing.field = "parent"
                raise
        return self._changed(asker, wish)

    def remove(self, asker: Asker, wish: RemoveProject) -> Outcome:
        """Let a project be no more. Raises Unknown, Forbidden.

        Another server may still grant its runs what a parent shares, for as long as its directory may be old: seconds.
        """
        self.get(asker, wish.project)
        check_allowed(asker, Action.AMEND_PROJECT)
        return self._changed(asker, wish)

    def _changed(self, asker: Asker, wish: AmendProject | RemoveProject) -> Outcome:
        outcome = self._ask(asker, wish)
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
        """Give `uid` a role, or take it away with None. Raises Unknown, Forbidden.

        Which roles the asker may give and take is judged with the wish, by the roles as they are then.
        """
        project = self.get(asker, number)
        check_allowed(asker, Action.SET_MEMBER, project.id)
        by = None if asker.superuser else asker.uid
        return self._ask(
            asker,
            SetMember(project=project.id, uid=uid, role=role, by=by, comment=comment, key=key),
        )

    def _ask(
        self, asker: Asker, wish: CreateProject | AmendProject | RemoveProject | SetMember
    ) -> Outcome:
        return apply_request(self._judge, asker, wish, self._clock.now())
