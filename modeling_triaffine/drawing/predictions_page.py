"""The former address of `predictions_page`, which scripts from older documents import."""

from .pages import predictions_page as predictions_page
