"""Theme, CSS (`page.css`) and JavaScript of the page; the drawing includes its own style.

Gradio prefixes each selector of a list with a class, and mistakes commas in `:is()` for separators of such a list. It
drops a shorthand with variables that is followed by a longhand of the same property.
"""

from pathlib import Path

import gradio as gr

FOLDER = Path(__file__).parent

STYLE = (FOLDER / "page.css").read_text(encoding="utf-8")

# Runs once in the elements of the drawing and of the table, which remain when their content changes.
CHOOSE_ENTITY = (FOLDER / "choose_entity.js").read_text(encoding="utf-8")

# Scrolls to an element whose top is out of sight, with some of what is above it.
_SHOW = """
  const top = document.querySelector('%s').getBoundingClientRect().top;
  if (top < 0 || top > innerHeight / 2) scrollBy({top: top - innerHeight / 4, behavior: 'smooth'});
"""
# The area of results knows the text that it is of, and its state: asked, current, or old, for another text.
_COMPARE = """
  const results = document.querySelector('.page-results');
  const compare = () => {
    const text = document.querySelector('#text textarea').value;
    results.dataset.state = text === results.asked ? 'current' : 'old';
  };
"""
SHOW_EXPLANATION = f"() => {{{_SHOW % '#explanation'}}}"
_FORGET = "results.querySelectorAll('[aria-current]').forEach((one) => one.removeAttribute('aria-current'));"
_ASK = "results.asked = text; results.dataset.state = 'asked';"
# To the progress bar; no earlier result is behind it.
HIDE_RESULT = f"(text) => {{{_COMPARE} {_ASK} {_FORGET} {_SHOW % '#drawing'}}}"
# The page may be long enough to scroll only now.
SHOW_RESULT = f"() => {{{_COMPARE} compare(); {_SHOW % '#drawing'}}}"
COMPARE_TEXT = f"() => {{{_COMPARE} if ((results.dataset.state ?? 'asked') !== 'asked') compare(); }}"
# Gradio leaves the list of models open, over what is below it, when the Tab key moves on.
CLOSE_LIST = """() => {
  document.addEventListener('keydown', (event) => {
    if (event.key !== 'Tab' || !event.target.matches('#model input')) return;
    event.target.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}));
  });
}"""


def make_theme() -> gr.themes.Base:
    """Gradio's default theme with system fonts and contrasts of at least 4.5 : 1."""
    theme = gr.themes.Default(
        primary_hue="indigo", neutral_hue="slate", font=("system-ui", "sans-serif"), font_mono=("monospace",)
    )
    return theme.set(
        body_text_color_subdued="*neutral_500",
        input_placeholder_color="*neutral_500",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
    )
