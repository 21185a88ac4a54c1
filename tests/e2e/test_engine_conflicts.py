"""What becomes of loops that cannot all be right: conflicts, and loops that would like to be their own judge."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.repos import Repo, opened

LINES = "one\ntwo\nthree\n"
KEEP = 'name=$(basename "$LOOPR_LOOP"); cp "$LOOPR_FEEDBACK_FILE" "$DESK/feedback.$name.$LOOPR_ITERATION" || true\n'


@pytest.fixture
def repo(tmp_path: Path) -> Iterator[Repo]:
    """Give a repository with a file of three lines."""
    with opened(tmp_path) as found:
        yield found.found({"lines": LINES})


def plan(repo: Repo, names: str, script: str, more: str = "", top: str = "") -> None:
    """Set a repository up for a plan with code loops of some names."""
    run = repo.script("code", KEEP + script)
    types = f"types:\n  plan: {{child: code}}\n  code: {{run: '{run}'{more}}}\n"
    repo.settings(f"{types}retry: {{max_attempts: 1}}\n{top}")  # whatever is no verdict is the end at once
    children = ", ".join(f"{{id: {each}}}" for each in names.split())
    repo.write({"plan.md": f"---\nchildren: [{children}]\n---\n# Demo\n"})


STUBBORN = """
if test "$LOOPR_ITERATION" = 1; then tell "$name"; wait_at "gate.$name"; fi
case $name in
a) sed 's/two/two of a/' lines > new; cat new > lines; rm new ;;
b)
  if test "$LOOPR_ITERATION" = 1; then sed 's/two/two of b/' lines > new; cat new > lines; rm new
  elif test "$LOOPR_ITERATION" != "${IDLE:-}"; then
    cp lines "$DESK/laid.b"
    git status --porcelain > "$DESK/status.b"
    printf 'one\\ntwo of a and b\\nthree\\n' > lines
  fi ;;
