"""What the site shows of the repository beside `docs/`: MkDocs reads this one folder only.

README is the first page of the site. Pages link to files of the repository by relative paths, which work wherever the
repository is shown; the files that are linked, and the changelog, become part of the site under their own paths.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

REPOSITORY = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")
DOCS = "docs/"
START = "README.md"
ALSO = ("CHANGELOG.md",)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds README, and whatever README and the pages link to outside of `docs/`.

    Raises:
        FileNotFoundError: a link leads to no file.
    """
    texts = {DOCS + page.src_uri: page.content_string for page in files.documentation_pages()}
    texts[START] = (REPOSITORY / START).read_text(encoding="utf-8")
    linked = {target(source, link) for source, text in texts.items() for link in LINK.findall(text)}
    for path in sorted({START, *ALSO, *linked}):
        if path.startswith(DOCS):
            continue
        if not (REPOSITORY / path).is_file():
            raise FileNotFoundError(f"A page links to {path}, which is no file of the repository.")
        files.append(File(path, str(REPOSITORY), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Any, config: MkDocsConfig, files: Files) -> str:
    """Links of the repository as links of the site, where what is in `docs/` is at the top."""
    uri = page.file.src_uri
    source = uri if page.file.src_dir == str(REPOSITORY) else DOCS + uri
    folder = posixpath.dirname(uri) or "."
    return LINK.sub(lambda link: posixpath.relpath(target(source, link[1]).removeprefix(DOCS), folder), markdown)


def target(source: str, link: str) -> str:
    """The path in the repository that a link on the page `source` leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
