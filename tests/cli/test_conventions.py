"""Conventions of every command: formats, columns, confirmations, help."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairbank
from fairbank.bank.refusals import Reason
from fairbank.cli.commands.bank.sproject import COMMAND as SPROJECT
from fairbank.cli.framework.command import Command, Noun
from fairbank.cli.main import COMMANDS, load_command
from fairbank.rest.app import document
from tests.cli.conftest import Run, heads
from tests.cli.fakes import FakeServices
from tests.cli.site import CPU
from tests.support.golden import GOLDEN

SOURCE = Path(fairbank.__file__).parent


@pytest.fixture(autouse=True)
def fake_services() -> Iterator[None]:
    with FakeServices().installed():
        yield


READING = {
    "balance": (),
    "usage": ("-S", "2026-01-01"),
    "statement": (CPU, "-S", "2026-01-01"),
    "jobs": ("-a",),
    "eff": (812_301,),
    "report centre": (),
    "quote": ("-A", "chem_qmc", "-M", "darwin", "-p", "idle-std", "-c", "8", "-t", "60"),
    "whoami": (),
    "status": (),
    "token list": (),
    "project list": (),
    "project show": ("chem_qmc",),
    "project users": ("chem_qmc",),
    "alloc list": (),
    "alloc show": (CPU,),
    "alloc users": (CPU,),
    "audit verify": (),
    "audit heads": (),
    "doctor": (),
    "queue": ("--from", str(GOLDEN / "slurm-22.05" / "waiting")),
}
"""Arguments with which each reading command has output."""
WRITING = {
    "deposit", "withdraw", "transfer", "refund", "undo",
    "project create", "project set", "project remove", "project add-user", "project remove-user",
    "token create", "token revoke",
    "alloc create", "alloc set", "alloc extend", "alloc freeze", "alloc thaw", "alloc end",
    "alloc reopen", "alloc remove", "alloc cap",
    "hold", "charge", "release",
}  # fmt: skip
ON_THE_HOST = {
    "init", "serve", "backup create", "backup verify", "restore", "replay",
    "simulate", "whatif", "report sitefactor",
    "report balance", "report usage", "report fairshare", "share record", "share compose", "demo",
    "cluster up", "cluster down", "cluster status", "env",
}  # fmt: skip
SHORT_COMMANDS = {"run", "log", "wait", "cancel", "warn"}
"""These answer in a line, or with the output of a job."""
IMPORTS = {"import csv", "storage import"}
ON_SLURM_HOSTS = {"reconcile", "shadow", "slurm import", "slurm prolog", "slurm sync"}
AGENTS = {"agent run", "agent status"}
"""These read the address of the bank or the agent from the settings of the agent."""
QUEUE_COMMANDS = {"share show", "prio", "why"}
"""These read from Slurm or a trace only. `share` and `prio` have the formats of sshare and sprio,
`why` prints lines about one job.
"""
SHELLS = {"completion bash", "completion zsh", "completion fish", "completion tcsh"}
BY_HAND = {"hold", "charge", "release"}
"""Reports of a run: like an agent's they need no reason, and the run makes them repeatable."""
NEEDS_NO_REASON = BY_HAND | {
    "project create", "project set", "project remove", "project add-user", "project remove-user",
    "token create", "token revoke",
    "alloc cap", "alloc remove",
}  # fmt: skip
"""None of these moves credit, except for reports of runs."""
FORMAT_OPTIONS = (
    "--json",
    "--csv",
    "--parsable",
    "--delimiter",
    "--noheader",
    "--format",
    "--helpformat",
    "--units",
    "--long",
)


DOCUMENT = document()


def all_commands() -> Iterator[tuple[str, Command]]:
    for entry in COMMANDS:
        result = load_command(entry.location)
        if isinstance(result, Noun):
            yield from ((f"{entry.name} {verb}", command) for verb, command in result.verbs.items())
        else:
            yield entry.name, result


def options_of(command: Command) -> set[str]:
    return set(command.parser("x")._option_string_actions)


ALL = dict(all_commands())


def test_every_command_has_one_kind() -> None:
    assert (
        ALL.keys()
        == READING.keys()
        | WRITING
        | ON_THE_HOST
        | ON_SLURM_HOSTS
        | IMPORTS
        | AGENTS
        | QUEUE_COMMANDS
        | SHORT_COMMANDS
        | SHELLS
    )


def test_demo_takes_no_format_because_its_sessions_are_no_document() -> None:
    assert not options_of(ALL["demo"]) & {*FORMAT_OPTIONS}


@pytest.mark.parametrize("name", [*READING, *(f"sproject {verb}" for verb in SPROJECT.verbs)])
def test_reading_commands_accept_every_format_option(name: str) -> None:
    command = SPROJECT.verbs[name.split()[1]] if name.startswith("sproject") else ALL[name]
    assert set(FORMAT_OPTIONS) <= options_of(command)
    assert {"-P", "-n", "-o", "-l", "-v", "-h", "--color", "--no-pager"} <= options_of(command)