esac
"""


def side_by_side(repo: Repo, code: int = 0) -> None:
    """Let two loops change the same file, of which the first lands before the second has ended."""
    gates = {each: repo.gate(f"gate.{each}") for each in "ab"}
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    gates["a"].open()
    repo.loopr("wait", "demo/a")
    gates["b"].open()
    process.ended(code)


def test_a_conflict_is_mended(repo: Repo) -> None:
    """Of two loops that change one line the first lands; the other finds both versions in its file and lands then."""
    plan(repo, "a b", STUBBORN)
    side_by_side(repo)
    assert repo.landed("demo") == [("demo/a", 1, 1), ("demo/b", 2, 2)]
    assert repo.on_branch("demo", "lines") == "one\ntwo of a and b\nthree"
    laid = repo.note("laid.b")
    assert "<<<<<<<" in laid and ">>>>>>>" in laid
    assert "two of a\n" in laid and "two of b\n" in laid
    assert repo.note("status.b").split() == ["M", "lines"], "the index is clean, and nothing else is changed"
    said = repo.note("feedback.b.2")
    assert "lines" in said and repo.git("rev-parse", "--short", "loopr/demo^") in said, said
    assert repo.loops()["demo/b"]["conflicts"] == 1


def test_markers_that_are_left_are_refused(repo: Repo) -> None:
    """A conflict that the next try has left is a refusal that names the file."""
    plan(repo, "a b", f"IDLE=2\n{STUBBORN}")
    side_by_side(repo)
    assert "lines was left in conflict" in repo.note("feedback.b.3")
    assert repo.landed("demo") == [("demo/a", 1, 1), ("demo/b", 3, 3)]
    assert repo.on_branch("demo", "lines") == "one\ntwo of a and b\nthree"


SCRIPT = """
if test "$LOOPR_ITERATION" = 1; then tell "$name"; wait_at "gate.$name"; fi
if grep -q '<<<' lines; then echo "cannot read lines, pid $$"; exit 3; fi
sed "s/two/two of $name/" lines > new; cat new > lines; rm new
"""


def test_a_script_that_mends_nothing_begins_again(repo: Repo) -> None:
    """A command that knows its own change only makes it on the new tip, after one try in vain."""
    plan(repo, "a b", SCRIPT)
    side_by_side(repo)
    assert repo.on_branch("demo", "lines") == "one\ntwo of b of a\nthree"
    assert repo.landed("demo") == [("demo/a", 1, 1), ("demo/b", 3, 3)]
    said = repo.note("feedback.b.3")
    assert "lines was left in conflict" in said and "at the plan's tip" in said
    kept = repo.git("for-each-ref", "--format=%(refname)", "refs/loopr/backup/demo.b.g1").split()
    assert any("<<<<<<<" in repo.git("show", f"{each}:lines") for each in kept)


def test_make_makes_again_what_was_taken_back(repo: Repo) -> None:
    """A product that was committed before is older than its sources, also where these were not touched."""
    rule = "all: z/product a.o\nz/product: a/source\n\tcp a/source z/product\n"
    makefile = f"{rule}a.o: a/source z/product\n\tcp z/product a.o\n"
    repo.write({"a/source": "new\n", "z/product": "old\n", "Makefile": makefile, ".gitignore": "*.o\n"})
    repo.git("add", "a", "z", "Makefile", ".gitignore")
    repo.git("commit", "--quiet", "--message=make")
    script = """
    test "$name $LOOPR_ITERATION" != "b 1" || touch a/source
    make; cp a.o "$DESK/object.$name.$LOOPR_ITERATION"
    """
    plan(repo, "a b", f"{script}{SCRIPT}")
    side_by_side(repo)
    assert repo.on_branch("demo", "lines") == "one\ntwo of b of a\nthree"
    assert repo.note("object.b.3") == "new\n"
    assert repo.on_branch("demo", "z/product") == "new"


def test_a_conflict_is_mended_bit_by_bit(repo: Repo) -> None:
    """A try that mends one of two files is followed by one with the other, and nothing is merged."""
    script = """
    if test "$LOOPR_ITERATION" = 1; then
      tell "$name"; wait_at "gate.$name"; echo "$name" | tee lines > other
    elif test "$LOOPR_ITERATION" = 2; then
      echo mended > lines; cp other "$DESK/other.$name"
      echo later > "$LOOPR_WORKSPACE/sides"
    else
      cmp other "$DESK/other.$name" || exit 9
      echo mended > other
    fi
    """
    plan(repo, "a b", script)
    side_by_side(repo)
    assert repo.landed("demo") == [("demo/a", 1, 1), ("demo/b", 3, 3)]
    assert "other still has conflict markers (mend" in repo.note("feedback.b.3")
    assert {repo.on_branch("demo", each) for each in ("lines", "other")} == {"mended"}


def test_a_person_mends_a_conflict(repo: Repo) -> None:
    """An edit of a person in the worktree of a loop that has failed lands after a retry."""
    plan(repo, "a b", SCRIPT, ", max_iterations: 2")
    side_by_side(repo, code=1)
    loop = repo.loops()["demo/b"]
    assert loop["status"] == "failed" and "lines was left in conflict" in loop["reason"]
    (repo.root / "worktrees" / "demo.b.g1" / "lines").write_text("one\nmended\nthree\n")
    repo.loopr("retry", "demo/b")
    repo.loopr("run")
    assert repo.on_branch("demo", "lines") == "one\nmended\nthree"


def test_a_retry_begins_again(repo: Repo) -> None:
    """The try after `retry` begins without a conflict that is still there, as was said."""
    plan(repo, "a b", SCRIPT, ", max_iterations: 2")
    side_by_side(repo, code=1)
    repo.loopr("retry", "demo/b")
    repo.loopr("run")
    assert repo.on_branch("demo", "lines") == "one\ntwo of b of a\nthree"


def test_markers_of_the_plan_itself_are_no_conflict(repo: Repo) -> None:
    """A file that shows markers, as a page about git does, may keep those that it had."""
    script = """
    if test "$LOOPR_ITERATION" = 1; then tell "$name"; wait_at "gate.$name"; fi
    { printf '<<<<<<< ours\\n=======\\n>>>>>>> theirs\\n'; echo "of $name"; } > shown
    """
    plan(repo, "a b", script)
    repo.write({"shown": "<<<<<<< ours\n=======\n>>>>>>> theirs\n"})
    repo.git("add", "shown")
    repo.git("commit", "--quiet", "--message=shown")
    side_by_side(repo)
    assert repo.on_branch("demo", "shown").endswith("of b")
    assert repo.loops()["demo/b"]["conflicts"] == 1


def test_whoever_mends_a_conflict_lands_before_others_change_the_same(repo: Repo) -> None:
    """While one mends a conflict the landing of another in the same file waits, and is then in conflict once."""
    script = """
    tell "$name $LOOPR_ITERATION"; wait_at "gate.$name.$LOOPR_ITERATION"
    printf 'one\\ntwo of %s %s\\nthree\\n' "$name" "$LOOPR_ITERATION" > lines
    """
    plan(repo, "a b c", script)
    gates = {each: repo.gate(f"gate.{each}") for each in ("a.1", "b.1", "c.1", "b.2", "c.2")}
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    gates["a.1"].open()
    repo.loopr("wait", "demo/a")
    gates["b.1"].open()
    assert repo.heard() == ["b 2"]
    gates["c.1"].open()
    repo.until("conflicted", 2)
    assert "demo/b mends its conflict in lines first" in repo.loopr("why", "demo/c").out
    gates["b.2"].open()
    assert repo.heard() == ["c 2"]
    assert "two of b 2" in (repo.root / "worktrees" / "demo.c.g1" / "lines").read_text()
    gates["c.2"].open()
    process.ended()
    assert [each[1:] for each in repo.landed("demo")] == [(1, 1), (2, 2), (2, 2)]
    assert repo.on_branch("demo", "lines") == "one\ntwo of c 2\nthree"


def test_a_landing_in_the_same_file_waits_for_who_mends_it(repo: Repo) -> None:
    """Work that fits the plan as it stands does not land while another mends a conflict in its file."""
    script = """
    tell "$name $LOOPR_ITERATION"; wait_at "gate.$name.$LOOPR_ITERATION"
    printf 'one\\ntwo of %s %s\\nthree\\n' "$name" "$LOOPR_ITERATION" > lines
    """
    plan(repo, "a b c", script, top="concurrency: {max_loops: 2}\n")
    gates = {each: repo.gate(f"gate.{each}") for each in ("a.1", "b.1", "c.1", "b.2", "c.2")}
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    gates["a.1"].open()
    assert repo.heard() == ["c 1"]
    gates["b.1"].open()
    assert repo.heard() == ["b 2"]
    gates["c.1"].open()
    repo.until("landing_waits")
    assert "its landing waits: demo/b mends its conflict in lines first" in repo.loopr("why", "demo/c").out
    gates["b.2"].open()
    assert repo.heard() == ["c 2"]
    gates["c.2"].open()
    process.ended()
    assert [(each[0], each[2]) for each in repo.landed("demo")] == [("demo/a", 1), ("demo/b", 2), ("demo/c", 2)]


HOT = """
append() { printf '%s\\n' "$2" >> "$1"; }
union() { sed -i '/^<<<<<<< /d;/^=======$/d;/^>>>>>>> /d' "$1"; }
if test "$LOOPR_ITERATION" = 1; then append CHANGELOG "- $name"; append lib "def $name"
else union CHANGELOG; union lib; fi
"""


def test_twelve_loops_share_a_changelog(repo: Repo) -> None:
    """Each mends its conflict once at most: all of them land, in twenty-three attempts or less."""
    names = [f"n{each}" for each in range(12)]
    repo.write({"CHANGELOG": "# Changes\n", "lib": "# code\n"})
    repo.git("add", "CHANGELOG", "lib")
    repo.git("commit", "--quiet", "--message=hot")
    plan(repo, " ".join(names), HOT, ", check: '! grep -q \"^<<<<<<<\" CHANGELOG lib'", "concurrency: {max_loops: 3}\n")
    repo.loopr("start", "plan.md")
    assert sorted(repo.on_branch("demo", "CHANGELOG").split("\n")[1:]) == sorted(f"- {each}" for each in names)
    assert sorted(repo.on_branch("demo", "lib").split("\n")[1:]) == sorted(f"def {each}" for each in names)
    tries = [each[1] for each in repo.landed("demo")]
    assert len(tries) == 12 and max(tries) == 2, tries


def test_git_keeps_both_sides_of_what_union_names(repo: Repo) -> None:
    """With `merge.union` a changelog conflicts with nobody, on the plan's branch and on the way home."""
    repo.write({"CHANGELOG": "# Changes\n"})
    repo.git("add", "CHANGELOG")
    repo.git("commit", "--quiet", "--message=changes")
    script = """tell "$name"; wait_at gate; echo "- $name" >> CHANGELOG"""
    plan(repo, "a b c", script, top="merge: {union: ['CHANGE*']}\n")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(3)
    gate.open()
    process.ended()
    assert [each[1] for each in repo.landed("demo")] == [1, 1, 1]
    repo.write({"CHANGELOG": "# Changes\n- of a person\n"})
    repo.git("commit", "--quiet", "--message=mine", "CHANGELOG")
    repo.loopr("land", "demo", "--yes")
    lines = (repo.root / "CHANGELOG").read_text().splitlines()
    assert sorted(lines) == sorted(["# Changes", "- of a person", "- a", "- b", "- c"])


