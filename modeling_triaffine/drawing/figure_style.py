"""What all figures share: style, colours, and how they are saved. Needs matplotlib, but only when used."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import importing_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 160
MOST_LABELS = 24  # in a figure
# Okabe and Ito's colours: distinguishable with colour vision deficiencies and in grey.
BLACK, ORANGE, SKY_BLUE, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#999999"
QUIET = "#5B6875"  # of notes and lines that guide the eye
# Fonts of common systems with the scripts that matplotlib's own font lacks: those installed are used where it does.
FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans SC",
    "WenQuanYi Micro Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "SimHei",
    "Malgun Gothic",
    "Noto Sans Devanagari",
    "Nirmala UI",
    "Arial Unicode MS",
)


@contextlib.contextmanager
def figure_style(name: str, options: dict[str, Any]) -> Iterator[None]:
    """Draws and saves figures in this style; the same figure under the same name gives the same file.

    Raises:
        ImportError: matplotlib is not installed.
    """
    with importing_extra("plot", "Figures need matplotlib"):
        from matplotlib import font_manager, style
    installed = set(font_manager.get_font_names())
    shared = {
        "font.family": ["DejaVu Sans", *(font for font in FONTS if font in installed)],
        "text.parse_math": False,  # $ in a text is literal
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "svg.fonttype": "none",  # text stays text: searchable, in any script the viewer has a font for
        "svg.hashsalt": name,
    }
    with style.context(["default", shared | options]):
        yield


def save(figure: "Figure", file: Path | IO[bytes], form: str, **metadata: str) -> None:
    """Saves a figure as `form`: svg, without the date that matplotlib adds, png or pdf."""
    undated = {"Date": None} if form == "svg" else {}
    figure.savefig(file, format=form, dpi=DOTS_PER_INCH, metadata={**metadata, **undated})
