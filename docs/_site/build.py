"""Builds the documentation as a site: `make docs` writes it into build/site. With `serve`, shows it.

Zensical reads one folder. So `gather` copies the pages into `build/pages`, and with them what they link to outside of
`docs/`. Pages link to files of the repository by relative paths, which work wherever the repository is shown; in the
copies, what is in `docs/` is at the top.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

from zensical.main import cli

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = REPOSITORY / "build" / "pages"
SITE = REPOSITORY / "build" / "site"
DOCS = "docs/"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def gather() -> None:
    """Copies README, the changelog, all of `docs/`, and what these link to.

    Raises:
        FileNotFoundError: a link leads to no file.
    """
    for folder in (PAGES, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    of_docs = (path.relative_to(REPOSITORY) for path in (REPOSITORY / DOCS).rglob("*") if path.is_file())
    waiting = ["README.md", "CHANGELOG.md", *(str(path) for path in of_docs if "_site" not in path.parts)]
    gathered = set()
    while waiting:
        path = waiting.pop()
        if path in gathered:
            continue
        gathered.add(path)
        copy = PAGES / place(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            folder = posixpath.dirname(path)
            text = (REPOSITORY / path).read_text(encoding="utf-8")
            waiting += [posixpath.normpath(posixpath.join(folder, link)) for link in LINK.findall(text)]
            copy.write_text(LINK.sub(lambda link, path=path: on_site(link[1], path), text), encoding="utf-8")
        else:
            shutil.copyfile(REPOSITORY / path, copy)


def place(path: str) -> str:
    """The place of a file of the repository on the site."""
    return "index.md" if path == "README.md" else path.removeprefix(DOCS)


def on_site(link: str, page: str) -> str:
    """A page's link, as the copy of the page has it."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    return posixpath.relpath(place(target), posixpath.dirname(place(page)) or ".")


if __name__ == "__main__":
    gather()
    command, *options = sys.argv[1:] or ["build", "--strict"]
    cli([command, *options, "--config-file", str(REPOSITORY / "zensical.toml")])
