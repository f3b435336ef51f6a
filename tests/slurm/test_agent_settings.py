"""Settings of the agent: each error names its key and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairbank.agent.outage_policy import OutagePolicy
from fairbank.core.errors import Forbidden, InvalidInput, NotFound
from fairbank.rest.client import MungeSigner, TokenSigner
from fairbank.slurm.agent_settings import (
    SlurmAgentSettings,
    agent_settings,
    read_agent_settings,
    settings_file,
)
from tools.reference.pages.agent import AGENT_EXAMPLE


def test_empty_file_gives_the_defaults() -> None:
    assert agent_settings(b"") == SlurmAgentSettings()


def test_partition_inherits_the_default_terms() -> None:
    settings = agent_settings(
        b'[terms]\npatience = 4\nrefusal = "cancel"\n[partitions.gpu]\noutage_policy = "open"\n'
    )
    gpu, cpu = settings.terms_of("gpu"), settings.terms_of("cpu")
    assert (gpu.patience, gpu.refusal, gpu.outage_policy) == (4, "cancel", OutagePolicy.OPEN)
    assert (cpu.patience, cpu.refusal, cpu.outage_policy) == (4, "cancel", OutagePolicy.CLOSED)


def test_example_of_the_documentation_is_valid() -> None:
    assert (
        agent_settings(AGENT_EXAMPLE.encode()).terms_of("debug").outage_policy is OutagePolicy.OPEN
    )


@pytest.mark.parametrize(
    ("text", "field", "remedy"),
    [
        ("x = 1", "x", "there are: plugin, bank,"),
        ("[plugin]\nsock = 1", "plugin.sock", "there are: socket, slurm_user"),
        ('[plugin]\nsocket = "prep.sock"', "plugin.socket", "accepted: "),
        ("[plugin]\nslurm_user = -1", "plugin.slurm_user", "accepted: "),
        ('[bank]\nserver = "bank"', "bank.server", "write unix:"),
        ('[bank]\ntimeout = "soon"', "bank.timeout", "accepted: "),
        ("[senders]\nmaximum = 0", "senders.maximum", "accepted: "),
        ("[senders]\nminimum = 5", "senders.minimum", "at most senders.maximum"),
        ("[control]\nport = 70000", "control.port", "accepted: "),
        ('[terms]\noutage_policy = "ajar"', "terms.outage_policy", "one of: open, closed, credit"),
        ("[terms]\npatience = 0", "terms.patience", "accepted: "),
        ('[terms]\nrefusal = "shout"', "terms.refusal", "one of: "),
        ('[site_factor]\npath = "table"', "site_factor.path", "accepted: "),
        ("[site_factor]\nrefresh = 600", "site_factor.stale", "more than site_factor.refresh"),
        ('[site_factor]\nrule = "steep"', "site_factor.rule", "one of: linear, power, sigmoid"),
        (
            "[site_factor.credit]\nexponent = 2.0",
            "site_factor.credit.exponent",
            'write site_factor.rule = "power"',
        ),
        (
            '[site_factor]\nrule = "power"\nexpiry.midpoint = 0.7',
            "site_factor.expiry.midpoint",
            'site_factor.rule = "sigmoid"',
        ),
        ("[site_factor.credit]\nexponent = 0", "site_factor.credit.exponent", "accepted: "),
        ("[site_factor.expiry]\nsteepness = nan", "site_factor.expiry.steepness", "accepted: "),
        ("[site_factor.expiry]\nsteepness = inf", "site_factor.expiry.steepness", "accepted: "),
        ("[site_factor.expiry]\nmidpoint = 1.5", "site_factor.expiry.midpoint", "accepted: "),
        (
            "[site_factor.expiry]\nmiddle = 1",
            "site_factor.expiry.middle",
            "there are: exponent, steepness, midpoint",
        ),
        (
            "[partitions.gpu]\nsilense = 1",
            "partitions[...].silense",
            "there are: patience, outage_policy,",
        ),
        ("[partitions]\ngpu = 1", "partitions[...]", "accepted: "),
        ("terms = 1", "terms", "accepted: "),
        ("not toml", "config", "fix the line named"),
        ('log = "loud"', "log", "one of: "),
    ],
)
def test_error_names_the_key_and_the_remedy(text: str, field: str, remedy: str) -> None:
    with pytest.raises(InvalidInput) as bad:
        agent_settings(text.encode())
    assert bad.value.field == field
    assert remedy in str(bad.value.remedy)
    assert "`" not in bad.value.message


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ('[terms]\nsilence = "open"', "outage_policy"),
        ("[partitions.gpu]\nahead = 3", "optimistic_start"),
    ],
)
def test_settings_of_an_older_version_are_refused_as_such(text: str, new: str) -> None:
    with pytest.raises(InvalidInput, match="the file is of an older version: ") as bad:
        agent_settings(text.encode())
    assert bad.value.remedy == f"rename it to {new}"


def test_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"cannot read the settings .*none\.toml"):
        read_agent_settings(tmp_path / "none.toml")
    wrong = tmp_path / "agent.toml"
    wrong.write_text("x = 1")
    with pytest.raises(InvalidInput, match=r"agent\.toml: there is no setting x"):
        read_agent_settings(wrong)


def test_option_and_environment_name_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(settings_file(None)) == "/etc/fairbank/agent.toml"
    monkeypatch.setenv("FAIRBANK_AGENT_CONFIG", "/a")
    assert str(settings_file(None)) == "/a"
    assert str(settings_file("/b")) == "/b"


def test_unknown_slurm_user_is_an_error() -> None:
    assert agent_settings(b"[plugin]\nslurm_user = 64030").plugin.uids() == {0, 64_030}
    with pytest.raises(NotFound) as bad:
        agent_settings(b'[plugin]\nslurm_user = "nobody-of-this-name"').plugin.uids()
    assert bad.value.field == "plugin.slurm_user"


def test_signer_depends_on_server_and_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("fbk_x\n")
    token.chmod(0o600)
    text = f'[bank]\nserver = "http://127.0.0.1:1"\ntoken_file = "{token}"\n'
    assert isinstance(agent_settings(text.encode()).bank.signer(), TokenSigner)
    assert isinstance(
        agent_settings(b'[bank]\nserver = "http://127.0.0.1:1"').bank.signer(), MungeSigner
    )
    token.chmod(0o644)
    with pytest.raises(Forbidden):
        agent_settings(text.encode()).bank.signer()
