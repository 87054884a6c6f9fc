"""Adapts an encoder to the texts of a corpus by masked-language training, before it is trained to find entities.

    python examples/adapt_encoder.py sentence-transformers/all-MiniLM-L6-v2 my_corpus/ outputs/encoder
    triaffine-ner train --recipe genia-minilm --model_name_or_path outputs/encoder --train_file my_corpus/ …

Only the words of the training sentences are read, not their entities, or a text file (.txt) with one text per line. See
Gururangan et al., "Don't Stop Pretraining", ACL 2020.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
    get_linear_schedule_with_warmup,
)

from modeling_triaffine import load_nested_ner


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_arguments(arguments)
    torch.manual_seed(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(options.encoder)
    model = AutoModelForMaskedLM.from_pretrained(options.encoder)

    def tokenize(rows: dict[str, list[str]]) -> Any:
        pieces = tokenizer(
            rows["text"], truncation=True, max_length=options.max_subwords, return_overflowing_tokens=True
        )
        return {name: pieces[name] for name in tokenizer.model_input_names}

    texts = Dataset.from_dict({"text": read_texts(options.corpus)}).map(tokenize, batched=True, remove_columns="text")
    training = TrainingArguments(
        str(options.output_dir),
        num_train_epochs=options.num_train_epochs,
        per_device_train_batch_size=options.batch_size,
        train_sampling_strategy="group_by_length",
        bf16=options.bf16,
        use_cpu=not torch.accelerator.is_available(),
        save_strategy="no",
        logging_steps=50,
        report_to="none",
        seed=options.seed,
    )
    steps = -(-len(texts) // (training.train_batch_size * training.world_size)) * options.num_train_epochs
    optimizer = torch.optim.AdamW(parameter_groups(model, options), weight_decay=0.01)
    trainer = Trainer(
        model,
        training,
        data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=options.masked),
        train_dataset=texts,
        optimizers=(optimizer, get_linear_schedule_with_warmup(optimizer, steps // 20, steps)),
    )
    trainer.train()
    if trainer.is_world_process_zero():
        model.base_model.save_pretrained(options.output_dir)
        tokenizer.save_pretrained(options.output_dir)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", help="Name on the Hub or folder of a masked-language encoder (BERT, RoBERTa, …).")
    parser.add_argument("corpus", type=Path, help="Corpus in any format of the package, or a .txt file of lines.")
    parser.add_argument("output_dir", type=Path, help="Where the adapted encoder is saved.")
    parser.add_argument("--num_train_epochs", type=int, default=8)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--encoder_learning_rate", type=float, default=2e-4)
    parser.add_argument("--learning_rate", type=float, default=1e-3, help="Of the masked-language head.")
    parser.add_argument("--masked", type=float, default=0.2, help="Share of the sub-words to predict.")
    parser.add_argument("--max_subwords", type=int, default=256)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args(arguments)


def read_texts(corpus: Path) -> list[str]:
    if corpus.suffix == ".txt":
        lines = (line.strip() for line in corpus.read_text(encoding="utf-8").splitlines())
        return [line for line in lines if line]
    splits = load_nested_ner(corpus)
    if "train" not in splits:
        raise SystemExit(f"{corpus} has no split train, only {', '.join(splits)}: give one of its files instead.")
    return [" ".join(tokens) for tokens in splits["train"]["tokens"]]


def parameter_groups(model: torch.nn.Module, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The encoder's parameters, and those of the head that are its own: the output embeddings are the encoder's."""
    encoder = list(model.base_model.parameters())
    known = {id(parameter) for parameter in encoder}
    head = [parameter for parameter in model.parameters() if id(parameter) not in known]
    return [
        {"params": encoder, "lr": options.encoder_learning_rate},
        {"params": head, "lr": options.learning_rate},
    ]


if __name__ == "__main__":
    main()
