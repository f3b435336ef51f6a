"""Help on topics that are not commands: every reason of the bank, exit codes, the environment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairbank.agent.outage_policy import AGENT_REASONS
from fairbank.agent.reports.report import BANK_REASONS
from fairbank.bank.refusals import Reason
from fairbank.cli.framework.client_settings import ENVIRONMENT
from fairbank.cli.framework.error_exit import exit_code
from fairbank.cli.framework.exit_codes import EXIT_CODES
from fairbank.core.errors import FairbankError, RefusalKind
from fairbank.report.column_texts import TEXTS
from fairbank.rest.client import Refused
from fairbank.scheduling.reason import explain_reason
from tests.cli.conftest import Run
from tools.reference.manual import escape, manual


def test_every_reason_is_explained(fairbank: Run) -> None:
    result = fairbank("help", "reasons")
    assert (result.code, result.err) == (0, "")
    assert re.findall(r"^([A-Z_]+): ", result.out, re.MULTILINE) == [
        reason.name for reason in Reason
    ]
    words = " ".join(result.out.split())
    for reason in Reason:
        for text in (reason.info.message, reason.info.explanation, reason.info.general_remedy):
            assert text in words
            assert "{" not in text
        assert f"exit code {reason.kind.exit_code}, HTTP status {reason.kind.status}" in words
    assert max(map(len, result.out.splitlines())) <= 80


@pytest.mark.parametrize(
    "words",
    [
        ["INSUFFICIENT_CREDIT"],
        ["insufficient_credit"],
        ["no-allocation"],
        ["no", "allocation"],
        ["No_Allocation"],
    ],
)
def test_help_accepts_every_spelling_of_a_reason(fairbank: Run, words: list[str]) -> None:
    result = fairbank("help", *words)
    assert result.code == 0
    assert result.out.startswith(f"{'_'.join(words).upper().replace('-', '_')}: ")
    assert "  try: " in result.out


@pytest.mark.parametrize(
    "word", ["PartitionTimeLimit", "partitiontimelimit", "(PartitionTimeLimit)"]
)
def test_help_explains_the_reasons_of_slurm(fairbank: Run, word: str) -> None:
    result = fairbank("help", word)
    assert (result.code, result.err) == (0, "")
    assert "PartitionTimeLimit: Its time limit is longer than its partition allows." in result.out
    assert "try: a shorter limit: scontrol update jobid=JOBID timelimit=TIME" in result.out
    assert "fairbank why JOBID" in result.out
    mistaken = fairbank("help", "PartitionTimeLimt")
    assert mistaken.code == 2
    assert "did you mean\n    partitiontimelimit" in mistaken.err


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("ReqNodeNotAvail, UnavailableNodes:n1", "ReqNodeNotAvail"),
        ("ReqNodeNotAvail,", "ReqNodeNotAvail"),
        ("(ReqNodeNotAvail, Reserved for maintenance)", "ReqNodeNotAvail"),
        ("launch failed requeued held", "JobLaunchFailure"),
        ("launch_failed_requeued_held", "JobLaunchFailure"),
        ("user_env_retrieval_failed_requeued_held", "JobLaunchFailure"),
        ("launch failure limit exceeded requeued held", "JobHoldMaxRequeue"),
        ("(job requeued in held state)", "JobHeldUser"),
        ("job requeued in special exit state", "JobHeldUser"),
        ("Nodes required for job are DOWN, DRAINED or reserved for jobs in higher", "Resources"),
        ("(RaisedSignal:9(Killed))", "RaisedSignal"),
        ("(None)", "None"),
        ("(PowerNotAvail)", "PowerNotAvail"),
    ],
)
def test_help_explains_reasons_as_squeue_prints_them(fairbank: Run, words: str, name: str) -> None:
    for arguments in ([words], words.split()):
        result = fairbank("help", *arguments)
        assert (result.code, result.err) == (0, "")
        assert f"{name}: {explain_reason(name)[:20]}" in result.out


@pytest.mark.parametrize("word", [*BANK_REASONS, *AGENT_REASONS, "(Allocation_exhausted)"])
def test_help_explains_the_reasons_that_the_plug_in_shows_in_squeue(
    fairbank: Run, word: str
) -> None:
    result = fairbank("help", word)
    assert (result.code, result.err) == (0, "")
    name = word.strip("()")
    text = AGENT_REASONS.get(name) or Reason[BANK_REASONS[name]].info.explanation
    assert text in " ".join(result.out.split())


def test_reason_of_a_refusal_has_a_help_topic(fairbank: Run) -> None:
    shown = fairbank("jobs", "--refused", "-a", "-n", "-o", "REASON").out.strip()
    assert fairbank("help", *shown.split()).code == 0


def test_exit_codes(fairbank: Run) -> None:
    shown = fairbank("help", "exit-codes").out
    assert [int(code) for code in re.findall(r"^(\d+) ", shown, re.MULTILINE)] == list(EXIT_CODES)
    errors: list[type[FairbankError]] = [FairbankError, *FairbankError.__subclasses__()]
    used = {error.exit_code for error in errors}
    assert used | {kind.exit_code for kind in RefusalKind} <= EXIT_CODES.keys()


@pytest.mark.parametrize("kind", RefusalKind)
def test_refusal_exit_code_is_that_of_its_kind(kind: RefusalKind) -> None:
    assert exit_code(Refused("no", kind.status, {})) == kind.exit_code
    assert exit_code(Refused("no", 422, {})) == RefusalKind.CONFLICT.exit_code, (
        "what a bank of another version may say"
    )


def test_help_lists_the_environment_variables(fairbank: Run) -> None:
    shown = fairbank("help", "environment").out
    for name in ("FAIRBANK_SERVER", "FAIRBANK_CLUSTER", *ENVIRONMENT):
        assert re.search(rf"^{name}\s", shown, re.MULTILINE), name


def test_misspelt_word_gets_a_suggestion(fairbank: Run) -> None:
    result = fairbank("help", "frozne")
    assert (result.code, result.out) == (2, "")
    assert "there is no help on 'frozne'; did you mean frozen?" in result.err
    assert "did you mean balance?" in fairbank("help", "balanse").err
    for unlike in ("Nonsense", "storm"):
        assert "did you mean" not in fairbank("help", unlike).err


def test_every_column_is_explained_in_helpformat_and_manual(fairbank: Run, checkout: Path) -> None:
    """The manual page has the columns of all options: one without a sentence fails there."""
    own = TEXTS["MY-LEFT"], TEXTS["statement REMAINING"]
    listed = fairbank("balance", "--helpformat")
    assert own[0] in listed.out
    assert "-MINUTES: --csv and -P also have each amount in whole SU-minutes." in listed.err
    assert "-MINUTES" not in fairbank("project", "list", "--helpformat").err
    assert own[1] in " ".join(fairbank("statement", "--helpformat").out.split())
    shown = fairbank("jobs", "--refused", "--csv", "--helpformat").out
    assert f"{TEXTS['SHORT']}, in SU-minutes" in " ".join(shown.split())
    pages = manual().values()
    unused = [text for text in TEXTS.values() if not any(escape(text) in page for page in pages)]
    assert unused == []
    reference = (checkout / "docs" / "reference" / "commands.md").read_text()
    assert all(text in reference for text in own)


def test_every_reason_is_in_the_reference(checkout: Path) -> None:
    page = (checkout / "docs" / "reference" / "refusals.md").read_text()
    assert re.findall(r"^## ([A-Z_]+)$", page, re.MULTILINE) == [reason.name for reason in Reason]
