"""Usage errors: one sentence with a suggestion, the documented exit codes, never a traceback."""

from __future__ import annotations

import re
from argparse import Namespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbank import __version__
from fairbank.bank.query import PAGE_MAX
from fairbank.cli.framework.command import host_command
from fairbank.cli.framework.context import PAGE, Context
from fairbank.cli.framework.options import add_option
from fairbank.cli.framework.parser import Parser
from fairbank.cli.main import COMMANDS, find
from fairbank.core.errors import Conflict, Corrupt, FairbankError, InvalidInput, Unavailable
from fairbank.rest.client.response import error_of
from tests.cli.conftest import Run
from tests.cli.fakes import FakeServices

CODES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 130}
EXCLUDED = {"replay", "simulate", "demo", "share", "prio"}  # these run for seconds or need Slurm


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["balanse"], "did you mean balance?"),
        (["Usage"], "did you mean usage?"),
        (["alloc", "lst"], "did you mean list"),
        (["project", "adduser", "x", "y"], "did you mean add-user"),
        (["balance", "--jsn"], "did you mean --json"),
        (["xyzzy"], "there is no command 'xyzzy'"),
        (["balance", "surplus"], "fairbank balance has no argument 'surplus'"),
        (["balance", "--units", "q"], "invalid choice: 'q'"),
        (["jobs", "--running", "--refused"], "not allowed with"),
        (["replay", "x.swf", "--days", "0"], "at least 1 day"),
        (["token", "create", "x", "--days", "0"], "'0' is not a whole number from 1 on"),
        (["token", "create", "x", "--days", "-1"], "'-1' is not a whole number from 1 on"),
        (["balance", "--as", "-1"], "'-1' is not a user"),
        (["serve", "--port", "0"], "'0' is not a whole number from 1 on"),
        (["jobs", "--limit", "many"], "not a whole number from 1 on"),
        (["balance", "--watch", "1"], "not more often"),
        (["alloc", "show"], "ALLOC"),
        (["alloc", "show", "x"], "not a whole number from 1 on"),
        (["audit"], "needs a verb"),
        (["--alll"], "did you mean --all"),
    ],
)
def test_usage_error_gets_a_suggestion(fairbank: Run, words: list[str], meant: str) -> None:
    result = fairbank(*words)
    assert result.code == 2
    assert result.out == ""
    assert result.err.startswith("fairbank: ")
    assert meant in " ".join(result.err.split())


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version(fairbank: Run, hadm: Run, flag: str) -> None:
    assert fairbank(flag).out == f"fairbank {__version__}\n"
    assert hadm(flag).out == f"sproject (fairbank {__version__})\n"


@pytest.mark.parametrize("name", [entry.name for entry in COMMANDS])
def test_every_command_explains_itself(fairbank: Run, name: str) -> None:
    result = fairbank(name, "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"fairbank {name}: ")
    assert fairbank("help", name).out == result.out
    if "Verbs:" in result.out:
        verbs = [
            line.split()[0]
            for line in result.out.split("Verbs:\n")[1].split("\n\n")[0].splitlines()
        ]
        pages = [fairbank(name, verb, "--help").out for verb in verbs]
    else:
        pages = [result.out]
    for page in pages:
        assert page.split("Examples:\n")[1].split("\n\n")[0].count("\n") == 2, "three examples"
        assert max(map(len, page.splitlines())) <= 120


@pytest.mark.parametrize("words", [("report", "centre"), ("quote",), ("statement",)])
def test_usage_line_shows_which_arguments_may_be_left_out(
    fairbank: Run, words: tuple[str, ...]
) -> None:
    """As the reference does; argparse knows it only before and after it parses."""
    (usage,) = re.findall(r"^Usage: fairbank (.*)$", fairbank(*words, "--help").out, re.MULTILINE)
    assert re.fullmatch(rf"{' '.join(words)} \[[A-Z]+\] \[OPTIONS\]", usage)


def test_usage_line_shows_required_options(fairbank: Run) -> None:
    page = fairbank("alloc", "create", "--help").out
    assert (
        "Usage: fairbank alloc create -A PROJECT -r NAME --end TIME --reason TEXT [OPTIONS]\n"
        in page
    )
    assert (
        "Usage: fairbank deposit [ALLOC] AMOUNT --reason TEXT [OPTIONS]\n"
        in fairbank("deposit", "--help").out
    )


def test_help_lists_every_command(fairbank: Run) -> None:
    shown = fairbank("--help").out
    for entry in COMMANDS:
        assert find(entry.name) is entry
        assert f"\n  {entry.name} " in shown
        assert fairbank("-h").out == fairbank("help").out == shown


def test_options_may_precede_the_command(fairbank: Run) -> None:
    assert fairbank("--json", "balance").out == fairbank("balance", "--json").out
    assert (
        fairbank("--units", "m", "-P", "balance", "-n").out
        == fairbank("balance", "-n", "--units", "m", "-P").out
    )


def test_unreachable_bank_is_exit_6_with_a_remedy(fairbank: Run) -> None:
    for words in (
        ["balance"],
        [],
        ["status"],
        ["deposit", "1", "1", "--reason", "x"],
        ["jobs", "--refused"],
    ):
        result = fairbank(*words, "--server", "unix:/nowhere/bank.sock")
        assert (result.code, result.out) == (6, "")
        assert "fairbank serve" in result.err
        assert "FAIRBANK_SERVER" in result.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FairbankError("x"), 1),
        (Unavailable("x"), 6),
        (Conflict("x", field="f", remedy="r"), 7),
        (Corrupt("x"), 8),
        (KeyError("x"), 1),
        (ModuleNotFoundError("x", name="sqlalchemy.orm"), 6),
        (ModuleNotFoundError("x", name="fairbank.core.gone"), 1),
        (ModuleNotFoundError("x", name="_sqlite3"), 1),
    ],
)
def test_exit_code_is_that_of_the_error(fairbank: Run, error: FairbankError, code: int) -> None:
    result = fairbank("doctor", services=FakeServices(error=error))
    assert result.code == code
    assert result.out == ""


