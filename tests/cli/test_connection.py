"""Connections to the bank: over the network, by a short name, while it starts; and the number of
requests of each command.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from fairbank.cli.framework import client_settings
from fairbank.rest.client import Client
from fairbank.rest.client.signers import Signer
from tests.cli.conftest import Run
from tests.cli.served_site import Bank, serve_site
from tests.cli.site import AYLA, JORGE
from tests.support.munge import Munged


def test_link_with_a_short_name_runs_the_command(bank: Bank, tmp_path: Path) -> None:
    link = tmp_path / "sbalance"
    link.symlink_to(Path(sys.executable).parent / "fairbank")
    environment = {"FAIRBANK_SERVER": bank.unix, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [str(link), "-n", "-P", "-o", "PROJECT"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["bio_fold", "chem_qmc", "chem_qmc"]


@pytest.mark.parametrize("words", ["", "balance", "status", "deposit 1 5 --reason x"])
def test_own_bank_that_is_not_running_is_not_replaced_by_the_hosts(
    fairbank: Run, bank: Bank, clean_env: pytest.MonkeyPatch, tmp_path: Path, words: str
) -> None:
    clean_env.setattr(client_settings, "SITE_SOCKET", bank.unix.removeprefix("unix:"))
    clean_env.delenv("FAIRBANK_SERVER")
    assert fairbank("balance").code == 0, "the host's bank runs"
    assert fairbank("init").code == 0
    own = tmp_path / ".local/state/fairbank/fairbank.toml"
    for environment in (None, own):
        if environment is not None:
            clean_env.setenv("FAIRBANK_CONFIG", str(environment))
        result = fairbank(*words.split())
        assert (result.code, result.out) == (6, "")
        text = " ".join(result.err.split())
        assert f"the bank of {own} is not running" in text
        assert f"start it with: fairbank serve --config {own}" in text
    assert fairbank("balance", "--server", bank.unix).code == 0


def refusal(fairbank: Run, server: str, code: int = 6) -> str:
    """Return the error of `status` for an address. `balance`, which has to sign, has the same,
    also where MUNGE is missing.
    """
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FAIRBANK_LIBMUNGE", "libnosuch.so")
        result, signing = (fairbank(verb, "--server", server) for verb in ("status", "balance"))
    assert (result.code, result.out) == (code, "")
    assert (signing.code, signing.err) == (code, result.err)
    return " ".join(result.err.split())


GROUP = 64_321
"""Group without a name and without members."""


@pytest.mark.parametrize(
    ("socket_mode", "directory_mode", "message"),
    [
        (0o660, 0o755, "the socket belongs to user {owner} and group {group}, with mode 0660"),
        (0o666, 0o700, "the directory {folder} belongs to user {owner} and group {group}"),
    ],
)
def test_refused_socket_names_user_and_owner(
    fairbank: Run, socket_mode: int, directory_mode: int, message: str
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as server:
        server.bind(f"{folder}/bank.sock")
        server.listen()
        if os.geteuid() != 0:
            pytest.skip("only root can become another user")
        os.chown(f"{folder}/bank.sock", 0, GROUP)
        os.chown(folder, 0, GROUP)
        Path(folder, "bank.sock").chmod(socket_mode)
        Path(folder).chmod(directory_mode)
        os.seteuid(65_534)
        try:
            text = refusal(fairbank, f"unix:{folder}/bank.sock", 4)
            user = pwd.getpwuid(65_534).pw_name
        finally:
            os.seteuid(0)
        owner = pwd.getpwuid(0).pw_name
    assert f"user {user} may not connect to unix:{folder}/bank.sock" in text
    assert message.format(folder=folder, owner=owner, group=GROUP) in text
    joining = f"have user {user} added to the group {GROUP}"
    assert (joining in text) == (socket_mode == 0o660)
    assert f"ask {owner} for access" in text


def test_port_with_tls_is_named_for_a_clear_address(fairbank: Run) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(4):  # of each command the request, then the probe
                with listener.accept()[0] as connection, suppress(OSError):
                    context.wrap_socket(connection, server_side=True)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        place = f"127.0.0.1:{listener.getsockname()[1]}"
        text = refusal(fairbank, f"http://{place}")
        thread.join()
    assert f"the server at http://{place} uses TLS there" in text
    assert f"try: write https://{place}" in text


def test_port_without_tls_is_named_for_an_https_address(fairbank: Run, bank: Bank) -> None:
    text = refusal(fairbank, bank.http.replace("http:", "https:"))
    assert "does not use TLS there" in text
    assert f"try: write {bank.http}" in text


def test_each_silence_has_its_own_remedy(fairbank: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = refusal(fairbank, "http://no-such-host.invalid:80")
    assert "the host no-such-host.invalid is not known here" in unknown
    assert "the name service of this host" in unknown
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = f"http://127.0.0.1:{listener.getsockname()[1]}"
        defaults: dict[str, object] = Client.__init__.__kwdefaults__ or {}
        monkeypatch.setitem(defaults, "timeout_seconds", 0.05)
        silent = refusal(fairbank, place)
    assert f"the bank at {place} does not answer in time" in silent
    assert "a firewall may drop" in silent
    closed = refusal(fairbank, place)
    assert f"no server listens at {place}: connection refused" in closed
    assert "check the port in --server" in closed


def test_commands_use_few_requests(fairbank: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    targets: list[str] = []

    def record(_signer: Signer, _method: str, target: str, *_: object) -> None:
        targets.append(target.partition("?")[0])

    monkeypatch.setattr(Signer, "authorization", record)
    fairbank("balance")
    assert targets == ["/balance"]
    targets.clear()
    fairbank()
    assert targets == ["/whoami", "/balance", "/job", "/failure"]


def test_status_and_whoami(fairbank: Run, bank: Bank) -> None:
    assert fairbank("status").out.startswith(f"bank fairbank ok at {bank.unix}")
    output = fairbank("whoami", "--as", JORGE).out
    assert f"fairbank at {bank.unix}" in output
    assert "61002" in output
    assert "member of chem_qmc, member of bio_fold" in output
    assert json.loads(fairbank("whoami", "--json", "--as", AYLA).out)["data"][0]["roles"] == [
        {"project": 1, "role": "pi"}
    ]


def test_status_waits_for_a_starting_bank(
    fairbank: Run, bank: Bank, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = tmp_path / "late.sock"
    monkeypatch.setattr(
        "fairbank.cli.commands.bank.connection.time.sleep",
        lambda seconds: late.symlink_to(bank.unix.removeprefix("unix:")),
    )
    assert fairbank("status", "--server", f"unix:{late}").code == 6
    assert fairbank("status", "--server", f"unix:{late}", "--wait", "0").code == 6
    output = fairbank("status", "--server", f"unix:{late}", "--wait").out
    assert output.startswith("bank fairbank ok at")


def test_over_the_network_with_a_token(
    fairbank: Run, bank: Bank, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setenv("FAIRBANK_TOKEN_FILE", bank.token_file)
    assert "61001" in fairbank("whoami", "--server", bank.http).out
    assert fairbank("balance", "--server", bank.http).out.count("chem_qmc") == 2
    assert "bio_fold" not in fairbank("--server", bank.http).out


def test_over_the_network_with_neither_token_nor_munge(
    fairbank: Run, bank: Bank, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setenv("FAIRBANK_LIBMUNGE", "libnosuch.so")
    result = fairbank("balance", "--server", bank.http)
    output = " ".join(result.err.split())
    assert result.code == 6
    assert "field: token_file" in output
    assert "FAIRBANK_TOKEN_FILE; fairbank token create makes one" in output
    assert "install libmunge2" in output


def test_health_needs_no_authentication(
    fairbank: Run, bank: Bank, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setenv("FAIRBANK_LIBMUNGE", "libnosuch.so")
    output = fairbank("status", "--server", bank.http).out
    assert output.startswith(f"bank fairbank ok at {bank.http}")


def test_over_the_network_with_munge(
    fairbank: Run, munged: Munged, clean_env: pytest.MonkeyPatch
) -> None:
    clean_env.setenv("FAIRBANK_MUNGE_SOCKET", str(munged.socket))
    clean_env.setenv("FAIRBANK_LIBMUNGE", str(munged.libmunge))
    with serve_site(
        SITE_MUNGE=str(munged.socket), SITE_LIBMUNGE=str(munged.libmunge)
    ) as munge_bank:
        assert "superuser" in fairbank("whoami", "--server", munge_bank.http).out
        clean_env.setenv("FAIRBANK_SERVER_NAME", "another-bank")
        wrong = fairbank("whoami", "--server", munge_bank.http)
        assert wrong.code == 4
        assert "server name" in wrong.err
