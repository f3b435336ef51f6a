"""One function a page: the code as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from inspect import cleandoc
from typing import Any, Literal, get_args, get_origin

import msgspec

from fairbank.bank import allocation, run
from fairbank.bank.explaining import explained
from fairbank.bank.policy import Policy
from fairbank.cli import main as front
from fairbank.cli import settings as client
from fairbank.cli.command import Noun
from fairbank.cli.exits import REFUSED
from fairbank.rest.app import ROUTES
from fairbank.rest.openapi import describe
from fairbank.rest.statuses import STATUS
from fairbank.service import settings
from fairbank.slurm.agent import settings as agent
from fairbank.slurm.agent.bending import Bend
from fairbank.slurm.agent.core import Core
from fairbank.slurm.agent.metrics import Metrics
from fairbank.slurm.agent.pool import Senders
from fairbank.slurm.agent.silence import PartitionTerms
from fairbank.slurm.site import SITE_FILE, Forced, Site
from tools.reference.allowed import of_a_run, of_an_allocation


def settings_page() -> str:
    """Every key of fairbank.toml with its type and default."""
    lines = [
        "# Settings",
        "",
        "One TOML file, `fairbank.toml`; `fairbank init` writes a first one. Unknown keys are refused with their place.",
        "",
    ]
    tables: tuple[tuple[str, type[msgspec.Struct]], ...] = (
        ("(at the top)", settings.Settings),
        ("[store]", settings.StoreSettings),
        ("[server]", settings.ServerSettings),
        ("[staff]", settings.StaffSettings),
        ("[history]", settings.HistorySettings),
        ("[policy]", Policy),
        ("[clusters.NAME]", settings.ClusterSettings),
        ("[clusters.NAME.partitions.NAME]", settings.PartitionSettings),
    )
    return "\n".join([*lines, *_tables(tables)]).rstrip() + "\n"


def site_page() -> str:
    """Every key of slurm.toml with its type and default."""
    lines = [
        "# The site's rules of submission",
        "",
        f"One TOML file, `{SITE_FILE}`, for `fairbank slurm sync`; without it the defaults hold. Unknown keys are refused with their",
        "place. What the rules do is in [Rules of submission](submission.md).",
        "",
    ]
    return "\n".join([*lines, *_tables((("(at the top)", Site), ("[projects.ACCOUNT]", Forced)))]).rstrip() + "\n"


def _tables(tables: Iterable[tuple[str, type[msgspec.Struct]]], *, level: int = 2) -> Iterator[str]:
    for title, struct in tables:
        yield from (f"{'#' * level} {title}", "", cleandoc(struct.__doc__ or ""), "", "| Key | Type | Default |", "| --- | --- | --- |")
        yield from (f"| `{key}` | {kind} | {default} |" for key, kind, default in _keys(struct))
        yield ""


def agent_page() -> str:
    """Every key of agent.toml, and every metric of the agent."""
    lines = [
        "# The agent",
        "",
        "`fairbank agent` runs on the host of slurmctld, beside the PrEp plug-in. It answers whether a job may start, and keeps all that",
        "the bank has not heard yet in its outbox. Why it is so is in [decision 0013](../decisions/0013-the-agents-outbox.md).",
        "It may also keep the [table of site factors](../decisions/0016-site-factor-table.md) up to date, which ranks jobs by credit;",
        "[its rules](site-factor.md) are a page of their own.",
        "",
        "## Settings",
        "",
        f"One TOML file, `{agent.SITE_FILE}`, or the one named by `--config` or `FAIRBANK_AGENT_CONFIG`. An empty file is enough where",
        "all is in its usual place. Unknown keys are refused with their place.",
        "",
        "```toml",
        *AGENT_EXAMPLE.splitlines(),
        "```",
        "",
    ]
    tables: tuple[tuple[str, type[msgspec.Struct]], ...] = (
        ("(at the top)", agent.AgentSettings),
        ("[plugin]", agent.PluginSettings),
        ("[bank]", agent.BankSettings),
        ("[outbox]", agent.OutboxSettings),
        ("[senders]", Senders),
        ("[control]", agent.ControlSettings),
        ("[site_factor]", agent.SiteFactorSettings),
        ("[site_factor.credit] and [site_factor.expiry]", Bend),
        ("[release]", agent.ReleaseSettings),
        ("[terms] and [partitions.NAME]", PartitionTerms),
    )
    lines += _tables(tables, level=3)
    core = Core(lambda partition: PartitionTerms(), Senders(), life="", now=0.0)
    lines += ["## Metrics", "", "`GET /metrics` on the control socket, or on its port:", "", "| Metric | Meaning |", "| --- | --- |"]
    lines += [f"| `{each.name}{'_total' if each.type == 'counter' else ''}` | {each.documentation} |" for each in Metrics(core).families()]
    return "\n".join(lines) + "\n"


AGENT_EXAMPLE = """\
[plugin]
slurm_user = "slurm"          # slurm.conf's SlurmUser

