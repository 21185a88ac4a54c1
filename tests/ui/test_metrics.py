"""The numbers for a monitor: their format, and that they count what happened."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopr.core import observations as o
from loopr.core.model import Failure, Usage
from loopr.ui import metrics
from loopr.wiring import Workspace
from tests.ui.scenes import COMMANDS, MINUTE, Desk, flat

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (-?[0-9.e+-]+|\+Inf|NaN)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}
Labels = tuple[tuple[str, str], ...]


class Family(NamedTuple):
    kind: str
    samples: dict[tuple[str, Labels], float]


def parsed(text: str) -> dict[str, Family]:
    """Read the text format as its specification has it; whatever does not fit is an error."""
    assert text.endswith("\n")
    found: dict[str, Family] = {}
    described = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            _, _, described, words = line.split(" ", 3)
            assert words
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == described
            assert name not in found, "a family is written in one piece"
            found[name] = Family(kind, {})
        else:
            name, labels, value = sample(line)
            family = found[described]
            suffix = name.removeprefix(described)
            assert name.startswith(described)
            assert suffix in SUFFIXES[family.kind]
            assert (suffix, labels) not in family.samples, "a sample is there once"
            family.samples[suffix, labels] = value
    return found


def sample(line: str) -> tuple[str, Labels, float]:
    """Read one sample."""
    whole = SAMPLE.fullmatch(line)
    assert whole, line
    rest, labels = whole[2] or "", []
    while rest:
        one = LABEL.match(rest)
        assert one, line
        plain = re.sub(r"\\(.)", lambda each: {"n": "\n"}.get(each[1], each[1]), one[2])
        labels.append((one[1], plain))
        rest = rest[one.end() :]
        assert not rest or rest.startswith(","), line
        rest = rest.removeprefix(",")
    assert len({key for key, _ in labels}) == len(labels)
    return whole[1], tuple(labels), float(whole[3].replace("+Inf", "inf"))


def told(shop: Desk) -> dict[str, Family]:
    """Ask for the metrics, and read them."""
    answer = shop("status", "--metrics")
    assert answer.code == 0, answer
    return parsed(answer.out)


def value(found: dict[str, Family], name: str, suffix: str = "", **labels: str) -> float:
    """Return one sample."""
    return found[name].samples[suffix, tuple(labels.items())]


@pytest.fixture
def busy(shop: Desk) -> Desk:
    """Give a workspace with a history: one loop refused and landed, one parked, one on its way, a resting lane."""
    shop.write("loopr.yml", COMMANDS.replace("run: make spec", "run: make spec, lane: hal"))
    shop("set", "concurrency.per_type.spec", "3")
    shop("set", "lanes.ramp", "false")
    shop.start(flat(["a", "b", "c"]))
    shop.clock.at += 2 * MINUTE
    shop.choose()
    shop.run("p/a")
    shop.see(o.AttemptUsed("p/a", 1, Usage(100, None, 5_000)))
    shop.end("p/a", Failure.REFUSED, "no")
    shop.clock.at += MINUTE // 2
    shop.choose()
    shop.run("p/a")
    shop.see(o.AttemptUsed("p/a", 2, Usage(100, None, 70_000)))
    shop.land("p/a", "k")
    shop.run("p/b")
    shop.end("p/b", Failure.CONFIG, "no such program: make")
    shop.run("p/c")
    return shop


def test_counters_count_the_journal(busy: Desk) -> None:
    """Every event of the journal is counted under its name, and nothing else."""
    found = told(busy)["loopr_events_total"]
    with Workspace(busy.folder).journal() as journal:
        names = [each.event for each in journal.since(0)]
    assert {labels[0][1]: n for (_, labels), n in found.samples.items()} == {n: names.count(n) for n in set(names)}


def test_attempts_by_outcome(busy: Desk) -> None:
    """An attempt that has ended counts once, under what became of it; a live one does not count."""
    assert {dict(labels)["outcome"]: n for (_, labels), n in told(busy)["loopr_attempts_total"].samples.items()} == {
        "refused": 1,
        "ok": 1,
        "config": 1,
    }


def test_seconds_of_attempts(busy: Desk) -> None:
    """Sum, count and buckets of how long attempts ran; a bucket holds all that is not longer than its edge."""
    found = told(busy)
    edges = {
        dict(labels)["le"]: n
        for (suffix, labels), n in found["loopr_attempt_seconds"].samples.items()
        if suffix == "_bucket" and dict(labels)["type"] == "spec"
    }
    assert list(edges) == [*(str(each) for each in metrics.BUCKETS), "+Inf"]
    assert (edges["1"], edges["5"], edges["60"], edges["300"], edges["+Inf"]) == (1, 2, 2, 3, 3)
    assert value(found, "loopr_attempt_seconds", "_count", type="spec") == 3
    assert value(found, "loopr_attempt_seconds", "_sum", type="spec") == 75


def test_time_in_the_queue(busy: Desk) -> None:
    """Each lease counts the time since its loop last became pending: by its declaration, or by a refusal."""
    found = told(busy)
    assert value(found, "loopr_queue_seconds", "_count", type="spec") == 4
    assert value(found, "loopr_queue_seconds", "_sum", type="spec") == 3 * 120 + 30


def test_gauges(busy: Desk) -> None:
    """Loops by status and type, lanes that rest, and problems are as they are now."""
    busy.see(o.AttemptEnded("p/c", 1, o.Trouble(Failure.LIMITED, "usage limit")))
    found = told(busy)
    assert value(found, "loopr_loops", status="complete", type="plan") == 1
    assert value(found, "loopr_loops", status="parked", type="spec") == 1
    assert value(found, "loopr_loops", status="pending", type="spec") == 1
    assert value(found, "loopr_problems") == 1
    assert value(found, "loopr_lane_resting", lane="hal") == 1
    assert value(found, "loopr_lane_parked", lane="hal") == 0
    busy.clock.at += 60 * MINUTE
    assert value(told(busy), "loopr_lane_resting", lane="hal") == 0


def test_an_empty_workspace(desk: Desk) -> None:
    """Before anything is planned the format holds all the same."""
    assert value(told(desk), "loopr_problems") == 0


def test_json_is_refused(desk: Desk) -> None:
    """Two formats at once are a mistake in the command line."""
    assert desk("status", "--metrics", "--json").code == 2


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_label_comes_back(text: str) -> None:
    """Whatever a lane or a type is called, a reader gets that very name back."""
    family = metrics.Family("x", "gauge", f"About {text}.", [("", (("a", text), ("b", "c")), 0.5)])
    found = parsed("".join(f"{line}\n" for line in metrics._lines(family)))
    assert found["x"].samples == {("", (("a", text), ("b", "c"))): 0.5}
