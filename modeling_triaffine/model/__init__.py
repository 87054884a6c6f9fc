"""The model and what runs it: configuration, processor, modules, decoding, pipeline.

These files, listed in `repository_triaffine.py`, travel with a checkpoint as one flat folder. They import each other,
torch, transformers and what transformers itself installs, but nothing from the rest of the package.
"""
