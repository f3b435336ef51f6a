"""Parser for the lines of a story: the names in it and the request of each line."""

from __future__ import annotations

from typing import Any

import msgspec

from fairbank.bank.allocation import AllocationEvent, AllocationTerms
from fairbank.bank.project import Role, project_chain
from fairbank.bank.requests import (
    Adjust,
    Amend,
    Charge,
    CreateProject,
    Deposit,
    Expire,
    Hold,
    IssueToken,
    Lapse,
    Open,
    Refund,
    Release,
    Request,
    RevokeToken,
    SetCap,
    SetMember,
    Transfer,
    Undo,
    Withdraw,
)
from fairbank.bank.run import ReportedRun, RunEnd
from fairbank.bank.token import TokenGrant
from fairbank.cluster.job import JobDetails, Run
from fairbank.core.time import Instant
from fairbank.core.units import SuMinutes, parse_su

USERS = {"alice": 1001, "bob": 1002, "carol": 1003}
UNKNOWN_NUMBER = 999
OPTIONS = {
    "key",
    "note",
    "under",
    "with",
    "limit",
    "shared",
    "period",
    "from",
    "to",
    "until",
    "start",
    "ended",
    "billing",
    "seconds",
}
OPTIONS |= {"partition", "priced", "report", "by", "scope", "details"}

Options = dict[str, str]


def su(text: str) -> SuMinutes:
    """Return an amount in SU-minutes. In a story it may be 0 or negative."""
    if text.startswith("-"):
        return SuMinutes(-su(text[1:]))
    return SuMinutes(0) if text in ("0", "0m") else parse_su(text)


def run(text: str) -> Run:
    """Parse `7`, `7.1` (requeued once) or `7@9` (submitted at 9)."""
    text, _, restart = text.partition(".")
    job, _, submitted = text.partition("@")
    return Run("darwin", int(job), int(submitted or 0), int(restart or 0))


def job_details(options: dict[str, str]) -> JobDetails | None:
    """Return the details `name=relax,cpus=8`, by the names of the fields, and the time limit."""
    text = options.get("details")
    pairs = dict(pair.split("=") for pair in text.split(",")) if text else {}
    if "seconds" in options:
        pairs["limit_seconds"] = options["seconds"]
    facts: dict[str, Any] = {
        field: int(value) if value.isdigit() else value for field, value in pairs.items()
    }
    return JobDetails(**facts) if facts else None


def period(text: str) -> tuple[Instant, Instant]:
    start, _, end = text.partition("..")
    return Instant(int(start)), Instant(int(end))


def options_of(line: str) -> tuple[list[str], Options]:
    """Return the words of a line, and the options after the first two words."""
    words: list[str] = []
    options: Options = {}
    rest = line.split()
    while rest:
        word = rest.pop(0)
        if len(words) > 1 and word in OPTIONS:
            options[word] = rest.pop(0)
        else:
            words.append(word)
    return words, options


