"""Which files are part of a repository, by their names; all others stay behind."""

import re
from collections.abc import Iterable

from ..model.repository_triaffine import HANDLER_FILE, REMOTE_CODE_FILES, REQUIREMENTS_FILE
from ..model.vocabularies_triaffine import VOCABULARIES_FILE
from .model_card import CARD_NAME
from .run_summary import SUMMARY_FILE

CONFIG_FILE, PROCESSOR_FILE = "config.json", "processor_config.json"
CALIBRATION_DIAGRAM = "calibration.svg"
# Written by publishing unless somebody has edited them: the card, and the files for an endpoint.
EDITABLE = (CARD_NAME, HANDLER_FILE, REQUIREMENTS_FILE)
WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5}\.safetensors|\.safetensors(\.index\.json)?)")
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    # Of other versions of transformers, and superseded by tokenizer.json.
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "spm.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
OF_PROCESSOR = {*TOKENIZER_FILES, PROCESSOR_FILE, VOCABULARIES_FILE}
MADE = {*REMOTE_CODE_FILES, *EDITABLE, *OF_PROCESSOR, CONFIG_FILE, SUMMARY_FILE, CALIBRATION_DIAGRAM}
# Written by people, so never removed.
LEGAL_FILE = re.compile(r"(LICEN[CS]E|COPYING|NOTICE)([._-][\w.-]+)?|CITATION\.cff", re.IGNORECASE)


def is_made(name: str) -> bool:
    """Whether publishing writes, and may remove, a file of this name."""
    return name in MADE or WEIGHTS.fullmatch(name) is not None


def is_legal(name: str) -> bool:
    """Whether a file of this name is a license, a notice or a citation, which is published with the model."""
    return LEGAL_FILE.fullmatch(name) is not None


def is_part(name: str) -> bool:
    """Whether a file of this name may be part of a repository."""
    return is_made(name) or is_legal(name)


def has_code_only(names: Iterable[str]) -> bool:
    """Whether files are those of a repository of shared code, without model and processor."""
    names = set(names)
    return not names.isdisjoint(REMOTE_CODE_FILES) and names.isdisjoint({CONFIG_FILE, PROCESSOR_FILE})
