"""Command `fairbank agent`: run the agent next to slurmctld, and show its status."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.framework.exit_codes import FOUND
from fairbank.core.time import iso
from fairbank.report.cells import plain

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def _add(parser: Parser) -> None:
    default = "/etc/fairbank/agent.toml"
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"the agent's settings (FAIRBANK_AGENT_CONFIG; default: {default})",
    )


def _run(context: Context, options: Namespace) -> int:
    import sys

    import uvloop

    from fairbank.agent.daemon import Agent
    from fairbank.agent.settings import read_agent_settings, settings_file
    from fairbank.rest.server.log import log_to
    from fairbank.service.settings import LogFormat
    from fairbank.setup.agent import slurm_jobs

    def ready(sockets: Sequence[str]) -> None:
        context.note(
            f"The agent listens for slurmctld at {sockets[0]}, and for status at {sockets[1]}"
        )

    settings = read_agent_settings(settings_file(options.config))
    log_to(sys.stderr, LogFormat(settings.log))
    uvloop.run(Agent(settings, slurm_jobs(settings)).run(ready))
    return 0


def _add_status(parser: Parser) -> None:
    _add(parser)
    parser.add_argument("--json", action="store_true", help="all of it, as JSON")


def _status(context: Context, options: Namespace) -> int:
    from fairbank.agent.control import agent_status

    status = agent_status(options.config)
    if options.json:
        context.say(json.dumps(status, indent=2))
    else:
        for name, said in _lines(status):
            context.say(f"{name:<11}{plain(said)}")
    well = status["bank"]["reachable"] and not status["outbox"]["error"] and not _quarantine(status)
    return 0 if well else FOUND


def _lines(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the lines of the status with their names; a line without a name continues the last."""
    yield from _connection_lines(status["plugins"], status["bank"])
    yield from _outbox_lines(status["outbox"])
    if quarantine := _quarantine(status):
        text = f"{quarantine['frames']} frames of slurmctld's plug-in cannot be read, the last: "
        yield "quarantine", f"{text}{quarantine['last']}"
        yield "", f"try: {quarantine['remedy']}"
    for incident in status.get("incidents", ()):
        often = f"{incident['count']} {incident['about']} since {iso(incident['since'])}"
        yield "incidents", f"{often}, the last at {iso(incident['last'])}: {incident['text']}"
        yield "", f"try: {incident['remedy']}"
    yield from _work_lines(status)
    if table := status.get("site_factor"):
        written, values = table["written"], table["values"]
        is_new = written is None
        yield "factors", "not written yet" if is_new else f"{values} values, written {iso(written)}"
        yield from _error_lines(table, "not written again")
    if release := status.get("release"):
        yield "released", f"{release['released']} jobs that were held for lack of credit"
        yield from _error_lines(release, "stopped for now")


def _connection_lines(
    plugins: Sequence[Mapping[str, str]], bank: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    connected = ", ".join(f"{each['slurm']} of cluster {each['cluster']}" for each in plugins)
    yield "slurmctld", f"connected: {connected}" if plugins else "not connected"
    if bank["reachable"] is None:
        yield "bank", "not contacted yet: it will be when slurmctld's plug-in connects"
    elif bank["reachable"]:
        yield "bank", f"answers since {iso(bank['since'])}"
    else:
        yield "bank", f"down since {iso(bank['since'])}: {bank['error']}"
        if bank["remedy"]:
            yield "", f"try: {bank['remedy']}"


def _outbox_lines(outbox: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    seconds = outbox["oldest_seconds"]
    oldest = "" if seconds is None else f", the oldest for {seconds:.1f} s"
    waiting = f"{outbox['reports']} reports wait{oldest}"
    yield "outbox", f"{waiting}; {outbox['on_disk_only']} of them on disk only"
    if later := outbox.get("retry_later"):
        yield "", f"{later} more ends are too early for the bank's clock; they are sent again later"
        yield "", "try: set the clocks of both hosts alike (chronyc tracking)"
    if outbox["error"]:
        yield "", f"cannot be written: {outbox['error']}"
        yield "", "try: free space on its disk; the agent then continues by itself"


def _work_lines(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    senders = status["senders"]
    limits = f"{senders['minimum']} to {senders['maximum']}"
    yield "senders", f"{senders['size']} ({limits}), {senders['busy']} busy"
    verdicts = _counted(status["verdicts"])
    yield "prologs", f"{status['prologs_waiting']} waiting; verdicts: {verdicts}"
    for kind, what in (("hold", "holds"), ("adjust", "limits"), ("complete", "ends")):
        yield what, _counted(status["reports_answered"][kind])
    yield "runs", f"{status['runs']} known"


def _error_lines(job: Mapping[str, Any], consequence: str) -> Iterator[tuple[str, str]]:
    if job["error"]:
        yield "", f"{consequence}: {job['error']}"
        yield "", f"try: {job['remedy']}"


def _quarantine(status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the quarantine if it has frames."""
    found: Mapping[str, Any] | None = status.get("quarantine")
    return found if found and found["frames"] else None


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
                "FAIRBANK_AGENT_CONFIG=a.toml fairbank agent run",
            ),
            _add,
            _run,
            reads=False,
            asks=False,
        ),
        "status": Command(
            "outbox, bank, senders, decisions; 8 when something is wrong or not known yet, 6"
            " without an agent",
            (
                "fairbank agent status",
                "fairbank agent status --json",
                "fairbank agent status --config a.toml || echo look",
            ),
            _add_status,
            _status,
            reads=False,
            asks=False,
        ),
    },
    default="run",
)
