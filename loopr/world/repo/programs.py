"""Which settings of git have it run a program, or read settings from another file.

Knows the names of settings. Must never know who has set one.
"""

from __future__ import annotations

import os
import re

HOOKS = "core.hookspath"
_RUNS = re.compile(
    r"core\.(alternaterefscommand|askpass|attributesfile|editor|fsmonitor|gitproxy|hookspath|pager|sshcommand)"
    r"|filter\..+|hook\..+|alias\..+|pager\..+|diff\.(.+\.)?(command|external|guitool|textconv|tool)"
    r"|merge\.(.+\.)?(driver|guitool|tool)|(diff|merge)tool\..+|guitool\..+\.cmd"
    r"|include\.path|includeif\..+\.path|credential\.(.+\.)?helper"
    r"|gpg\.(.+\.)?(defaultkeycommand|program)|sequence\.editor|interactive\.difffilter"
    r"|trailer\..+\.(cmd|command)|tar\..+\.command|(browser|man)\..+\.(cmd|path)|(help|web)\.browser"
    r"|instaweb\..+|init\.templatedir|sendemail\..+|uploadpack\.packobjectshook|gc\.recentobjectshook"
    r"|remote\..+\.(receivepack|uploadpack|vcs)|submodule\..+\.update|branch\..+\.mergeoptions"
    r"|protocol\..+|url\.ext::.+",
    re.DOTALL,
)
_HARMLESS = (
    (re.compile(r"filter\..+\.required", re.DOTALL), "false"),
    (re.compile(r"filter\..+", re.DOTALL), ""),
    (re.compile(r"merge\..+\.driver", re.DOTALL), "git merge-file %A %O %B"),  # as without a driver
    (re.compile(r"diff\..+\.textconv", re.DOTALL), "cat"),
    (re.compile(r"diff\.(.+\.)?(command|external)", re.DOTALL), "true"),
    (re.compile(r"core\.attributesfile"), os.devnull),
    (re.compile(r"core\.(fsmonitor|pager)"), "false"),
    (re.compile(r"credential\.(.+\.)?helper", re.DOTALL), ""),
    (re.compile(r"core\.(askpass|gitproxy|sshcommand)|gpg\..*program|gpg\..*defaultkeycommand", re.DOTALL), "false"),
)


def runs_program(key: str) -> bool:
    """Say whether a setting, as git writes its name, has git run a program or obey another file."""
    return _RUNS.fullmatch(key) is not None


def harmless_value(key: str) -> str | None:
    """Return the value under which a setting runs nothing, None where our calls of git never heed it."""
    return next((value for pattern, value in _HARMLESS if pattern.fullmatch(key)), None)