def test_files_that_conflict_often_are_named(repo: Repo) -> None:
    """`status` names them with the setting that ends it, `why` of one of the loops too."""
    repo.write({"docs/CHANGES.md": "# Changes\n", "lib": "# code\n"})
    repo.git("add", "docs", "lib")
    repo.git("commit", "--quiet", "--message=hot")
    plan(repo, "a b c", HOT.replace("CHANGELOG", "docs/CHANGES.md"), ", approve: true")
    repo.loopr("start", "plan.md", code=4)
    repo.loopr("approve", "demo/a", "demo/b", "demo/c")
    repo.loopr("run", code=4)
    said = " ".join(repo.loopr("status").out.split())
    hint = "`merge: {union: [docs/CHANGES.md]}` in loopr.yml keeps the lines of both sides"
    assert "many loops change the same: docs/CHANGES.md (2 conflicts), lib (2 conflicts)" in said and hint in said
    assert hint in " ".join(repo.loopr("why", "demo/b").out.split())


def test_one_that_never_can_is_parked(repo: Repo) -> None:
    """A loop that conflicts twice with the same tip is parked with that reason, and its branches are kept."""
    script = """
    tell "$name $LOOPR_ITERATION"; wait_at "gate.$name.$LOOPR_ITERATION"
    test "$LOOPR_ITERATION" != 1 || git rev-parse HEAD > "$DESK/base.$name"
    git reset -q --hard "$(cat "$DESK/base.$name")"
    printf 'one\\ntwo of %s %s\\nthree\\n' "$name" "$LOOPR_ITERATION" > lines
    """
    plan(repo, "a c", script)
    gates = {each: repo.gate(f"gate.{each}") for each in ("a.1", "c.1", "c.2")}
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    gates["a.1"].open()
    repo.loopr("wait", "demo/a")
    gates["c.1"].open()
    assert repo.heard() == ["c 2"]
    gates["c.2"].open()
    process.ended(1)
    loop = repo.loops()["demo/c"]
    assert (loop["status"], loop["conflicts"]) == ("parked", 2)
    assert "max_conflicts: 2 conflicts" in loop["reason"] and "lines" in loop["reason"]
    assert repo.on_branch("demo", "lines") == "one\ntwo of a 1\nthree"
    assert "two of c 2" in repo.git("show", "loopr/demo.c.g1:lines")
    kept = repo.git("for-each-ref", "--format=%(refname)", "refs/loopr/backup/demo.c.g1").splitlines()
    assert any("two of c 1" in repo.git("show", f"{each}:lines") for each in kept), kept


