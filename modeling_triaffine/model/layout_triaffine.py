"""Sub-words of a sentence → the row or windows that the encoder reads (section 2). Pure functions of arrays."""

import numpy as np

from .batches_triaffine import Feature


def lay_out(
    subwords: np.ndarray,
    index: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    width: int,
    start_id: int,
    separator_id: int,
) -> Feature:
    """[CLS] left [SEP] sentence [SEP] right [SEP], or windows when the sentence alone is too long (section 2).

    Args:
        subwords, index [S]: sub-word ids of the sentence and the word of each, rising.
        left, right: sub-word ids of the context before and after it.
        width: sub-words that the encoder reads at once, special tokens included.
        start_id, separator_id: of [CLS] and [SEP].
    """
    room = width - len(subwords) - 2
    if room < 0:
        return _windows(subwords, index, width - 2, start_id, separator_id)
    from_left, from_right = _share_context(room, len(left), len(right))
    first = 1 + from_left + (from_left > 0)
    last = first + len(subwords)
    # Positions that are not overwritten are separators.
    input_ids = np.full(last + 1 + from_right + (from_right > 0), separator_id, dtype=np.int64)
    input_ids[0] = start_id
    input_ids[1 : 1 + from_left] = left[len(left) - from_left :]
    input_ids[first:last] = subwords
    input_ids[last + 1 : last + 1 + from_right] = right[:from_right]
    word_index = np.full_like(input_ids, -1)
    word_index[first:last] = index
    segments = np.ones_like(input_ids)
    segments[first - 1 if from_left else 0 : last + 1] = 0
    return _feature(input_ids, word_index, segments)


def _windows(subwords: np.ndarray, index: np.ndarray, size: int, start_id: int, separator_id: int) -> Feature:
    """A long sentence as windows of `size` sub-words and two specials, one after the other, that overlap by half."""
    starts = np.append(np.arange(0, len(subwords) - size, size // 2), len(subwords) - size)
    chosen = _central_window(index, starts, size)
    rows, row_index = [], []
    for window, start in enumerate(starts):
        part = slice(start, start + size)
        rows.append(np.concatenate([[start_id], subwords[part], [separator_id]]))
        row_index.append(np.concatenate([[-1], np.where(chosen[part] == window, index[part], -1), [-1]]))
    input_ids = np.concatenate(rows)
    return _feature(input_ids, np.concatenate(row_index), np.zeros_like(input_ids))


def _share_context(room: int, left: int, right: int) -> tuple[int, int]:
    """How many of `left` and `right` context sub-words fit, shared evenly, with a [SEP] on each side."""
    wants_left, wants_right = (side + 1 if side else 0 for side in (left, right))
    takes_left = min(wants_left, max(room // 2, room - wants_right))
    takes_right = min(wants_right, room - takes_left)
    return max(0, takes_left - 1), max(0, takes_right - 1)


def _central_window(index: np.ndarray, starts: np.ndarray, size: int) -> np.ndarray:
    """For each sub-word the window from which its word is read: the one with the nearest centre.

    A word longer than any window is read from several, each sub-word from its own nearest.
    """
    first = np.searchsorted(index, index, side="left")
    last = np.searchsorted(index, index, side="right") - 1
    centres = starts + (size - 1) / 2
    by_word = _nearest(centres, (first + last) / 2)
    by_subword = _nearest(centres, np.arange(len(index)).astype(float))
    holds = (starts[by_word] <= first) & (last < starts[by_word] + size)
    return np.where(holds, by_word, by_subword)


def _nearest(centres: np.ndarray, positions: np.ndarray) -> np.ndarray:
    right = np.searchsorted(centres, positions).clip(1, len(centres) - 1)
    return np.where(positions - centres[right - 1] <= centres[right] - positions, right - 1, right)


def _feature(input_ids: np.ndarray, word_index: np.ndarray, segments: np.ndarray) -> Feature:
    return {
        "input_ids": input_ids,
        "attention_mask": np.ones_like(input_ids),
        "token_type_ids": segments,
        "word_index": word_index,
    }
