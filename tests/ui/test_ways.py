"""What is said of a plan before anything of it runs: how each loop ends, and what is certain to fail."""

from __future__ import annotations

from tests.ui.scenes import Desk

PLAN = """---
id: demo
specs:
  - id: s
    phases:
      - {id: works, run: "echo x > x", check: "test -s x"}
      - {id: lost, run: frobnicate --fast, check: [no-such-judge]}
      - {id: piped, run: "frobnicate | cat", check: "true"}
      - {id: script, run: ./work.sh, check: ./nowhere.sh --now}
      - {id: hands, run: "true", leaf: false, check: "true"}
      - {id: plain}
  - id: later
---
# Demo
"""
WAYS = {
    "demo": "by declaration",
    "demo/s": "by declaration",
    "demo/s/works": "leaf",
    "demo/s/lost": "leaf",
    "demo/s/piped": "leaf",
    "demo/s/script": "leaf",
    "demo/s/hands": "hands over",
    "demo/s/plain": "by declaration",
    "demo/s/plain/code": "by a person",
    "demo/later": "by a person",
}


def test_each_loop_is_told_how_it_ends(desk: Desk) -> None:
    """The dry run and the simulation say of each loop whether it just works, hands over, or waits for a person."""
    path = desk.write("demo.md", PLAN)
    dry = desk("start", "--dry-run", path)
    for loop, way in WAYS.items():
        assert any(f" {loop.rpartition('/')[2]} " in f" {line}" and way in line for line in dry.out.splitlines()), loop
    assert desk("start", "--dry-run", path, "--json").document["ways"] == WAYS
    assert desk("simulate", path, "--json").document["ways"] == WAYS
    assert "leaf: demo/s/works, demo/s/lost" in desk("simulate", path).out


def test_what_is_certain_to_fail_is_foretold(desk: Desk) -> None:
    """Programs that are nowhere, scripts that are not committed or not there: each is named, with nothing begun."""
    path = desk.write("demo.md", PLAN)
    desk.write("work.sh", "echo y > y\n")
    for found in (desk("start", "--dry-run", path).err, desk("simulate", path).err):
        assert "not committed as here: work.sh" in found
        assert "neither committed nor here: nowhere.sh" in found
        assert "demo.md:7:9 run: there is no program frobnicate" in found
        assert "demo.md:7:9 check: there is no program no-such-judge" in found
        assert found.count("frobnicate") == 1


def test_a_leaf_is_judged_by_what_the_last_type_has(desk: Desk) -> None:
    """Where the last type has a check nothing is amiss; without one it is told what would judge it."""
    plan = "---\nid: demo\nspecs: [{id: s, phases: [{id: p, run: 'echo x > x'}]}]\n---\n# Demo\n"
    path = desk.write("demo.md", plan)
    assert "nothing judges phase" in (said := desk("start", "--dry-run", path).err)
    assert "types.code.check" in said
    desk.write("loopr.yml", "types: {code: {check: 'true'}}\n")
    assert "nothing judges" not in desk("start", "--dry-run", path).err
    desk.write("loopr.yml", "types: {phase: {check: none}}\n")
    assert "nothing judges" not in desk("start", "--dry-run", path).err


def test_why_says_that_a_leaf_counts_as_its_type(shop: Desk) -> None:
    """A phase that just does the work waits for the other phases, and `why` says so in so many words."""
    shop.write("loopr.yml", "concurrency: {per_type: {phase: 1}}\n")
    phases = "{id: a, run: 'true'}, {id: b, run: 'true'}"
    shop.start(f"---\nid: demo\nspecs: [{{id: s, phases: [{phases}]}}]\n---\n# Demo\n")
    shop.choose()
    (gate,) = shop("why", "demo/s/b", "--json").document["gates"]
    assert gate["reason"] == "1 of 1 phase loop is at work; a phase that just does the work counts as one too"