def test_both_sides_of_different_lines_land(repo: Repo) -> None:
    """Changes that git can merge land without another try, and the tree that landed was judged as a whole."""
    script = """
    tell x; wait_at gate
    case $name in a) sed s/one/1/ lines > new ;; *) sed s/three/3/ lines > new ;; esac
    cat new > lines; rm new
    """
    judge = repo.script("check", 'tr "\\n" " " < lines >> "$DESK/judged"')
    repo.write({"lines": "one\n\n\n\n\ntwo\n\n\n\n\nthree\n"})
    repo.git("commit", "--quiet", "--message=longer", "lines")
    plan(repo, "a b", script, f", check: '{judge}'")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    gate.open()
    process.ended()
    assert [each[1:] for each in repo.landed("demo")] == [(1, 1), (1, 1)]
    assert repo.on_branch("demo", "lines").split() == ["1", "two", "3"]
    assert "1     two     3" in repo.note("judged")


def test_a_yes_for_one_tree_is_none_for_another(repo: Repo) -> None:
    """What passed alone is judged again once a sibling has landed, and goes back for another try if both do not fit."""
    script = """
    if test "$LOOPR_ITERATION" = 1; then tell x; wait_at gate; fi
    test -e "$name.txt" || touch "$name.txt"
    test "$LOOPR_ITERATION" = 1 || mv "$name.txt" "$name.other"
    """
    plan(repo, "a b", script, ", check: 'test \"$(ls *.txt | wc -l)\" = 1 || { ls *.txt; exit 1; }'")
    gate = repo.gate("gate")
    process = repo.begin("start", "plan.md")
    repo.heard(2)
    gate.open()
    process.ended()
    assert sorted(each[2] for each in repo.landed("demo")) == [1, 2]
    second = repo.landed("demo")[1][0].removeprefix("demo/")
    assert "a.txt" in repo.note(f"feedback.{second}.2") and "b.txt" in repo.note(f"feedback.{second}.2")


