"""The layers hold in the tree as it is, and each contract refuses an import that it is about."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")

ROOMS = [
    *("errors", "wiring", "engine"),
    *(f"core/{name}" for name in ("model", "events", "policy", "outline", "lifecycle", "graph", "gates", "choose")),
    *(f"world/{name}" for name in ("journal", "settings", "artifacts")),
    *(f"ui/{name}" for name in ("views", "requests", "render", "top", "cli/show", "web/app", "mcp/tools")),
]

HONEST = {
    "core/graph": "import networkx",
    "core/choose": "import loopr.core.graph",
    "world/journal": "from loopr.core.events import x",
    "world/settings": "from loopr.core import policy",
    "ui/views": "import loopr.core.graph, loopr.wiring",
    "ui/cli/show": "import loopr.ui.views, loopr.ui.render",
    "ui/cli/mcp": "import loopr.ui.mcp.tools",
}

PLANTED = [
    ("layers", "core/model", "import loopr.world.journal"),
    ("layers", "world/journal", "import loopr.engine"),
    ("layers", "engine", "def f():\n    from loopr.ui import views"),
    ("layers", "attic", "x = 1"),
    ("world-is-apart", "world/settings", "import loopr.world.journal"),
    ("world-knows-words", "world/journal", "from loopr.core import lifecycle"),
    ("world-knows-words", "world/artifacts", "import loopr.core.gates"),
    ("surfaces", "ui/top", "import loopr.ui.cli.show"),
    ("surfaces", "ui/cli/show", "import loopr.ui.mcp.tools"),
    ("surfaces", "ui/mcp/tools", "import loopr.ui.cli.show"),
    ("surfaces", "ui/views", "import loopr.ui.render"),
    ("core-thinks", "core/choose", "import random"),
    ("core-thinks", "core/choose", "from os import path"),
    ("core-thinks", "core/choose", "from ruamel.yaml import YAML"),
    ("graph-alone", "ui/views", "import networkx.algorithms"),
]


def lint_imports(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Check the contracts of the project on the package in a folder."""
    command = [str(LINT_IMPORTS), "--config", str(ROOT / "pyproject.toml"), "--no-cache", "--no-logo", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def build(folder: Path, modules: dict[str, str]) -> None:
    """Write a package with every room of the house, holding only the imports that are given."""
    for name in [*ROOMS, *modules]:
        path = folder / "loopr" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(modules.get(name, ""))
    for package in {path.parent for path in folder.rglob("*.py")}:
        (package / "__init__.py").touch()


def test_the_layers_hold() -> None:
    """Every import of the package goes the way that the contracts allow."""
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_honest_house_passes(tmp_path: Path) -> None:
    """The contracts refuse none of the imports that the architecture asks for."""
    build(tmp_path, HONEST)
    done = lint_imports(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("contract", "module", "text"), PLANTED)
def test_a_contract_refuses(tmp_path: Path, contract: str, module: str, text: str) -> None:
    """Each contract breaks when the import it forbids is planted."""
    build(tmp_path, HONEST | {module: text})
    done = lint_imports(tmp_path, "--contract", contract)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout, done.stdout + done.stderr
