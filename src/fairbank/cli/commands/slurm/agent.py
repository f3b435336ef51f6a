"""Command `fairbank agent`: run the agent next to slurmctld, and show its status."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND
from fairbank.cli.framework.options import add_forms, add_option
from fairbank.core.time import iso
from fairbank.report.cells import plain
from fairbank.report.columns import Column
from fairbank.report.columns import text as text_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


LINES = (
    "slurmctld",
    "bank",
    "outbox",
    "quarantine",
    "incidents",
    "senders",
    "prologs",
    "holds",
    "limits",
    "ends",
    "runs",
    "factors",
    "released",
)
"""Headings of the lines of the status."""


def _add(parser: Parser) -> None:
    about = "the agent's settings (FAIRBANK_AGENT_CONFIG; default: /etc/fairbank/agent.toml)"
    add_option(parser, "--config FILE", about)


def _run(context: Context, options: Namespace) -> int:
    import sys

    import uvloop

    from fairbank.agent.daemon import Agent
    from fairbank.rest.server.log import log_to
    from fairbank.service.settings import LogFormat
    from fairbank.setup.agent import slurm_jobs
    from fairbank.slurm.agent_settings import read_agent_settings, settings_file

    def ready(sockets: Sequence[str]) -> None:
        text = f"The agent listens for slurmctld at {sockets[0]}, and for status at {sockets[1]}"
        with suppress(OSError):  # the disk of the log is full
            context.note(text)

    settings = read_agent_settings(settings_file(options.config))
    log_to(sys.stderr, LogFormat(settings.log))
    uvloop.run(Agent(settings, slurm_jobs(settings)).run(ready))
    return 0


def _add_status(parser: Parser) -> None:
    _add(parser)
    add_forms(parser, {"--json": "all of it, as JSON"})
    add_option(parser, "--helpformat", "list the lines, each with its meaning")


def _status(context: Context, options: Namespace) -> int:
    from fairbank.agent.control import agent_status
    from fairbank.slurm.agent_settings import read_agent_settings, settings_file

    settings = read_agent_settings(settings_file(options.config))
    status = agent_status(settings.control.socket)
    if options.form == "json":
        context.print_json("fairbank.agent-status/1", _document(status))
    else:
        for name, text in _lines(status):
            context.print_text(f"{name:<11}{plain(context.in_zone(text))}")
    problems = (status["outbox"]["error"], status.get("denied"), _quarantine(status))
    return 0 if status["bank"]["reachable"] and not any(problems) else FOUND


def _document(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the status for --json. Counts become rows, because their names are data."""
    release = dict(status["release"] or {})
    return {
        **status,
        "verdicts": _count_rows("verdict", status["verdicts"]),
        "messages": _count_rows("kind", status["messages"]),
        "request_errors": _count_rows("error", status["request_errors"]),
        "reports_answered": [
            {"kind": kind, "result": result, "count": count}
            for kind, counts in status["reports_answered"].items()
            for result, count in counts.items()
        ],
        "release": {"jobs": release.pop("released"), **release} if release else None,
    }


def _count_rows(name: str, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{name: kind, "count": count} for kind, count in counts.items()]


def _lines(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield headings and texts. The line of a problem is followed by its remedy."""
    yield from _connection_lines(status["plugins"], status["bank"])
    for denied in status.get("denied", ()):
        aside = f"{denied['reports']} reports of cluster {denied['cluster']} are set aside"
        text = f"{aside} since {iso(denied['since'])}: {denied['error']}"
        yield from _problem("", text, denied["remedy"])
    yield from _outbox_lines(status["outbox"])
    if quarantine := _quarantine(status):
        text = f"{quarantine['frames']} frames of slurmctld's plug-in cannot be read, the last: "
        yield from _problem("quarantine", f"{text}{quarantine['last']}", quarantine["remedy"])
    for incident in status.get("incidents", ()):
        times = f"since {iso(incident['since'])}, the last at {iso(incident['last'])}"
        text = f"{incident['count']} {incident['about']} {times}: {incident['text']}"
        yield from _problem("incidents", text, incident["remedy"])
    yield from _work_lines(status)
    if table := status.get("site_factor"):
        at, values = table["written"], table["values"]
        yield "factors", "not written yet" if at is None else f"{values} values, written {iso(at)}"
        if table["error"]:
            yield from _problem("", f"not written again: {table['error']}", table["remedy"])
    if release := status.get("release"):
        yield "released", f"{release['released']} jobs that were held for lack of credit"
        if release["error"]:
            yield from _problem("", f"stopped for now: {release['error']}", release["remedy"])


def _connection_lines(
    plugins: Sequence[Mapping[str, str]], bank: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    connected = ", ".join(f"{plugin['slurm']} of cluster {plugin['cluster']}" for plugin in plugins)
    yield "slurmctld", f"connected: {connected}" if plugins else "not connected"
    if bank["reachable"] is None:
        yield "bank", "not contacted yet: it will be when slurmctld's plug-in connects"
    elif bank["reachable"]:
        yield "bank", f"answers since {iso(bank['since'])}"
    else:
        text = f"down since {iso(bank['since'])}: {bank['error']}"
        yield from _problem("bank", text, bank["remedy"])


def _outbox_lines(outbox: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    seconds = outbox["oldest_seconds"]
    oldest = "" if seconds is None else f", the oldest for {seconds:.1f} s"
    waiting = f"{outbox['reports']} reports wait{oldest}"
    yield "outbox", f"{waiting}; {outbox['on_disk_only']} of them on disk only"
    if later := outbox.get("retry_later"):
        text = f"{later} more ends are too early for the bank's clock; they are sent again later"
        yield from _problem("", text, "set the clocks of both hosts alike (chronyc tracking)")
    if outbox["error"]:
        remedy = "free space on its disk; the agent then continues by itself"
        yield from _problem("", f"cannot be written: {outbox['error']}", remedy)


def _work_lines(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    senders = status["senders"]
    limits = f"{senders['minimum']} to {senders['maximum']}"
    yield "senders", f"{senders['size']} ({limits}), {senders['busy']} busy"
    verdicts = _counted(status["verdicts"])
    yield "prologs", f"{status['prologs_waiting']} waiting; verdicts: {verdicts}"
    for kind, what in (("hold", "holds"), ("adjust", "limits"), ("complete", "ends")):
        yield what, _counted(status["reports_answered"][kind])
    yield "runs", f"{status['runs']} known"


def _problem(heading: str, text: str, remedy: str | None) -> Iterator[tuple[str, str]]:
    yield heading, text
    if remedy:
        yield "", f"try: {remedy}"


def _quarantine(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the quarantine if it has frames."""
    quarantine: Mapping[str, Any] | None = status.get("quarantine")
    return quarantine if quarantine and quarantine["frames"] else None


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{how} {count}" for how, count in counts.items()) or "none"


COMMAND = Noun(
    "run the agent next to slurmctld, and show its status",
    {
        "run": Command(
            "serve slurmctld's plug-in and report to the bank, until Ctrl-C or SIGTERM",
            (
                "fairbank agent",
                "fairbank agent --config /etc/fairbank/agent.toml",
                "FAIRBANK_AGENT_CONFIG=a.toml {}",
            ),
            _add,
            _run,
            reads=False,
            asks=False,
        ),
        "status": Command(
            "outbox, bank, senders, decisions; 8 when something is wrong or not known yet, 6"
            " without an agent",
            ("{}", "{} --json", "{} --config a.toml || echo look"),
            _add_status,
            _status,
            reads=False,
            asks=False,
            columns=[Column(name, text_of(name)) for name in LINES],
        ),
    },
    default="run",
)