[bank]
server = "https://bank.example.org"
token_file = "/etc/fairbank/agent.token"   # fairbank token create darwin --scopes agent:darwin -u slurm

[control]
port = 9341                   # for Prometheus, on 127.0.0.1

[site_factor]
path = "/run/fairbank-agent/site_factor"         # what Slurm's site_factor/fairbank reads
token_file = "/etc/fairbank/reader.token"  # fairbank token create reader --scopes read, of an administrator

[terms]
silence = "closed"            # while the bank is away, jobs wait

[partitions.debug]
silence = "open"              # but for these: they run, and are charged later
"""


def _keys(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str, str]]:
    for field in msgspec.structs.fields(struct):
        yield field.name, _kind(field.type), "must be given" if field.required else _default(field)


def _kind(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f'"{each.value}"' for each in kind)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return "a table"
    words = {str: "text", int: "whole number", bool: "true or false", float: "number"}
    if kind in words:
        return words[kind]
    inner = [each for each in get_args(kind) if each is not type(None)]
    origin = get_origin(kind)
    if origin is Literal:
        return " or ".join(f'"{each}"' for each in inner)
    if origin is dict:
        return "tables by name" if isinstance(inner[1], type) and issubclass(inner[1], msgspec.Struct) else "numbers by name"
    if origin in (frozenset, list, tuple):
        return f"a list of {_kind(inner[0])}s"
    return " or ".join(_kind(each) for each in inner if not isinstance(each, msgspec.Meta))


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT:
        return "none" if field.default_factory in (dict, list) else "empty"
    value = field.default
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, frozenset):
        return ", ".join(f"`{each}`" for each in sorted(value)) or "none"
    if isinstance(value, msgspec.Struct):
        return "its own defaults"
    return "none" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def client_page() -> str:
    """What the commands read to find the bank, and what else in the environment."""
    lines = [
        "# Client settings",
        "",
        "Where the commands find the bank, and as whom they sign in. Each key is taken from the first place that says it:",
        "",
        "1. options: `--server`, `-M`;",
        "2. the environment: the key in capitals after `FAIRBANK_`, such as `FAIRBANK_SERVER`;",
        "3. your file `~/.config/fairbank/client.toml` (under `XDG_CONFIG_HOME` where that is set);",
        f"4. the site's file `{client.SITE_FILE}`;",
        "5. for `server`: the socket of your own bank in `~/.local/state/fairbank` (`XDG_STATE_HOME`) where there is one, else",
        f"   `{client.SITE_SOCKET}`.",
        "",
        'A line of a file is `KEY = "TEXT"`; other keys are refused.',
        "",
        "| Key | Environment | Meaning |",
        "| --- | --- | --- |",
        *(f"| `{key}` | `FAIRBANK_{key.upper()}` | {about} |" for key, about in client.KEYS.items()),
        "",
        "On a Unix socket nobody signs in: the kernel says who asks. Over the network a token is used where `token_file` names one,",
        "else MUNGE. See [Signing in](signing-in.md).",
        "",
        "## The environment besides",
        "",
        "| Variable | Meaning |",
        "| --- | --- |",
        *(f"| `{name}` | {about} |" for name, about in client.ENVIRONMENT.items()),
    ]
    return "\n".join(lines) + "\n"


def routes_page() -> str:
    """Every route with its parameters, from the OpenAPI document."""
    document = describe(ROUTES)
    lines = [
        "# Routes",
        "",
        *str(document["info"]["description"]).splitlines(),
        "",
        "A server shows the whole document at `/openapi.json` and a page to browse it at `/docs`.",
        "",
    ]
    for path, item in sorted(document["paths"].items()):
        for verb, operation in item.items():
            lines += [f"## {verb.upper()} {path}", "", *_described(operation), ""]
    return "\n".join(lines).rstrip() + "\n"


def _described(operation: Mapping[str, Any]) -> Iterator[str]:
    yield str(operation.get("description") or operation.get("summary") or "")
    parameters = [each for each in operation.get("parameters", []) if each["in"] != "path"]
    if parameters:
        names = ", ".join(f"`{each['name']}`" for each in parameters)
        yield f"\nParameters: {names}."
    yield f"\nStatus: {', '.join(sorted(operation['responses']))}."


def commands_page() -> str:
    """Every command's help."""
    lines = ["# Commands", "", "```text", front.overview().rstrip(), "```", ""]
    links = ", ".join(f"`{name}` for `{' '.join(('fairbank', *words))}`" for name, words in front.SHORT_NAMES.items())
    lines += [f"A link to `fairbank` under a short name is that command: {links}. For example `ln -s fairbank sbalance`.", ""]
    for entry in front.COMMANDS:
        found = import_module(f"fairbank.cli.{entry.module}").COMMAND
        verbs = {f"{entry.name} {verb}": each for verb, each in found.verbs.items()} if isinstance(found, Noun) else {entry.name: found}
        for name, command in verbs.items():
            lines += [f"## fairbank {name}", "", "```text", command.parser(f"fairbank {name}").format_help().rstrip(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def states_page() -> str:
    """The life-cycle tables, and what each state allows."""
    lines = ["# States", "", "What is not in the tables of events does not happen.", "", "## An allocation", ""]
    lines += [f"- *{each.value}*: {_STANDINGS[each]}" for each in allocation.Standing]
    lines += ["", "The clock decides, not when somebody last looked: lists, filters and commands all show the state of that moment.", ""]
    lines += _table(("In state", "when", "goes to"), ((one.value, by.value, to.value) for (one, by), to in allocation.NEXT.items()))
    lines += ["", "A planned allocation goes where an active one does. What an allocation in each state says to a wish:", ""]
    lines += _table(("", *(each.value for each in allocation.Standing)), ((name, *said) for name, said in of_an_allocation()))
    lines += [
        "",
        "The period alone says which runs an allocation pays: those that start within it, whenever the bank is told of them. So the same",
        "report gets the same answer before the sweep and after it. And so what has ended gets time again in one way only:",
        "`fairbank alloc reopen ALLOC --end TIME`; another period that is not over yet is refused. An allocation that is ended before it",
        "began pays nothing.",
        "",
        "A freeze outlives the period: a hold that is told late is refused as it was in time, also after an `end`, and after the sweep,",
        "which leaves alone what is frozen. `thaw` lets it in. Usage is charged all the same.",
        "",
    ]
    lines += ["## A run", ""]
    lines += _table(("In state", "when", "goes to"), ((one.value, by.value, to.value) for (one, by), to in run.NEXT.items()))
    lines += ["", "What a run in each state says to a report of other content than the ones before:", ""]
    lines += _table(("", *(each.value for each in run.RunState)), ((name, *said) for name, said in of_a_run()))
    lines += ["", "Words in capitals are [refusals](refusals.md). *as before*: the answer to the first."]
    return "\n".join(lines) + "\n"


_STANDINGS: Mapping[allocation.Standing, str] = {
    allocation.Standing.PLANNED: "it has not begun",
    allocation.Standing.ACTIVE: "it has begun, and is not over",
    allocation.Standing.FROZEN: "staff let nothing be drawn for now, and it is not over",
    allocation.Standing.ENDED: "it is over, or staff ended it before",
}


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    top = list(heads)
    return [f"| {' | '.join(cells)} |".replace("|  |", "| |", 1) for cells in (top, ["---"] * len(top), *rows)]


def refusals_page() -> str:
    """Every way the bank says no."""
    lines = ["# Refusals", "", "The bank's no is an answer, not an error. Jobs find theirs again with `fairbank jobs --refused`.", ""]
    lines += ["| Reason | Meaning | HTTP status | Exit code |", "| --- | --- | --- | --- |"]
    reasons = explained()
    lines += [f"| [{no.name}](#{no.name.lower()}) | {no.meaning} | {STATUS[no.kind]} | {REFUSED[no.kind]} |" for no in reasons]
    lines += ["", "`fairbank help reasons` shows the following in a terminal, `fairbank help REASON` one alone."]
    for no in reasons:
        lines += ["", f"## {no.name}", "", f"{no.meaning[0].upper()}{no.meaning[1:]}. {no.why}", "", f"What to do: {no.remedy}"]
    return "\n".join(lines) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "settings": settings_page,
    "slurm": site_page,
    "client": client_page,
    "agent": agent_page,
    "routes": routes_page,
    "commands": commands_page,
    "states": states_page,
    "refusals": refusals_page,
}