def test_bug_is_one_sentence_without_verbose(fairbank: Run, clean_env: pytest.MonkeyPatch) -> None:
    services = FakeServices(error=ZeroDivisionError("a\x1b[31m"))  # type: ignore[arg-type]
    result = fairbank("doctor", "-q", services=services)
    assert result.code == 1
    assert (
        result.err.splitlines()[0]
        == "fairbank: this should not have happened: ZeroDivisionError: a\\x1b[31m"
    )
    assert "FAIRBANK_DEBUG=1" in result.err


def test_interruption_exits_with_130(fairbank: Run) -> None:
    services = FakeServices(error=KeyboardInterrupt())  # type: ignore[arg-type]
    assert fairbank("doctor", services=services).code == 130


def test_broken_pipe_is_silent(fairbank: Run) -> None:
    services = FakeServices(error=BrokenPipeError())  # type: ignore[arg-type]
    result = fairbank("doctor", "-q", services=services)
    assert (result.code, result.err) == (0, "")


ARGUMENTS = """list show create set users cap freeze add-user verify heads -A -u --me -a -j -r -o
    +ALLOC --json --csv -P -n -l -v -q -t -p --limit --watch --by --help -S now-7days 1 2 99
    chem_qmc 61001
    --reason x --dry-run --units m --threshold bash -- --as --progress"""
words = st.one_of(
    st.sampled_from([entry.name for entry in COMMANDS if entry.name not in EXCLUDED]),
    st.sampled_from(ARGUMENTS.split()),
    st.text(max_size=8),
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, max_size=7))
def test_no_arguments_give_a_traceback(changing: Run, arguments: list[str]) -> None:
    if "--watch" in arguments or "-" in arguments:
        return  # --watch never ends, and - reads the standard input of the tests
    ended = changing(*arguments, services=FakeServices())
    assert ended.code in CODES
    assert "should not have happened" not in ended.err
    assert ended.code == 0 or ended.err
    assert "\x1b" not in ended.out + ended.err


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, max_size=5))
def test_no_arguments_of_sproject_give_a_traceback(hadm: Run, arguments: list[str]) -> None:
    ended = hadm(*arguments)
    assert ended.code in CODES
    assert "should not have happened" not in ended.err


def _add_period(parser: Parser) -> None:
    add_option(parser, "--endtime TIME", "end, at most 100 %% later (default: %(default)s)")
    add_option(parser, "--since", "a flag, which has no other value")


@pytest.mark.parametrize(
    ("field", "is_answer", "remedy"),
    [
        ("end", True, "give another --endtime TIME: end, at most 100 % later (default: None)"),
        ("since", True, "seconds since 1970"),  # of a flag
        ("label", True, "seconds since 1970"),  # sent as it was typed
        ("end", False, "seconds since 1970"),  # the command's own remedy
    ],
)
def test_remedy_of_the_bank_for_a_time_is_that_of_its_option(
    field: str, is_answer: bool, remedy: str
) -> None:
    def fail(context: Context, options: Namespace) -> int:
        if is_answer:
            raise error_of(400, {"detail": "wrong", "field": field, "remedy": "seconds since 1970"})
        raise InvalidInput("wrong", field=field, remedy="seconds since 1970")

    command = host_command("test", (), _add_period, fail)
    with pytest.raises(InvalidInput) as raised:
        command.execute("fairbank test", ["--endtime", "1", "--since"])
    assert raised.value.remedy == remedy


def test_client_page_size_is_the_maximum() -> None:
    assert PAGE == PAGE_MAX


@pytest.mark.parametrize("words", ["deposit 1 --reason x -- --", "alloc cap 1 5002 -- --"])
def test_second_double_dash_is_no_argument(changing: Run, words: str) -> None:
    result = changing(*words.split())
    assert (result.code, "has no argument '--'\n" in result.err) == (2, True)
