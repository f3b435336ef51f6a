"""Command `fairbank serve`: run the server until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairbank.cli.commands.admin.init import add_config
from fairbank.cli.framework.command import Command
from fairbank.cli.framework.options import count

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from fairbank.cli.framework.context import Context
    from fairbank.cli.framework.parser import Parser


def add(parser: Parser) -> None:
    add_config(parser)
    parser.add_argument(
        "--port",
        metavar="N",
        type=count,
        help="listen on this TCP port too (default: as the settings say)",
    )


def run(context: Context, options: Namespace) -> int:
    from fairbank.setup import server

    def ready(addresses: Sequence[str]) -> None:
        context.note(f"The bank listens at {' and '.join(addresses)}")

    return server.run(options.config, port=options.port, ready=ready)


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
