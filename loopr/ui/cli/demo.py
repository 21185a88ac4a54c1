"""The verb that shows the main job in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from loopr.errors import NotFound
from loopr.ui.cli.frame import Frame, framed

SCRIPT = "demo.sh"
PACKAGED = Path(__file__).parents[2] / "demo"
IN_A_CHECKOUT = Path(__file__).parents[3] / "examples" / "quickstart"


@click.command("demo")
@click.argument("folder", required=False)
@framed
def demo_verb(frame: Frame, folder: str | None) -> int:
    """Drive a small tree of work in a new FOLDER that stays, or in a temporary one, and show each step."""
    found = next((each for each in (PACKAGED, IN_A_CHECKOUT) if (each / SCRIPT).is_file()), None)
    if found is None:
        raise NotFound("the demo is not installed", hint="examples/quickstart of the repository has it")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("LOOPR")}
    program = Path(sys.argv[0]).resolve()
    environ["LOOPR"] = str(program) if program.name == "loopr" else "loopr"
    words = [str(Path(frame.directory, folder).absolute())] if folder else []
    return subprocess.run(["sh", str(found / SCRIPT), *words], env=environ, check=False).returncode
