"""What a model needs to be shown to others: its card."""

from .model_card import build_model_card, save_model_card

__all__ = ["build_model_card", "save_model_card"]
