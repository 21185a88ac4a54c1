"""Every tree of up to four loops: in every order, and with every single thing going wrong before every report."""

from __future__ import annotations

import pytest

from tests.sim.small import Kind, Tree, has_siblings, kinds, orders, run, trees
from tests.sim.strikes import STRIKES

TREES = [tree for size in range(1, 5) for tree in trees(size)]
STAR = Tree((Tree(), Tree(), Tree()))
KINDS = (Kind(), Kind(needs=0b111), Kind(serial=True))


@pytest.mark.parametrize("tree", TREES, ids=range(len(TREES)))
def test_every_order_of_a_small_tree_ends_well(tree: Tree) -> None:
    """Whatever order the reports of up to four loops come in, no promise is broken and all is done at the end."""
    for kind in kinds(tree):
        for _ in orders(tree, kind, whole=tree == STAR):
            pass


@pytest.mark.parametrize("strike", STRIKES)
def test_a_small_tree_survives_anything_at_any_time(strike: str) -> None:
    """One thing that goes wrong before any report of up to four loops breaks no promise, and all is done at the end."""
    for tree in TREES:
        for kind in KINDS if has_siblings(tree) else KINDS[:1]:
            for at in range(4 * tree.size):
                run(tree, kind, strike=STRIKES[strike], at=at)


@pytest.mark.soak
@pytest.mark.parametrize("strike", STRIKES)
def test_a_small_tree_survives_it_in_any_order(strike: str) -> None:
    """The same holds in every order of whole attempts, and for all ways in which siblings can need each other."""
    for tree in TREES:
        for kind in kinds(tree):
            for order in list(orders(tree, kind, whole=True)):
                for at in range(4 * tree.size):
                    run(tree, kind, order, STRIKES[strike], at, whole=True)


@pytest.mark.soak
def test_every_order_of_the_widest_tree_ends_well() -> None:
    """Three siblings end well in every order of all their reports."""
    for _ in orders(STAR, Kind()):
        pass
