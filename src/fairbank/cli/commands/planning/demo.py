"""Command `fairbank demo`: a synthetic month through a new bank, a user's session, and a queue."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairbank.cli.commands.planning.demo_queue import FAIRBANK, show_queue
from fairbank.cli.commands.planning.replay import replay_trace, show_replay
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.exit_codes import DONE, FOUND, TOO_LITTLE
from fairbank.cli.framework.options import add_option, count
from fairbank.cli.framework.progress import add_progress
from fairbank.core.errors import Conflict, FairbankError, Unavailable
from fairbank.core.os_errors import translate_os_error
from fairbank.core.time import DAY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser

MONTH_DAYS, TERM_DAYS = 30, 90
START_SECONDS = 300


def add(parser: Parser) -> None:
    about = "new or empty directory for trace and bank, to play on; without the queue (default: a"
    about += " temporary one)"
    add_option(parser, "--directory DIRECTORY", about)
    add_option(parser, "--seed N", "another month (default: 1)", type=count, default=1)
    add_progress(parser)
    # Sentences and sessions cannot be one document: of the formats of tables it takes none.
    parser.set_defaults(form=None, format=None, noheader=False, long=False)


def run(context: Context, options: Namespace) -> int:
    with _folder(options.directory) as folder:
        code = _main_job(context, options, folder)
        with serving(folder):
            _session(context, DemoShell(context, folder))
        _verify(context, folder)
        if options.directory is None:
            show_queue(context, folder)
        else:
            context.print_text(
                f"\nThe bank is in {folder}: fairbank serve --config"
                f" {shlex.quote(f'{folder}/fairbank.toml')}"
            )
    return code


@contextmanager
def _folder(given: str | None) -> Iterator[Path]:
    if given is None:
        with tempfile.TemporaryDirectory(prefix="fairbank-demo-") as made:
            yield Path(made)
    else:
        folder = Path(given).resolve()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            is_empty = not any(folder.iterdir())
        except OSError as error:
            what = f"cannot make the directory {folder}"
            raise translate_os_error(error, what, field="directory") from error
        if not is_empty:
            raise Conflict(
                f"the directory {folder} is not empty",
                field="directory",
                remedy="name a new or an empty one",
            )
        yield folder


# --- the month ---


def _main_job(context: Context, options: Namespace, folder: Path) -> int:
    """Run a month, whose last job ended before today, through a bank whose allocations last a
    quarter.
    """
    from fairbank.service.ops.atomic_file import atomic_write
    from fairbank.setup.init import GPU_WEIGHTS, init
    from fairbank.simulator.traces.swf import write
    from fairbank.simulator.traces.synthetic import SyntheticSite, month

    trace, centre = folder / "month.swf", SyntheticSite()
    header, generated = month(centre, options.seed)
    month_jobs = list(generated)
    # Submissions last a month, and the last jobs end a day or two after it.
    ended = max(job.submit_time + job.wait_time + job.run_time for job in month_jobs)
    # The model's weeks begin where they do by default, so that the month is the same on each day.
    header = header._replace(unix_start_time=(int(time.time()) // DAY - -(-ended // DAY)) * DAY)
    try:
        with atomic_write(trace) as file:
            file.writelines(map(str.encode, write(header, month_jobs)))
    except OSError as error:
        raise translate_os_error(error, f"cannot write {trace}", field="directory") from error
    jobs = centre.jobs
    context.print_text(
        f"An invented centre: 768 cores, 24 GPUs, 8 projects, 40 users, {jobs:,} jobs in"
        f" {MONTH_DAYS} days."
    )
    context.print_text(
        "Each project is granted 95% of what its jobs really used. Every start is a hold, every end"
        " a charge.\n"
    )
    init(str(folder), None, "demo")
    cpu, gpu = centre.pools
    # A replay bills 1 SU for an hour of a processor, also of those beside a GPU. The prices of the
    # settings and the capacity are the same.
    capacity = f"cpu = {cpu.processors}\ngpu = {gpu.processors}\n"
    size = f"cpus = {cpu.processors + gpu.processors}\ngpus = {gpu.processors // gpu.unit}\n"
    settings, table = folder / "fairbank.toml", "[clusters.local]\n"
    text = settings.read_text(encoding="utf-8").replace(table, f"{table}{size}")
    text = text.replace(GPU_WEIGHTS, f"CPU=1.0,GRES/gpu={gpu.unit}.0")
    settings.write_text(f"{text}\n[clusters.local.capacity]\n{capacity}", encoding="utf-8")
    plan = Namespace(
        **vars(options), grant=95, periods=1, days=TERM_DAYS, by=None, record_overruns=False
    )
    store = f"sqlite:///{folder}/fairbank.sqlite"
    done = replay_trace(plan, str(trace), store, cluster="local", gpu_processors=gpu.unit)
    show_replay(context, done)
    return 0 if all(check.holds_true for check in done.checks) else FOUND


# --- the session ---


@contextmanager
def serving(folder: Path) -> Iterator[None]:
    """Run the server as a process until the block ends."""
    log = folder / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [*FAIRBANK, "serve", "--config", str(folder / "fairbank.toml")], stdout=out, stderr=out
        )
    try:
        _await(server, folder / "fairbank.sock", log)
        yield
    finally:
        server.terminate()
        server.wait()


def _await(server: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    """Wait until the server answers. Raises Unavailable if it ends, or not in `START_SECONDS`."""
    from fairbank.rest.client import Client, parse_address

    client = Client(parse_address(f"unix:{socket}"), timeout_seconds=5)
    deadline = time.monotonic() + START_SECONDS
    while True:
        ended = server.poll()
        try:
            client.get("/health")
        except FairbankError as error:
            silence = error.message
        else:
            return
        wrote = log.read_text(errors="replace")[-500:].strip()
        known = f"it wrote: {wrote}" if wrote else "it wrote nothing"
        if ended is not None:
            raise Unavailable(f"the demo's server ended with exit code {ended}; {known}")
        if time.monotonic() > deadline:
            raise Unavailable(
                f"the demo's server still starts after {START_SECONDS} s: {silence}; {known}",
                remedy="try again when this host has less to do",
            )
        time.sleep(0.1)


class DemoShell:
    """Shell that runs commands and shows their output as a user would see it."""

    def __init__(self, context: Context, folder: Path) -> None:
        self._context = context
        self._environ = {
            **os.environ,
            "FAIRBANK_SERVER": f"unix:{folder}/fairbank.sock",
            "FAIRBANK_CLUSTER": "local",
        }

    def type(self, *words: str) -> None:
        """Show the command and its output. Raises FairbankError when it fails."""
        self._context.print_text(f"\n$ fairbank {' '.join(words)}")
        sys.stdout.flush()
        code = subprocess.run([*FAIRBANK, *words], env=self._environ, check=False).returncode
        if code not in (DONE, TOO_LITTLE):  # that too little is left is an answer
            raise FairbankError(f"fairbank {' '.join(words)} ended with {code}")

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """Return the rows of a command's JSON output."""
        done = subprocess.run(
            [*FAIRBANK, *words, "--json"], env=self._environ, capture_output=True, check=False
        )
        if done.returncode:
            raise FairbankError(
                f"fairbank {' '.join(words)} failed: {done.stderr.decode(errors='replace').strip()}"
            )
        rows: list[dict[str, Any]] = json.loads(done.stdout)["data"]
        return rows


