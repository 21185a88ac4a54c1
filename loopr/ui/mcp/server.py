"""The tools on standard input and output, by the protocol's own Python SDK.

Each call is done in a thread of its own, so that a long one holds up no other. Must never know a single tool.
"""

from __future__ import annotations

import gc
import signal
import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as Listed

from loopr import __version__
from loopr.ui.damage import naming_damage
from loopr.ui.declared import naming_declared
from loopr.ui.mcp.tools import TOOLS, Seat, Tool
from loopr.ui.questions import written
from loopr.ui.refusals import BUG, refusal

INSTRUCTIONS = """\
loopr drives a tree of work over files: a plan names specs, a spec names phases, a phase names code tasks. Each is a
loop, called by its id (oauth/tokens/store); its last segments (store) or a unique beginning will do. Begin with
`status` and `tree`; `why` says what a loop waits for, `logs` what its command wrote, `events` with `after` what is
new. Every answer is the JSON document of the verb `loopr TOOL --json`; a refusal says in `error.hint` what to do.
Tools that change something work with and without a running engine and start none: `status` says whether one runs,
`loopr run` starts one. To do a loop yourself: `lease_take`, work in the worktree, `lease_renew` now and then,
`lease_complete`.
"""


def build(seat: Seat) -> Server[Any]:
    """Make the server of a seat."""
    tools = TOOLS

    async def list_tools(_: ServerRequestContext[Any], __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(each) for each in tools.values()])

    async def call_tool(context: ServerRequestContext[Any], params: CallToolRequestParams) -> CallToolResult:
        tool = tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!r}; known: {', '.join(tools)}")
        asker = seat._replace(client=_client(context))
        job = partial(answer, tool, asker, params.arguments or {})
        text, failed = await to_thread.run_sync(job)  # what was begun is done, though the client may be gone by then
        return CallToolResult(content=[TextContent(text=text)], is_error=failed)

    return Server(
        "loopr", version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )


def _listed(tool: Tool) -> Listed:
    """Describe a tool as the protocol does."""
    hints = ToolAnnotations(read_only_hint=tool.reads, open_world_hint=False)
    return Listed(name=tool.name, description=tool.meaning, input_schema=tool.schema(), annotations=hints)


def _client(context: ServerRequestContext[Any]) -> str:
    """Return the name that the client gives itself."""
    params = context.session.client_params
    return params.client_info.name if params is not None else ""


def answer(tool: Tool, seat: Seat, given: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the document of an answer, or of a refusal, and whether it is one."""
    try:
        with naming_damage(seat.workspace), naming_declared(seat.workspace):
            return tool(seat, given), False
    except Exception as error:
        found = refusal(error)
        if found.exit_code == BUG:
            traceback.print_exc()
        return written(found.document()), True
    finally:
        gc.enable()  # what only shows switches it off, and this process stays


def serve(seat: Seat) -> None:
    """Serve the client at the other end of standard input and output until it goes."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else Ctrl-C would wait for the thread that reads from the client
    server = build(seat)

    async def talk() -> None:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    try:
        anyio.run(talk)
    except* BrokenPipeError:  # it went without waiting for an answer
        pass
