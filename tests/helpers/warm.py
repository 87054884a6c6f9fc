"""Imported by servers of forks: loads the libraries, and fills the caches that saving a first model fills."""

import tempfile

import torch

import modeling_triaffine.training.run  # noqa: F401
from modeling_triaffine import TriaffineConfig, TriaffineForNestedNER
from tests.helpers.micro_training import MICRO_CONFIG, MICRO_ENCODER

torch.set_num_threads(1)  # threads would not live on in forks
with tempfile.TemporaryDirectory() as folder:  # transformers makes hundreds of regular expressions to rename weights
    encoder = {**MICRO_ENCODER, "vocab_size": 8}
    TriaffineForNestedNER(TriaffineConfig(encoder_config=encoder, **MICRO_CONFIG)).save_pretrained(folder)
