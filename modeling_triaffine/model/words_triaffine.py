"""From sub-word states to word representations h_1 … h_N: pooling, optional word parts, BiLSTM."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import initialization as init

from .configuration_triaffine import TriaffineConfig
from .triaffine_blocks import ACCELERATION
from .triaffine_ops import flat_index, gather_words

# Words whose characters are read with padding on the CPU, in a few sizes: oneDNN must prepare itself for each.
FEW_WORDS = 64


class BiLSTM(nn.Module):
    """Bidirectional LSTM over padded rows; `size` is per direction, dropout is between layers.

    The backward direction reads each row reversed within its length, so that padding changes nothing. Unlike packed
    rows this needs no host synchronization and no graph break.
    """

    def __init__(self, input_size: int, size: int, layers: int, dropout: float):
        super().__init__()
        inputs = [input_size] + [2 * size] * (layers - 1)
        self.forward_layers = nn.ModuleList(nn.LSTM(width, size, batch_first=True) for width in inputs)
        self.backward_layers = nn.ModuleList(nn.LSTM(width, size, batch_first=True) for width in inputs)
        self.dropout = nn.Dropout(dropout)

    def forward(self, values: Tensor, lengths: Tensor, packed: bool = False) -> Tensor:
        """values [B, N, D], lengths [B] → [B, N, 2·size].

        packed: compute without padding, by lengths on the host. It is for many short rows on the CPU, where oneDNN
        computes padded rows.
        """
        if values.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            # torch's LSTM raises under autocast on processors without bfloat16 instructions.
            with torch.autocast("cpu", enabled=False):
                return self(values.to(next(self.parameters()).dtype), lengths, packed)
        positions = torch.arange(values.shape[1], device=values.device)
        reverse = torch.where(positions < lengths[:, None], lengths[:, None] - 1 - positions, positions)
        rows = flat_index(reverse, values.shape[1]).flatten()

        def turned(states: Tensor) -> Tensor:
            return states.flatten(0, 1).index_select(0, rows).unflatten(0, reverse.shape)

        for layer, (ahead, back) in enumerate(zip(self.forward_layers, self.backward_layers, strict=True)):
            values = self.dropout(values) if layer else values
            backward = turned(_run(back, turned(values), lengths, packed))
            values = torch.cat([_run(ahead, values, lengths, packed), backward], dim=-1)
        return values


def _run(lstm: nn.Module, values: Tensor, lengths: Tensor, packed: bool) -> Tensor:
    """States [B, N, size] of one layer and direction."""
    if not packed:
        return ACCELERATION.run_lstm(lstm, values)
    rows = pack_padded_sequence(values, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(lstm(rows)[0], batch_first=True, total_length=values.shape[1])[0]


class LayerMix(nn.Module):
    """A learned average of the encoder's layers, initially their mean (Peters et al., 2018, without their scale)."""

    def __init__(self, layers: int):
        super().__init__()
        self.layer_scores = nn.Parameter(torch.empty(layers))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        init.zeros_(self.layer_scores)

    def forward(self, hidden_states: Sequence[Tensor]) -> Tensor:
        """Output of each layer [B, S, H] → [B, S, H]."""
        weights = self.layer_scores.softmax(0).to(hidden_states[0].dtype)
        return torch.einsum("l,lbsh->bsh", weights, torch.stack(tuple(hidden_states)))