@pytest.mark.parametrize("name", sorted(WRITING))
def test_write_commands_have_dry_run_and_confirmation(name: str) -> None:
    command = ALL[name]
    options = options_of(command)
    assert {"--dry-run", "--yes", "--json"} <= options
    assert ("--idempotency-key" in options) == (
        not name.startswith("token") and name not in BY_HAND
    ), "a secret is shown only once"
    reason = command.parser("x")._option_string_actions.get("--reason")
    assert (reason is not None and reason.required) == (name not in NEEDS_NO_REASON)


ROUTE_OF = {
    "deposit": "post /alloc/{allocation}/deposit",
    "withdraw": "post /alloc/{allocation}/withdraw",
    "transfer": "post /alloc/{allocation}/transfer",
    "refund": "post /job/{job}/refund",
    "undo": "post /entry/{entry}/undo",
    "project create": "post /project",
    "project set": "patch /project/{project}",
    "project remove": "delete /project/{project}",
    "project add-user": "put /project/{project}/member/{uid}",
    "project remove-user": "delete /project/{project}/member/{uid}",
    "token create": "post /token",
    "token revoke": "delete /token/{token}",
    "alloc create": "post /alloc",
    "alloc remove": "delete /alloc/{allocation}",
    "alloc cap": "put /alloc/{allocation}/cap/{uid}",
} | dict.fromkeys(
    ("alloc set", "alloc extend", "alloc freeze", "alloc thaw", "alloc end", "alloc reopen"),
    "patch /alloc/{allocation}",
)  # fmt: skip


@pytest.mark.parametrize("name", sorted(WRITING - BY_HAND))
def test_route_needs_a_reason_where_its_command_does(name: str) -> None:
    method, path = ROUTE_OF[name].split()
    operation = DOCUMENT["paths"][path][method]
    fields = {row["name"]: row["required"] for row in operation["parameters"]}
    if "requestBody" in operation:
        place = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        shape = DOCUMENT["components"]["schemas"][place.rpartition("/")[2]]
        fields = {field: field in shape.get("required", ()) for field in shape["properties"]}
    reason = ALL[name].parser("x")._option_string_actions.get("--reason")
    assert fields.get("comment") == (None if reason is None else reason.required)


REASON = ("--reason", "test")


