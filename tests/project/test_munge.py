"""MUNGE of the tests: a real daemon that knows the signer, refuses altered or used credentials, and
forgets them on a restart.
"""

from __future__ import annotations

import os
import stat

import pytest

from tests.support.account import Account
from tests.support.munge import REPLAYED, Munged, MungeTools, munging


def test_credential_contains_signer_and_payload(munged: Munged) -> None:
    answer = munged.decode(munged.encode(b"debit my account"))
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.endswith("debit my account")
    assert _metadata(answer.stdout)["UID"] == str(os.geteuid())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_credential_of_another_user_has_their_uid(munged: Munged) -> None:
    answer = munged.decode(munged.encode(b"", account=Account.number(54_321)))
    assert (_metadata(answer.stdout)["UID"], _metadata(answer.stdout)["GID"]) == ("54321", "54321")


def test_credential_is_valid_once(munged: Munged) -> None:
    credential = munged.encode(b"once")
    assert munged.decode(credential).returncode == 0
    assert munged.decode(credential).returncode == REPLAYED


def test_restarted_daemon_accepts_used_credentials(munged: Munged) -> None:
    """For this reason Fairbank's servers store used nonces themselves."""
    credential = munged.encode(b"twice")
    munged.decode(credential)
    munged.restart()
    assert munged.decode(credential).returncode == 0


def test_munged_restarts_after_kill_9(munged: Munged) -> None:
    munged.kill()
    assert not munged.running
    munged.start()
    assert munged.decode(munged.encode(b"back")).returncode == 0


def test_second_daemon_needs_the_same_key(munged: Munged, munge_tools: MungeTools) -> None:
    for key, readable in ((munged.key, True), (None, False)):
        with munging(munge_tools, key) as second:
            assert (second.decode(munged.encode(b"shared")).returncode == 0) is readable


def test_daemon_is_unprivileged_and_its_key_is_private(munged: Munged) -> None:
    status = munged.key_file.stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_uid != 0
    assert munged.libmunge.is_file()


def _metadata(answer: str) -> dict[str, str]:
    """Return the lines of unmunge's output such as `UID:  0`."""
    return {
        name.strip(): value.strip()
        for name, _, value in (line.partition(":") for line in answer.splitlines())
    }