def _session(context: Context, shell: DemoShell) -> None:
    """Show what a user sees whose job was refused lately."""
    refused = shell.rows("jobs", "--refused", "-a", "--limit", "1000")
    balances = shell.rows("balance")
    if not refused or not balances:
        raise FairbankError("this month has no refusal to show; try another --seed")
    last = refused[0]
    account, user = str(last["account"]), str(last["owner_uid"])
    allocation = str(last["allocation"])
    context.print_text(
        f"\nThe bank is running. Be user {user} of project {account}, whose job was refused; --as"
        " is how staff see what a user sees."
    )
    shell.type("balance", "--as", user)
    shell.type("jobs", "--refused", "--limit", "1", "--as", user)
    shell.type("statement", allocation, "--as", user, "--limit", "8")
    shell.type("usage", "-A", account, "--as", user)
    job = "-p cpu -c 8 --mem 64G -t 12:00:00".split()
    shell.type("quote", "-A", account, *job, "--as", user)
    context.print_text("\nStaff see the whole centre.")
    shell.type("report", "centre")


def _verify(context: Context, folder: Path) -> None:
    context.print_text("\n$ fairbank audit verify")
    sys.stdout.flush()
    code = subprocess.run(
        [*FAIRBANK, "audit", "verify", "--config", f"{folder}/fairbank.toml"], check=False
    ).returncode
    if code:
        raise FairbankError("the audit found discrepancies")


COMMAND = Command(
    "run a month of jobs through a new bank, then a first session and a queue",
    ("{}", "{} --directory ~/trial          and keep it, to play on", "{} --seed 7"),
    add,
    run,
    reads=False,
    asks=False,
)
