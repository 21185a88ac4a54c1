"""Makes and checks the pages of the book. Usage: book.py chapter|contents|bind|check, in the folder of the book."""

import os
import re
import sys
from html import escape, unescape
from pathlib import Path

CHAPTERS, SITE = Path("chapters"), Path("site")
HEADING = re.compile(r"<h([1-6])(?: id=\"([^\"]*)\")?>(.*?)</h\1>")


def slug(text):
    """Return the anchor of a heading."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def inline(text):
    """Turn links into HTML; a chapter's source becomes its page."""
    return re.sub(r"\[(.+?)\]\((.+?)\)", lambda m: f'<a href="{m[2].replace(".md", ".html")}">{m[1]}</a>', escape(text))


def block(text):
    """Turn one paragraph, list or heading into HTML."""
    found = re.match(r"(#+) (.*)", text)
    if found:
        level = len(found[1])
        return f'<h{level} id="{slug(found[2])}">{inline(found[2])}</h{level}>'
    if text.startswith("- "):
        return "<ul>\n" + "".join(f"<li>{inline(line[2:])}</li>\n" for line in text.splitlines()) + "</ul>"
    return f"<p>{inline(text)}</p>"


def write(name, title, blocks):
    """Write a page of the site."""
    SITE.mkdir(exist_ok=True)
    page = ["<!doctype html>", '<meta charset="utf-8">', f"<title>{escape(title)}</title>", *blocks, ""]
    (SITE / f"{name}.html").write_text("\n".join(page), "utf-8")


def chapter(name):
    """Make a page of a chapter."""
    blocks = (CHAPTERS / f"{name}.md").read_text("utf-8").strip().split("\n\n")
    write(name, blocks[0].lstrip("# "), [block(each) for each in blocks])


def contents(_):
    """Make the page of contents, from the headings of the pages that are there."""
    entries = []
    for page in sorted(SITE.glob("[0-9]*.html")):
        for level, anchor, title in HEADING.findall(page.read_text("utf-8")):
            entries.append(f'<li class="level{level}"><a href="{page.name}#{anchor}">{title}</a></li>')
    write("index", "A book about walking", ["<h1>A book about walking</h1>", "<ul>", *entries, "</ul>"])


def bind(name):
    """Add a chapter to the text that is printed, with the number that follows from what is there already."""
    book = SITE / "book.txt"
    before = book.read_text("utf-8") if book.exists() else ""
    number = before.count("Chapter ") + 1
    text = re.sub(r"<[^>]*>", "", (SITE / f"{name}.html").read_text("utf-8").split("</title>")[1])
    book.write_text(f"{before}Chapter {number}\n{unescape(text)}\n", "utf-8")


def problems(page):
    """Name what is wrong with a page."""
    html = page.read_text("utf-8")
    levels = [int(level) for level, _, _ in HEADING.findall(html)]
    if levels.count(1) != 1 or levels[0] != 1:
        yield "it does not begin with its one heading of the first level"
    if any(levels[place] > levels[place - 1] + 1 for place in range(1, len(levels))):
        yield "a level of headings is left out"
    for target in re.findall(r'href="([^"]*)"', html):
        name, _, anchor = target.partition("#")
        source = CHAPTERS / name.replace(".html", ".md")
        if not source.exists():
            yield f"{target} leads nowhere"
        elif anchor and anchor not in map(slug, re.findall(r"^#+ (.*)$", source.read_text("utf-8"), re.MULTILINE)):
            yield f"{target} leads to no heading of that chapter"


def check(_):
    """Judge all pages that are there."""
    found = [f"{page}: {problem}" for page in sorted(SITE.glob("*.html")) for problem in problems(page)]
    sys.exit("\n".join(found) or 0)


if __name__ == "__main__":
    {"chapter": chapter, "contents": contents, "bind": bind, "check": check}[sys.argv[1]](
        os.environ.get("LOOPR_LOOP", "").rpartition("/")[2]
    )
