"""Publishing a model: the summary of its run, its card, and its repository on the Hub."""

from .model_card import build_model_card
from .run_summary import SUMMARY_FILE, RunSummary
from .upload import assemble_repository, publish_folder, push_model

__all__ = ["SUMMARY_FILE", "RunSummary", "assemble_repository", "build_model_card", "publish_folder", "push_model"]
