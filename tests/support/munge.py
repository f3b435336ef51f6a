"""Real MUNGE daemon for the tests, with its own key, directories and user. The host's MUNGE is
never used.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.account import Account
from tests.support.daemon import Daemon

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "munge"
DAEMON_UID = 62_617  # belongs to nobody: the daemon needs no name
REPLAYED = 17  # EMUNGE_CRED_REPLAYED of munge.h
PACKAGES = ("munge", "libmunge2")


class Unobtainable(Exception):
    """MUNGE is not available on this machine; the message has the reason."""


@dataclass(frozen=True)
class MungeTools:
    """Directory of the programs and the library: `/usr`, or an unpacked package."""

    usr: Path

    @property
    def libmunge(self) -> Path:
        """Return the shared library, for ctypes."""
        result = sorted(
            [*self.usr.glob("lib/*/libmunge.so.2"), *self.usr.glob("lib*/libmunge.so.2")]
        )
        if not result:
            raise Unobtainable(f"{self.usr} has no libmunge.so.2")
        return result[0]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "LC_ALL": "C",
            "TZ": "UTC",
            "LD_LIBRARY_PATH": str(self.libmunge.parent),
        }

    def check(self) -> MungeTools:
        """Return itself if the programs run here. Raises Unobtainable."""
        for program in (
            self.usr / "sbin" / "munged",
            self.usr / "bin" / "munge",
            self.usr / "bin" / "unmunge",
        ):
            if not program.exists():
                raise Unobtainable(f"{program} is not there")
            done = subprocess.run(
                [program, "--version"],
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise Unobtainable(f"{program} does not run here: {done.stderr.strip()}")
        return self


class Munged(Daemon):
    """Daemon that may be stopped, killed and restarted with the same key. With the key of another
    one, both are in one realm.
    """

    name = "munged"

    def __init__(self, tools: MungeTools, *, key: bytes | None = None) -> None:
        self.key = key or secrets.token_bytes(128)
        super().__init__(
            Account.number(DAEMON_UID), "fb-mu-", mode=0o711
        )  # clients of any user pass, and see nothing
        self.tools = MungeTools(self._account.within_reach(tools.usr, self.folder))
        self.socket = self.folder / "socket"
        self.key_file = self.folder / "key"
        self.key_file.touch(mode=0o600)
        self.key_file.write_bytes(self.key)
        self._account.give(self.key_file)

    @property
    def libmunge(self) -> Path:
        """Return the library that connects to this daemon: for ctypes, or for FAIRBANK_LIBMUNGE."""
        return self.tools.libmunge

    @property
    def environment(self) -> dict[str, str]:
        return self.tools.environment

    def encode(self, payload: bytes, *, account: Account | None = None) -> str:
        """Return a credential of the payload, made as this user (default: ourselves)."""
        who = account or Account.ourselves()
        done = subprocess.run(
            [self.tools.usr / "bin" / "munge", "--socket", self.socket],
            input=payload,
            env=self.tools.environment,
            user=who.uid,
            group=who.gid,
            extra_groups=who.groups,
            stdout=subprocess.PIPE,
            check=True,
        )
        return done.stdout.decode().strip()

    def decode(self, credential: str) -> subprocess.CompletedProcess[str]:
        """Run `unmunge`: the status is its exit code; metadata, in numbers, and the payload are on
        stdout.
        """
        return subprocess.run(
            [self.tools.usr / "bin" / "unmunge", "--socket", self.socket, "--numeric"],
            input=credential,
            env=self.tools.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def _command(self) -> list[str]:
        return [str(self.tools.usr / "sbin" / "munged"), "--foreground", *self._places()]

    def _places(self) -> list[str]:
        return [
            f"--socket={self.socket}",
            f"--key-file={self.key_file}",
            f"--log-file={self.folder / 'events'}",
            f"--pid-file={self.folder / 'pid'}",
            f"--seed-file={self.folder / 'seed'}",
        ]

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0


def obtain() -> MungeTools:
    """Return MUNGE of this machine; otherwise Debian's packages, unpacked in the checkout's cache.
    Raises Unobtainable.
    """
    try:
        return MungeTools(Path("/usr")).check()
    except Unobtainable:
        unpacked = CACHE / "usr"
        if not unpacked.exists():
            _unpack(CACHE)
        return MungeTools(unpacked).check()


def _unpack(place: Path) -> None:
    """Download and unpack the packages without installing them and without root. The directory
    appears completely or not at all.
    """
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise Unobtainable(
            "munge is not installed, and this is no Debian to fetch it from; install munge"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as draft:
        packages, unpacked = Path(draft) / "packages", Path(draft) / "unpacked"
        packages.mkdir()
        if os.geteuid() == 0 and not any(Path("/var/lib/apt/lists").glob("*_Packages*")):
            _run(["apt-get", "update"], packages)
        _run(["apt-get", "download", *PACKAGES], packages)
        for package in packages.glob("*.deb"):
            _run(["dpkg-deb", "-x", str(package), str(unpacked)], packages)
        try:
            unpacked.rename(place)
        except OSError:
            if not place.exists():  # another test process was quicker: as good
                raise


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unobtainable(
            f"munge is not installed, and `{' '.join(command)}` failed:"
            f" {done.stderr.strip()[-300:]}"
        )


@contextmanager
def munging(tools: MungeTools, key: bytes | None = None) -> Iterator[Munged]:
    """Run a daemon, with a new key by default."""
    daemon = Munged(tools, key=key)
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.close()


@pytest.fixture(scope="session")
def munge_tools() -> MungeTools:
    """Return MUNGE's programs and library."""
    try:
        return obtain()
    except Unobtainable as why:
        pytest.skip(f"MUNGE: {why}")


@pytest.fixture
def munged(munge_tools: MungeTools) -> Iterator[Munged]:
    """Yield a running daemon with its own key."""
    with munging(munge_tools) as daemon:
        yield daemon