# --- protection -----------------------------------------------------------------------------------------------------

JUDGED = """
case $name in
deletes) rm tests/test_it loopr.yml ;;
weakens) echo true > tests/test_it; echo 'concurrency: {max_loops: 1}' >> loopr.yml ;;
adds) echo true > tests/test_more; mkdir -p tests/deep; echo true > tests/deep/test_most ;;
links) rm -r tests; mkdir -p other; ln -s other tests ;;
esac
echo good > answer."$name"
"""
CHECK = """
name=$(basename "$LOOPR_LOOP")
cp -r tests "$DESK/seen.$name"
cp loopr.yml "$DESK/yml.$name"
sh tests/test_it
"""


@pytest.mark.parametrize("name", ["deletes", "weakens", "adds", "links"])
def test_protected_files_are_put_back(repo: Repo, name: str) -> None:
    """A loop that deletes, weakens or adds to its tests, or its loopr.yml, is judged and lands without that."""
    repo.write({"tests/test_it": "grep -q good answer.*\n"})
    repo.git("add", "tests")
    repo.git("commit", "--quiet", "--message=tests")
    plan(repo, name, JUDGED, f", protect: [tests/**], check: '{repo.script('check', CHECK)}'")
    repo.loopr("start", "plan.md")
    assert repo.git("diff", "--name-only", "main", "loopr/demo").split() == [f"answer.{name}"]
    seen = repo.desk / f"seen.{name}"
    assert {each.name for each in seen.iterdir()} == {"test_it"}
    assert (seen / "test_it").read_text() == "grep -q good answer.*\n"
    assert repo.note(f"yml.{name}") == (repo.root / "loopr.yml").read_text()


