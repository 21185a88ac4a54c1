"""The verb that opens the other surface: the server for agents. Must never know what is served there."""

from __future__ import annotations

import click

from loopr.errors import SettingsError
from loopr.ui.cli.frame import Frame, framed

_PACKAGES = frozenset({"mcp", "mcp_types", "anyio"})


@click.command("mcp")
@framed
def mcp_verb(frame: Frame) -> None:
    """Serve an agent over standard input and output, by the Model Context Protocol, until it goes.

    Whoever started it may do here what the command line lets them do there.
    """
    try:
        from loopr.ui.mcp.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
            raise
        hint = "pip install 'loopr[mcp]'"
        raise SettingsError("the MCP server needs the protocol's Python SDK, version 2", hint=hint) from error
    from loopr.ui.mcp.tools import Seat

    serve(Seat(frame.directory, frame.sets))
