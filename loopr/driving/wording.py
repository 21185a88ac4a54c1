"""Commits as the settings word them; the trailers of loopr's own come first.

Knows the policy and what a commit is about. Must never know what is in a commit, nor make one.
"""

from __future__ import annotations

from typing import NamedTuple

from loopr.core.model import Loop
from loopr.core.wording import fill
from loopr.world.repo.words import Message, Trailers
from loopr.world.settings.parts import Commits


class About(NamedTuple):
    """The occasion of a commit: its loop, with title and body as loopr would say them."""

    title: str
    loop: Loop
    body: str = ""


def worded(commits: Commits, about: About, trailers: Trailers, at_ms: int) -> Message:
    """Word a commit as the settings say; the same settings and occasion give the same words."""
    loop = about.loop
    values = {
        "title": about.title,
        "loop": loop.id,
        "plan": loop.plan,
        "type": loop.type,
        "body": about.body,
    }
    subject, body = fill(commits.message, values)
    every = (*trailers, *commits.trailers)
    return Message(subject, body, every, at_ms, commits.author, commits.signoff)


def about_plan(commits: Commits, title: str, plan: Loop, at_ms: int) -> Message:
    """Word a merge of a whole plan."""
    return worded(commits, About(title, plan), (("Loopr-Plan", plan.id),), at_ms)
