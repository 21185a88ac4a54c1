"""The verb that opens the other surface: the server for agents. Must never know what is served there."""

from __future__ import annotations

import click

from loopr.errors import SettingsError
from loopr.ui.cli.frame import Frame, framed
from loopr.ui.driving import surrounding_loop

_PACKAGES = frozenset({"mcp", "mcp_types", "anyio"})


@click.command("mcp")
@click.option("--allow-nested", is_flag=True, help="offer every tool even though a loop's command started this")
@framed
def mcp_verb(frame: Frame, allow_nested: bool) -> None:
    """Serve an agent over standard input and output, by the Model Context Protocol, until it goes.

    Within a loop's command only the tools that change nothing are offered.
    """
    try:
        from loopr.ui.mcp.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
            raise
        hint = "pip install 'loopr[mcp]'"
        raise SettingsError("the MCP server needs the protocol's Python SDK, version 2", hint=hint) from error
    from loopr.ui.mcp.tools import Seat

    serve(Seat(frame.directory, frame.sets), only_reading=surrounding_loop() is not None and not allow_nested)
