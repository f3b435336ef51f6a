"""Settings of the commands: the address of the bank and the time zone."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairbank.cli.framework import client_settings as door
from fairbank.cli.framework.client_settings import read_client_settings
from fairbank.cli.framework.host import Local
from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.rest.client import MungeSigner, TokenSigner
from fairbank.rest.client.signers import read_token


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty home directory on a site without a settings file."""
    monkeypatch.setattr(door, "SITE_FILE", str(tmp_path / "site.toml"))
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", str(tmp_path), 1))
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_flags_before_environment_before_user_before_site(home: Path) -> None:
    write(home / "site.toml", 'server = "unix:/site"\ncluster = "site"\nserver_name = "bank7"\n')
    write(home / ".config/fairbank/client.toml", 'server = "unix:/user"\ncluster = "user"\n')
    environment = {"FAIRBANK_SERVER": "unix:/environment"}
    assert read_client_settings({}, {}).server == "unix:/user"
    result = read_client_settings({"server": None}, environment)
    assert (result.server, result.cluster, result.server_name) == (
        "unix:/environment",
        "user",
        "bank7",
    )
    assert read_client_settings({"server": "unix:/flag"}, environment).server == "unix:/flag"
    (home / ".config/fairbank/client.toml").unlink()
    assert read_client_settings({}, {}).cluster == "site"


def bank_settings(path: Path, socket: str) -> Path:
    write(path, f'[server]\nsocket = "{socket}"\n')
    return path


def test_own_bank_comes_before_the_banks_of_the_host(home: Path) -> None:
    assert read_client_settings({}, {}).server == "unix:/run/fairbank/fairbank.sock"
    write(home / "site.toml", 'server = "unix:/site"\n')
    own = bank_settings(home / ".local/state/fairbank/fairbank.toml", "/own")
    result = read_client_settings({}, {})
    assert (result.server, result.bank_file) == ("unix:/own", str(own))
    other = bank_settings(home / "state/fairbank/fairbank.toml", "/other")
    result = read_client_settings({}, {"XDG_STATE_HOME": str(home / "state")})
    assert (result.server, result.bank_file) == ("unix:/other", str(other))
    write(home / ".config/fairbank/client.toml", 'server = "unix:/user"\n')
    result = read_client_settings({}, {})
    assert (result.server, result.bank_file) == ("unix:/user", None)


def test_settings_named_in_the_environment_name_the_bank(home: Path) -> None:
    write(home / ".config/fairbank/client.toml", 'server = "unix:/user"\ncluster = "darwin"\n')
    named = {"FAIRBANK_CONFIG": str(bank_settings(home / "trial.toml", "/trial"))}
    result = read_client_settings({}, named)
    assert (result.server, result.cluster) == ("unix:/trial", "darwin")
    assert result.bank_file == str(home / "trial.toml")
    # They are not read if the address is known.
    missing = {"FAIRBANK_CONFIG": str(home / "missing.toml"), "FAIRBANK_SERVER": "unix:/other"}
    result = read_client_settings({}, missing)
    assert (result.server, result.bank_file) == ("unix:/other", None)


def test_directory_of_a_cluster_is_no_name_of_one(home: Path) -> None:
    assert read_client_settings({}, {"FAIRBANK_CLUSTER": "/var/tmp/q"}).cluster is None
    assert read_client_settings({}, {"FAIRBANK_CLUSTER": "darwin"}).cluster == "darwin"
    write(home / "site.toml", 'cluster = "/var/tmp/q"\n')
    assert read_client_settings({}, {}).cluster is None
    write(home / ".config/fairbank/client.toml", 'cluster = "darwin"\n')
    assert read_client_settings({}, {"FAIRBANK_CLUSTER": "/var/tmp/q"}).cluster == "darwin"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (None, NotFound, "cannot read the settings .*no such file"),
        ("", InvalidInput, "names no socket"),
        ("server = 5", InvalidInput, "names no socket"),
        ("[server", InvalidInput, "is not TOML"),
    ],
)
def test_settings_named_in_the_environment_must_be_those_of_a_bank(
    home: Path, text: str | None, error: type[FairbankError], message: str
) -> None:
    if text is not None:
        write(home / "trial.toml", text)
    with pytest.raises(error, match=message) as raised:
        read_client_settings({}, {"FAIRBANK_CONFIG": str(home / "trial.toml")})
    assert raised.value.field == "FAIRBANK_CONFIG"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server = ", "not TOML"),
        ("servr = 'x'", "'servr' is not a setting"),
        ("server = 5", "'server' is not"),
    ],
)
def test_invalid_settings_file_is_reported(home: Path, text: str, message: str) -> None:
    write(home / "site.toml", text)
    with pytest.raises(InvalidInput, match=message):
        read_client_settings({}, {})


def test_authentication_method(home: Path) -> None:
    token = home / "token"
    token.touch(mode=0o600)
    token.write_text("fbk_abc\n")
    assert read_client_settings({}, {}).signer().authorization("GET", "/", b"", None, None) is None
    network = {"FAIRBANK_SERVER": "http://bank:8080"}
    assert isinstance(read_client_settings({}, network).signer(), MungeSigner)
    with_token = read_client_settings({}, {**network, "FAIRBANK_TOKEN_FILE": str(token)}).signer()
    assert isinstance(with_token, TokenSigner)
    assert with_token.authorization("GET", "/", b"", None, None) == "Bearer fbk_abc"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_token_file_readable_by_others_is_refused(tmp_path: Path, mode: int) -> None:
    token = tmp_path / "token"
    token.write_text("fbk_secret")
    token.chmod(mode)
    with pytest.raises(Forbidden, match="others can read") as message:
        read_token(str(token))
    assert "secret" not in message.value.message.replace(str(token), "")


def test_invalid_token_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_token(str(tmp_path / "none"))
    with pytest.raises(InvalidInput, match="is not a regular file"):
        read_token(str(tmp_path))
    for text in ("", "two words", "a\nb", "\x00", "ü"):
        token = tmp_path / "token"
        token.touch(mode=0o600)
        token.write_text(text)
        with pytest.raises(InvalidInput, match="does not contain a token"):
            read_token(str(token))


@pytest.mark.parametrize(
    "name", ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"]
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(1_000_000_000, 2_000_000_000))
def test_local_zone_equals_the_system_zone(
    name: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", name)
        time.tzset()
        try:
            local, expected = (
                datetime.fromtimestamp(at, Local()),
                datetime.fromtimestamp(at, ZoneInfo(name)),
            )
            assert local.isoformat() == expected.isoformat()
            assert local.timestamp() == at
            assert (local.tzname(), local.astimezone(UTC)) == (
                expected.tzname(),
                expected.astimezone(UTC),
            )
        finally:
            patched.undo()
            time.tzset()
