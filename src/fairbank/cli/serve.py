"""`fairbank serve`: runs the bank until it is told to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.command import Command
from fairbank.cli.init import add_config
from fairbank.cli.options import count

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.desk import Desk
    from fairbank.cli.parser import Parser


def add(parser: Parser) -> None:
    add_config(parser)
    parser.add_argument(
        "--port",
        metavar="N",
        type=count,
        help="listen on this TCP port too (usual: as the settings say)",
    )


def run(desk: Desk, options: Namespace) -> int:
    def ready(addresses: Sequence[str]) -> None:
        desk.note(f"The bank listens at {' and '.join(addresses)}")

    return desk.works.serve(options.config, port=options.port, ready=ready)


COMMAND = Command(
    "run the bank until Ctrl-C or SIGTERM",
    (
        "fairbank serve",
        "fairbank serve --config /etc/fairbank/fairbank.toml",
        "fairbank serve --port 8080",
    ),
    add,
    run,
    reads=False,
    asks=False,
)
