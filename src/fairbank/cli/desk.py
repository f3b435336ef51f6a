"""Where one command is carried out: the client, the streams, the clock, and how its reader wants to see things."""

from __future__ import annotations

import os
import sys
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairbank.cli.parser import did_you_mean, terminal_width
from fairbank.cli.settings import Settings, read_client_settings
from fairbank.cli.zone import Local
from fairbank.report.cells import folded, plain
from fairbank.report.columns import Look
from fairbank.rest.client import Client
from fairbank.values.time import Instant, parse_instant, parse_moment
from fairbank.values.trouble import Unknown, Unreachable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from fairbank.cli.house import House

    Query = Mapping[str, object]

PAGE = 1_000
CHECK = "check --server or FAIRBANK_SERVER"
Row = dict[str, Any]
_NOTHING: Mapping[str, object] = {}


class Desk:
    """One command's surroundings. `prog` is how it was called."""

    def __init__(self, house: House, options: Namespace, prog: str) -> None:
        self.house, self.options, self.prog = house, options, prog
        self.as_of: str | None = None
        """When the bank gave its last answer, by its own clock."""
        self.later: list[str] = []
        """What is to be noted once the answer is shown."""

    # --- the bank ---

    @cached_property
    def settings(self) -> Settings:
        given = vars(self.options)
        return read_client_settings({"server": given.get("server"), "cluster": given.get("cluster")}, os.environ)

    @cached_property
    def client(self) -> Client:
        return Client(self.settings.address, signer=self.settings.signer(), acting_as=getattr(self.options, "acting_as", None))

    def get(self, path: str, query: Query = _NOTHING) -> dict[str, Any]:
        """One answer of the bank; of the query None is left out. Remembers when it was given."""
        answer = self.client.get(path, query)
        if "data" not in answer:
            raise Unreachable(f"what answers at {self.settings.address} is not a bank", field="server", remedy=CHECK)
        self.as_of = answer.get("as_of") or self.as_of
        return answer

    def rows(self, path: str, query: Query = _NOTHING, limit: int = 0) -> list[Row]:
        """The rows of a list, page after page, at most `limit` (0: all). Says on stderr when there are more."""
        rows: list[Row] = []
        after: object = None
        while True:
            answer = self.get(path, {**query, "limit": min(limit - len(rows), PAGE) if limit else PAGE, "after": after})
            rows += answer["data"]
            after = answer.get("next")
            if not after:
                return rows
            if limit and len(rows) >= limit:
                self.later.append(f"There are more; this shows {limit}. To see them, add --limit {10 * limit}")
                return rows

    def one(self, path: str) -> Row:
        """A single object."""
        found: Row = self.get(path)["data"]
        return found

    @property
    def bank_time(self) -> Instant:
        """The bank's clock when it last answered; ours before that."""
        return parse_instant(self.as_of) if self.as_of else self.now()

    def now(self) -> Instant:
        return Instant(int(time.time()))

    def moment(self, said: str | None, field: str, usual: str | None = None) -> str | None:
        """A time as people write it, as the bank reads it."""
        word = said or usual
        if word is None:
            return None
        return f"{parse_moment(word, self.now(), Local(), field=field)}"

    # --- people ---

    def me(self) -> int:
        """Whose rights count: ours, or those of the user acted as."""
        if getattr(self.options, "acting_as", None) is None and self.settings.address.scheme == "unix":
            return os.geteuid()
        return int(self.one("/whoami")["uid"])

    @cached_property
    def _names(self) -> dict[int, str]:
        return {}

    def user_name(self, uid: object) -> str:
        """The user's name on this host, else the number."""
        if not isinstance(uid, int):
            return ""
        if uid not in self._names:
            from pwd import getpwuid

            try:
                self._names[uid] = getpwuid(uid).pw_name
            except (KeyError, OverflowError):
                self._names[uid] = str(uid)
        return self._names[uid]

    def uid_of(self, user: str, field: str = "--user") -> int:
        """The number of a user by name or number. Raises Unknown."""
        if user.isascii() and user.isdigit() and len(user) <= 10:
            return int(user)
        from pwd import getpwnam

        try:
            return getpwnam(user).pw_uid
        except (KeyError, ValueError) as bad:
            raise Unknown(
                f"there is no user {plain(user[:64])!r} on this host", field=field, remedy="write the name or the number"
            ) from bad

    def check_account(self, account: str | None) -> None:
        """When a list came back empty: whether there is such a project at all. Raises Unknown."""
        if account is None or self.get("/project", {"account": account})["data"]:
            return
        mine = [str(row["account"]) for row in self.rows("/project")]
        raise Unknown(
            f"you have no project with the account {plain(account[:64])!r}{did_you_mean(account, mine)}",
            field="--account",
            remedy="list yours with: fairbank project list",
        )

    # --- what is said ---

    @property
    def for_people(self) -> bool:
        """Whether somebody reads this on a terminal."""
        return sys.stdout.isatty()

    @cached_property
    def look(self) -> Look:
        form = getattr(self.options, "form", None)
        return Look(
            units=getattr(self.options, "units", "h"),
            separators=self.for_people and form is None,
            zone=Local(),
            exact=form is not None,
        )

    @property
    def room(self) -> int:
        return terminal_width()

    @property
    def colours(self) -> bool:
        wanted = getattr(self.options, "color", "auto")
        return wanted == "always" or (wanted == "auto" and self.for_people and not os.environ.get("NO_COLOR"))

    def say(self, text: str = "") -> None:
        """A line of the answer, or several. Nothing in it does anything to a terminal but begin a new line."""
        self.paint("\n".join(map(plain, text.split("\n"))))

    def paint(self, text: str) -> None:
        """The same for text that is already harmless, and may hold colours of ours."""
        print(text)

    def note(self, line: str) -> None:
        """Talk beside the answer, on stderr, folded to the terminal's width; -q silences it."""
        if getattr(self.options, "quiet", False):
            return
        sys.stdout.flush()
        for each in folded(plain(line), self.room):
            print(each, file=sys.stderr)

    def detail(self, line: str) -> None:
        """What only -v says."""
        if getattr(self.options, "verbose", 0):
            self.note(line)

    def agreed(self, question: str) -> bool:
        """Whether to go on: asks on a terminal, unless --yes."""
        if self.options.yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return True
        sys.stdout.flush()
        print(f"{plain(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    @property
    def cluster(self) -> str | None:
        """The cluster that was named, if one was."""
        return self.settings.cluster
