"""The style that all figures share. Needs matplotlib, but only when used."""

import contextlib
from collections.abc import Iterator
from typing import Any

from ..errors import importing_extra

DOTS_PER_INCH = 160
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
        "svg.fonttype": "none",  # text stays text: searchable, in any script the viewer has a font for
        "svg.hashsalt": name,
    }
    with style.context(["default", shared | options]):
        yield