class StoryNames:
    """Numbers of projects, allocations and tokens by their names in a story."""

    def __init__(self) -> None:
        self.projects: dict[str, int] = {}
        self.parents: dict[int, int | None] = {}
        self.allocations: dict[str, int] = {}
        self.tokens: dict[str, int] = {}
        self.holds: dict[Run, tuple[int, int]] = {}
        """Owner and project of each run that had a hold."""

    def request(self, line: str, now: Instant) -> Request:
        """Return the request of a line. Raises AssertionError for an unknown line."""
        words, options = options_of(line)
        request = (
            self._of_run(words, options, now)
            or self._of_credit(words, options)
            or self._of_registry(words, options)
            or self._of_terms(words, options)
        )
        if request is None:
            raise AssertionError(f"cannot read {line!r}")
        return msgspec.structs.replace(request, key=options.get("key"), comment=options.get("note"))

    def _of_run(self, words: list[str], options: Options, now: Instant) -> Request | None:
        until, ended = (
            Instant(int(options.get("until", 1_000))),
            Instant(int(options.get("ended", now))),
        )
        priced_in = options.get("priced")
        match words:
            case ["hold", number, user, name, amount]:
                facts = self._run_fields(number, [user, name], options, now, until)
                self.holds[run(number)] = facts["owner"], facts["reported"].project
                return Hold(amount=su(amount), billing=options.get("billing"), **facts)
            case ["adjust", number, *who, amount]:
                facts = self._run_fields(number, who, options, now, until)
                return Adjust(amount=su(amount), priced_in=priced_in, **facts)
            case ["charge", number, *who, amount]:
                facts = self._run_fields(number, who, options, now, ended)
                end = RunEnd("COMPLETED", 60, ended)
                return Charge(amount=su(amount), end=end, priced_in=priced_in, **facts)
            case ["release", number, *who]:
                facts = self._run_fields(number, who, options, now, ended)
                return Release(end=RunEnd("NODE_FAIL", 0, ended), **facts)
            case ["lapse", number]:
                return Lapse(run=run(number))
            case ["refund", number, amount]:
                return Refund(run=run(number), amount=None if amount == "all" else su(amount))
        return None

    def _run_fields(
        self, number: str, who: list[str], options: Options, now: Instant, until: Instant
    ) -> dict[str, Any]:
        """Return the report, the projects, the resource and the owner of a request.

        A line without a user and a project takes those of the hold.
        """
        owner, project = self.holds.get(run(number), (0, 0))
        facts: dict[str, Any] = {}
        if who:
            user, name = who
            account = name.partition("/")[0]
            known = account in self.projects
            owner, (project, resource) = USERS[user], self._project_and_resource(name)
            project = project if known else 0
            facts = {
                "chain": project_chain(project, self.parents) if known else (),
                "account": None if known else account,
                "resource": resource,
            }
        reported = ReportedRun(
            run=run(number),
            project=project,
            partition=options.get("partition", ""),
            start=Instant(int(options.get("start", now))),
            until=until,
            job_details=job_details(options),
        )
        return facts | {"reported": reported, "owner": owner}

    def _of_credit(self, words: list[str], options: Options) -> Request | None:
        match words:
            case ["deposit", name, amount]:
                return Deposit(allocation=self._number(name), amount=su(amount))
            case ["withdraw", name, amount]:
                return Withdraw(allocation=self._number(name), amount=su(amount))
            case ["undo", entry, name, *of_run]:
                return Undo(
                    entry=int(entry),
                    allocation=self._number(name),
                    run=run(of_run[0]) if of_run else None,
                )
            case ["transfer", amount, source, "=>", target]:
                return Transfer(
                    source=self._number(source), target=self._number(target), amount=su(amount)
                )
            case ["cap", user, name, cap]:
                by, project = (
                    (USERS[options["by"]], self._project_and_resource(name)[0])
                    if "by" in options
                    else (None, None)
                )
                return SetCap(
                    allocation=self._number(name),
                    uid=USERS[user],
                    cap=None if cap == "none" else su(cap),
                    project=project,
                    by=by,
                )
        return None

    def _of_registry(self, words: list[str], options: Options) -> Request | None:
        by = USERS[options["by"]] if "by" in options else None
        match words:
            case ["project", name]:
                gid, under = 5_000 + sum(map(ord, name)), options.get("under")
                return CreateProject(
                    gname=name,
                    gid=gid,
                    account=name,
                    parent=self.projects.get(under, UNKNOWN_NUMBER) if under else None,
                )
            case ["member", name, user, role]:
                where = self.projects.get(name, UNKNOWN_NUMBER)
                return SetMember(
                    project=where,
                    uid=USERS[user],
                    role=None if role == "none" else Role(role),
                    by=by,
                )
            case ["token", label, user]:
                scopes = tuple(options.get("scope", "read").split(","))
                until = Instant(int(options.get("until", 1_000)))
                grant = TokenGrant(
                    digest=label.encode(),
                    uid=USERS[user],
                    label=label,
                    scopes=scopes,
                    expires=until,
                )
                return IssueToken(grant=grant)
            case ["revoke", label]:
                return RevokeToken(token=self.tokens.get(label, UNKNOWN_NUMBER), uid=by)
        return None

    def _of_terms(self, words: list[str], options: Options) -> Request | None:
        match words:
            case ["open", name, when]:
                project, resource = self._project_and_resource(name)
                start, end = period(when)
                limit, credit = su(options.get("limit", "0")), su(options.get("with", "0"))
                shared = options.get("shared") == "yes"
                return Open(
                    terms=AllocationTerms(
                        project=project,
                        resource=resource,
                        category="startup",
                        start=start,
                        end=end,
                        shared=shared,
                        credit_limit=limit,
                    ),
                    deposit=credit,
                )
            case [("freeze" | "thaw" | "end" | "reopen") as event, name]:
                terms = (
                    dict(zip(("start", "end"), period(options["period"]), strict=True))
                    if "period" in options
                    else {}
                )
                return self._amend(name, {"event": AllocationEvent(event), **terms})
            case ["expire", name]:
                return Expire(allocation=self._number(name))
            case ["amend", name]:
                begin, finish = period(options["period"]) if "period" in options else (None, None)
                ceiling = su(options["limit"]) if "limit" in options else None
                sharing = options["shared"] == "yes" if "shared" in options else None
                return self._amend(
                    name,
                    {"start": begin, "end": finish, "credit_limit": ceiling, "shared": sharing},
                )
        return None

    def _amend(self, name: str, terms: dict[str, Any]) -> Amend:
        project, resource = self._project_and_resource(name)
        return Amend(allocation=self._number(name), project=project, resource=resource, **terms)

    def _number(self, name: str) -> int:
        return self.allocations.get(name, UNKNOWN_NUMBER)

    def _project_and_resource(self, name: str) -> tuple[int, str]:
        """Return the project and the resource of `physics/cpu:next`: physics and cpu."""
        project, _, resource = name.partition("/")
        return self.projects.get(project, UNKNOWN_NUMBER), resource.partition(":")[0]
