"""The documentation builds as a site without a warning: every link, anchor and name of the reference exists."""

import re
import runpy
import sys
from pathlib import Path

import pytest

import modeling_triaffine
from modeling_triaffine.commands import build_application
from modeling_triaffine.model.options_triaffine import MODEL_OPTIONS
from modeling_triaffine.training.plan import training_options
from tests.helpers.processes import run_program

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site() -> Path:
    run_program(sys.executable, "docs/_site/build.py", cwd=REPOSITORY)
    return REPOSITORY / "build" / "site"


def test_links_of_readme_lead_into_the_site(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="results.html#beside-other-libraries-by-f1"' in page
    assert not re.search(r'(?:href|src)="(?:\.\./)*docs/', page)
    assert (site / "benchmarks" / "results" / "accuracy.svg").is_file()


def test_marks_of_markdown_are_not_shown(site):
    for page in site.rglob("*.html"):
        outside_of_code = re.sub(r"<pre\b.*?</pre>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"```|\$\$|\\\|", outside_of_code), page.name


def test_sections_that_messages_of_the_package_name_exist(site):
    texts = "".join(path.read_text(encoding="utf-8") for path in Path(modeling_triaffine.__file__).parent.rglob("*.py"))
    named = set(re.findall(r"docs/(\w+)\.md#([\w-]+)", texts))
    assert ("corpora", "dev-sets") in named
    for page, section in named:
        assert f'id="{section}"' in (site / f"{page}.html").read_text(encoding="utf-8")


SCRIPTS = REPOSITORY / "docs" / "_site"
PAGES = runpy.run_path(str(SCRIPTS / "write_pages.py"))["PAGES"]


@pytest.mark.contract
@pytest.mark.parametrize("name", PAGES)
def test_written_pages_are_up_to_date(name):
    written = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run: python docs/_site/write_pages.py"


RECIPES = sorted(path.parent for path in (REPOSITORY / "hub_configs").glob("*/training.yaml"))


@pytest.mark.contract
@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_the_cards_of_the_recipes_are_up_to_date(folder):
    written = (folder / "README.md").read_text(encoding="utf-8")
    recipe_card = runpy.run_path(str(SCRIPTS / "write_recipe_cards.py"))["recipe_card"]
    assert written == recipe_card(folder), "run: python docs/_site/write_recipe_cards.py"


def test_every_option_can_be_found_by_its_name(site):
    names = ("commands", "configuration", "options")
    pages = {name: (site / "reference" / f"{name}.html").read_text(encoding="utf-8") for name in names}
    assert [name for name in build_application().commands if f'<h2 id="{name}">' not in pages["commands"]] == []
    for name in training_options():
        page, place = (pages["configuration"], "h3") if name in MODEL_OPTIONS else (pages["options"], "h3|code")
        assert re.search(rf'<(?:{place})(?: id="|>--){name}\b', page), name