def test_a_folder_that_becomes_a_link(repo: Repo) -> None:
    """A loop may put a link in the place of a folder, as long as it stays within the tree."""
    repo.write({"old/file": "old", "new/file": "new"})
    repo.git("add", "old", "new")
    repo.git("commit", "--quiet", "--message=folders")
    plan(repo, "a", "rm -r old; ln -s new old", ", max_iterations: 1")
    repo.loopr("start", "plan.md")
    assert repo.on_branch("demo", "old") == "new"


def test_added_files_may_be_kept(repo: Repo) -> None:
    """With `protect_added: keep` a loop may add files among the protected ones, but change none."""
    repo.write({"tests/test_it": "true\n"})
    repo.git("add", "tests")
    repo.git("commit", "--quiet", "--message=tests")
    plan(repo, "adds", f"echo x >> tests/test_it\n{JUDGED}", ", protect: [tests/**], protect_added: keep")
    repo.loopr("start", "plan.md")
    changed = repo.git("diff", "--name-only", "main", "loopr/demo").split()
    assert changed == ["answer.adds", "tests/deep/test_most", "tests/test_more"]


def test_what_the_check_names_is_protected(repo: Repo) -> None:
    """The file that a check names cannot be changed by the loop that it judges, without being told to protect it."""
    repo.write({"tools/judge.sh": "grep -q good answer.*\n"})
    repo.git("add", "tools")
    repo.git("commit", "--quiet", "--message=judge")
    plan(repo, "a", "echo true > tools/judge.sh; echo bad > answer.a", ", check: sh tools/judge.sh, max_iterations: 1")
    repo.loopr("start", "plan.md", code=1)
    assert repo.statuses()["demo/a"] == "failed"


def test_what_is_put_back_is_told_when_work_lands(repo: Repo) -> None:
    """What a loop made of its judge is named when it lands without: in the journal, and as it happens."""
    repo.write({"tools/check.py": "import sys\nsys.exit(0)\n"})
    repo.git("add", "tools")
    repo.git("commit", "--quiet", "--message=judge")
    script = "mkdir tools/check; touch tools/check/__init__.py; echo >> tools/check.py; echo good > answer.a"
    plan(repo, "a", script, f", check: '{sys.executable} -m tools.check'")
    said = repo.loopr("start", "plan.md").err
    assert repo.git("diff", "--name-only", "main", "loopr/demo") == "answer.a"
    back = ["tools/check.py", "tools/check/__init__.py"]
    assert [sorted(each["data"]["put_back"]) for each in repo.events() if each["event"] == "landed"] == [back]
    assert "put back: tools/check.py, tools/check/__init__.py" in said
    assert "put back: tools/check.py" in repo.loopr("events").out


def test_the_feedback_says_what_was_put_back(repo: Repo) -> None:
    """A loop that is refused after its judge was put back is told which files those were."""
    repo.write({"tests/test_it": "grep -q good answer.*\n"})
    repo.git("add", "tests")
    repo.git("commit", "--quiet", "--message=tests")
    script = "case $LOOPR_ITERATION in 1) rm tests/test_it; echo bad > answer.a ;; 2) echo good > answer.a ;; esac"
    plan(repo, "a", script, ", protect: [tests/**], check: sh tests/test_it")
    repo.loopr("start", "plan.md")
    assert "tests/test_it" in repo.note("feedback.a.2")
    assert repo.landed("demo") == [("demo/a", 2, 2)]


def test_settings_of_a_loop_are_not_the_engines(repo: Repo) -> None:
    """A loopr.yml that a loop writes in its worktree changes nothing for the engine, nor for the next loop."""
    script = """
    echo 'types: {plan: {child: code}, code: {run: "say hacked"}}' > loopr.yml
    say "$name"
    touch "$name"
    """
    plan(repo, "a b", script, ", parallel: false")
    repo.loopr("start", "plan.md")
    assert repo.diary() == ["a", "b"]
    assert "hacked" not in repo.on_branch("demo", "loopr.yml")