class WordRepresentation(nn.Module):
    """Encoder vectors, static word vectors, parts of speech and characters of the words → h_1 … h_N."""

    def __init__(self, config: TriaffineConfig):
        super().__init__()
        self.config = config
        if config.mix_layers:
            assert config.encoder_config is not None
            self.layer_mix = LayerMix(config.encoder_config.num_hidden_layers)
        self.encoder_dropout = nn.Dropout(config.encoder_dropout)
        width = config.hidden_size
        if config.word_embedding_size:
            self.word_embedding = nn.Embedding(config.word_vocab_size, config.word_embedding_size)
            self.word_dropout = nn.Dropout(config.word_dropout)
            width += config.word_embedding_size
        if config.pos_embedding_size:
            self.pos_embedding = nn.Embedding(config.pos_vocab_size, config.pos_embedding_size)
            self.pos_dropout = nn.Dropout(config.pos_dropout)
            width += config.pos_embedding_size
        if config.char_lstm_hidden_size:
            self.char_embedding = nn.Embedding(config.char_vocab_size, config.char_embedding_size)
            self.char_dropout = nn.Dropout(config.char_dropout)
            self.char_lstm = BiLSTM(config.char_embedding_size, config.char_lstm_hidden_size, 1, 0.0)
            width += 2 * config.char_lstm_hidden_size
        if config.lstm_hidden_size:
            self.lstm = BiLSTM(width, config.lstm_hidden_size, config.lstm_layers, config.lstm_dropout)
            width = 2 * config.lstm_hidden_size
        if config.lstm_hidden_size or width != config.hidden_size:
            self.projection = nn.Linear(width, config.hidden_size)

    def forward(
        self, words: Tensor, lengths: Tensor, word_ids: Tensor | None, pos_ids: Tensor | None, char_ids: Tensor | None
    ) -> Tensor:
        """words [B, N, H], lengths [B], word_ids and pos_ids [B, N], char_ids [B, N, C] (0 = padding) → [B, N, H]."""
        config = self.config
        given = {"word": word_ids, "pos": pos_ids, "char": char_ids}
        if missing := [name for name in given if getattr(config, f"{name}_embedding_size") and given[name] is None]:
            raise ValueError(f"The model reads `{missing[0]}_ids`: make its inputs with its TriaffineProcessor.")
        parts = [self.encoder_dropout(words)]
        if config.word_embedding_size:
            parts.append(self.word_dropout(self.word_embedding(word_ids)))
        if config.pos_embedding_size:
            parts.append(self.pos_dropout(self.pos_embedding(pos_ids)))
        if config.char_lstm_hidden_size:
            assert char_ids is not None  # for mypy
            parts.append(self._character_states(char_ids))
        values = torch.cat(parts, dim=-1)
        if config.lstm_hidden_size:
            values = self.lstm(values, lengths)
        if hasattr(self, "projection"):
            values = self.projection(values)
        return values

    def _character_states(self, char_ids: Tensor) -> Tensor:
        """Character ids of each word → its states: [B, N, C] → [B, N, 2·size]."""
        words = char_ids.flatten(0, 1)
        if self.training or words.device.type != "cpu" or torch.compiler.is_compiling():
            states = self._read_characters(words, packed=False)
        else:
            # Each distinct word once. On a GPU, this would wait for the device.
            words, occurrences = words.unique(dim=0, return_inverse=True)
            # In bfloat16, packed rows take three times as long.
            is_packed = len(words) > FEW_WORDS and self.char_embedding.weight.dtype != torch.bfloat16
            if not is_packed:
                words = functional.pad(words, (0, -words.shape[1] % 4, 0, -len(words) % 8))
            states = self._read_characters(words, is_packed)[occurrences]
        return states.unflatten(0, char_ids.shape[:2])

    def _read_characters(self, words: Tensor, packed: bool) -> Tensor:
        """Last state of each direction over each word's characters, or both at the last: [n, C] → [n, 2·size]."""
        characters = self.char_dropout(self.char_embedding(words))
        lengths = (words > 0).sum(-1).clamp(min=1)
        states = self.char_lstm(characters, lengths, packed)
        read = gather_words(states, lengths[:, None] - 1).squeeze(1)
        if self.config.char_readout == "both_ends":
            size = self.config.char_lstm_hidden_size
            read = torch.cat([read[:, :size], states[:, 0, size:]], dim=-1)
        return read


def pool_subwords(states: Tensor, word_index: Tensor, size: tuple[int, int], pooling: str) -> Tensor:
    """Sub-word states [B, S, H] and the word of each [B, S] (-1: none) → words [B, N, H] of this size (B, N).

    Or from all sub-words in one row, [1, S, H], with word n of sentence b as b·N + n. `pooling` is "max" (elementwise),
    "first" or "mean". A word without sub-words is 0.
    """
    if pooling == "first":
        # Word numbers rise along a row, also over windows that share a long word.
        before = functional.pad(word_index.cummax(dim=1).values, (1, 0), value=-1)[:, :-1]
        word_index = word_index.masked_fill(word_index <= before, -1)
    (batch, num_words), width = size, states.shape[-1]
    # All words of the batch as rows of one matrix, which is fastest, and a last row for sub-words without a word.
    rows = flat_index(word_index, num_words).masked_fill(word_index < 0, batch * num_words).flatten()
    words = states.new_zeros(batch * num_words + 1, width)
    reduction = {"max": "amax", "first": "sum", "mean": "mean"}[pooling]
    index = rows.unsqueeze(-1).expand(-1, width)
    words = words.scatter_reduce(0, index, states.flatten(0, 1), reduction, include_self=False)
    return words[:-1].unflatten(0, (batch, num_words))