@pytest.mark.parametrize(
    ("words", "needs_yes"),
    [
        (("deposit", "3", "1000k", *REASON), False),
        (("withdraw", "3", "1", *REASON), True),
        (("alloc", "set", "3", "--credit-limit", "1000k", *REASON), False),
        (("alloc", "set", "3", "--end", "2026-12-01", *REASON), True),
        (("alloc", "end", "3", *REASON), True),
        (("project", "remove", "bio_fold"), True),
        (("project", "remove-user", "bio_fold", "61001"), True),
        (("token", "revoke", "1"), True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_removal_needs_yes_without_a_terminal(
    changing: Run, words: tuple[str, ...], needs_yes: bool
) -> None:
    """The tests have no terminal."""
    result = changing(*words)
    assert (result.code, "field: --yes" in result.err) == ((2, True) if needs_yes else (0, False))


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in ALL
        if name
        not in SHELLS
        | ON_THE_HOST
        | AGENTS
        | QUEUE_COMMANDS
        | SHORT_COMMANDS
        | {"audit verify", "audit heads", "queue"}
    ],
)
def test_every_client_command_accepts_a_server(name: str) -> None:
    assert {"--server", "--as"} <= options_of(ALL[name])


NUMBER_WITH_UNIT = re.compile(r"[\d.,]+[ /]+[A-Za-z]{1,2}")
"""Cell that a script cannot read as a number: the unit belongs into the header."""


@pytest.mark.parametrize("name", READING)
def test_output_formats_for_scripts(fairbank: Run, name: str) -> None:
    words = (*name.split(), *READING[name])

    def output(*more: str) -> str:
        result = fairbank(*words, *more, services=FakeServices())
        assert result.code == 0, result
        return result.out

    document = json.loads(output("--json"))
    assert {"schema", "as_of", "cluster", "unit", "data", "warnings"} <= document.keys()
    assert document["schema"].startswith("fairbank.")
    there = heads(fairbank(*words, "--helpformat", services=FakeServices()))
    assert len(set(there)) == len(there) >= 2
    rows = list(csv.reader(io.StringIO(output("--csv", "-l"))))
    exact = rows[0][len(there) :]
    assert rows[0] == [*there, *exact]
    assert all(head.endswith("-MINUTES") for head in exact)
    cells = [cell for row in rows[1:] for cell in row]
    assert [cell for cell in cells if NUMBER_WITH_UNIT.fullmatch(cell)] == []
    assert output("-P", "-l", "--delimiter", ";").splitlines()[0] == ";".join([*there, *exact])
    if len(rows) > 1:
        assert len(output("-P", "--noheader", "-l").splitlines()) == len(rows) - 1
        narrow = output("-o", f"{there[0].lower()}%4", "--noheader").splitlines()
        assert all(len(line) <= 4 or line.strip().isdigit() for line in narrow)
        header = output("-P", "-o", f"+{there[-1]}").splitlines()[0]
        assert header.split("|")[-1] == there[-1]


WITHOUT_BANK = {"quote", "status", "token list", "audit verify", "audit heads", "doctor", "queue"}
"""The price of one job, checks of a host, and lists that are empty here."""


ASKS_NO_BANK = {"audit verify", "audit heads", "doctor"}
"""These read the store of the bank's host."""


@pytest.mark.parametrize("name", READING)
def test_answer_of_a_bank_has_its_time(fairbank: Run, name: str) -> None:
    words = (*name.split(), *READING[name], "--json")
    document = json.loads(fairbank(*words, services=FakeServices()).out)
    assert (document["as_of"] is None) == (name in ASKS_NO_BANK)


NAMES_CLUSTER = {"quote", "queue"}
"""Answers about one cluster without -M. That of a member of this list is read or the default."""


@pytest.mark.parametrize("name", [name for name in READING if name not in NAMES_CLUSTER])
def test_cluster_is_named_only_if_the_answer_is_about_it(
    fairbank: Run, clean_env: pytest.MonkeyPatch, name: str
) -> None:
    clean_env.setenv("FAIRBANK_CLUSTER", "nonsense")
    words = (*name.split(), *READING[name])
    assert json.loads(fairbank(*words, "--json", services=FakeServices()).out)["cluster"] is None
    assert "nonsense" not in fairbank(*words, services=FakeServices()).out


def test_clusters_option_is_named_in_the_answer(fairbank: Run) -> None:
    words = ("jobs", "-a", "-M", "darwin")
    assert json.loads(fairbank(*words, "--json").out)["cluster"] == "darwin"
    assert "   cluster darwin" in fairbank(*words).out


@pytest.mark.parametrize("name", [name for name in READING if name not in WITHOUT_BANK])
def test_every_table_names_its_bank(fairbank: Run, name: str) -> None:
    shown = fairbank(*name.split(), *READING[name], services=FakeServices()).out
    assert re.search(r"\bbank +fairbank\b", shown), shown


@pytest.mark.parametrize(
    "name", [name for name, command in ALL.items() if "--helpformat" in options_of(command)]
)
def test_columns_are_listed_without_arguments_and_nothing_is_done(fairbank: Run, name: str) -> None:
    result = fairbank(*name.split(), "--helpformat")
    assert result.code == 0
    # Lists with amounts have more columns for programs.
    note = "-MINUTES: --csv and -P also have each amount in whole SU-minutes."
    assert " ".join(result.err.split()) in ("", note)
    assert len(heads(result)) >= 2


@pytest.mark.parametrize("name", [*sorted(IMPORTS), "agent status"])
def test_columns_of_files_and_lines_of_the_agent_are_explained(name: str) -> None:
    assert "--helpformat" in options_of(ALL[name])


@pytest.mark.parametrize("name", READING)
def test_unknown_column_is_reported(fairbank: Run, name: str) -> None:
    result = fairbank(*name.split(), *READING[name], "-o", "NOSUCH", services=FakeServices())
    assert result.code == 2
    assert "NOSUCH" in result.err


REMEDIES = [
    (reason.name, remedy)
    for reason in Reason
    for remedy in (reason.info.remedy, *(case.remedy for case in reason.info.details.values()))
]


def test_commands_of_remedies_exist_with_their_options() -> None:
    """A reader types them: a renamed option would send them from one refusal to the next."""
    commands = [
        (reason, words)
        for reason, remedy in REMEDIES
        for words in re.findall(r"fairbank ([^;:]+)", remedy)
    ]
    assert len(commands) > 20
    for reason, words in commands:
        (name,) = [name for name in ALL if re.match(rf"{name}\b", words)]
        options = set(re.findall(r"(?<!\S)--?[A-Za-z][a-z-]*", words))
        assert options <= options_of(ALL[name]), (reason, words)


def test_no_text_names_the_unit_of_a_format_itself() -> None:
    """The format has the unit that was requested: `form.su(x)} SU` is wrong with `--units k`."""
    named = re.compile(r"(?<![_\w])(?:su|credit)\([^{}]*\)\} SU")
    folders = (SOURCE / "cli", SOURCE / "report")
    files = [file for folder in folders for file in folder.rglob("*.py")]
    assert [file.name for file in files if named.search(file.read_text())] == []
