"""Trainings of other libraries and research codes for `peer_accuracy.py`, and the settings that are tried of each.

A setup is Python code, run in a process and an environment of its own. It knows `encoder` (a folder), `train` (records
with `tokens` and `entities`), `labels`, `seed`, `folder` (to write into), `options` (one setting of the grid), `device`
(cpu or cuda) and `code` (the folder of a research code, which is never copied here). It leaves `predict(sentences)`,
which goes from lists of words to lists of (first word, word after the last, type).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any


@dataclass(frozen=True)
class Peer:
    """An opponent: what to install (nothing: this environment), how to train it, and the settings to choose from.

    An environment is shared by all peers of one `library`. `flat`: it cannot have nested entities in its training data,
    and gets the outermost ones. `repository`: the public repository of a research code, without a package.
    `keeps_memory`: glibc keeps what it frees, which is faster, but leaves holes where arrays have many sizes. `on_gpu`:
    the setup uses `device`.
    """

    library: str
    requirements: tuple[str, ...]
    setup: str
    grid: Sequence[dict[str, Any]]
    flat: bool = False
    repository: str | None = None
    keeps_memory: bool = True
    on_gpu: bool = False


def grid(rates: Sequence[dict[str, Any]], **fixed: Any) -> list[dict[str, Any]]:
    """All combinations of rates and of the epochs of `fixed`, a sequence; the rest of `fixed` is in each."""
    epochs = fixed.pop("num_train_epochs")
    return [{**fixed, **chosen, "num_train_epochs": number} for number, chosen in product(epochs, rates)]


SETUP_OF_OURS = """
from modeling_triaffine import TriaffineForNestedNER, TriaffineProcessor
from modeling_triaffine.commands import main
from modeling_triaffine.evaluation.prediction import predict_words
os.makedirs(folder, exist_ok=True)
train_file = folder + "/train.jsonl"
with open(train_file, "w") as file:
    file.writelines(json.dumps(record) + "\\n" for record in train)
options |= {
    "model_name_or_path": encoder, "train_file": train_file, "output_dir": folder, "seed": seed, "do_eval": "false",
    "eval_strategy": "no", "save_strategy": "no", "card_examples": 0, "use_cpu": device == "cpu",
}
main(["train", *(f"--{name}={value}" for name, value in options.items())])
def predict(sentences):
    model = TriaffineForNestedNER.from_pretrained(folder).to(device)
    processor = TriaffineProcessor.from_pretrained(folder)
    records = [{"tokens": words} for words in sentences]
    for entities in predict_words(model, processor, records):
        yield [(entity["start"], entity["end"], entity["type"]) for entity in entities]
"""
# The recipe as it is: nothing is chosen.
OURS = Peer("modeling_triaffine", (), SETUP_OF_OURS, [{"recipe": "genia-minilm", "words": "corpus"}], on_gpu=True)
# Ablation (a) of the paper: the same words and training, spans scored by their two boundaries alone.
BIAFFINE = Peer(
    "modeling_triaffine",
    (),
    SETUP_OF_OURS,
    grid(
        [
            {"encoder_learning_rate": encoder, "learning_rate": head, "embeddings_learning_rate": head}
            for encoder, head in ((5e-5, 5e-4), (1e-4, 1e-3), (2e-4, 2e-3))
        ],
        **{"recipe": "genia-minilm", "words": "corpus", "min_steps": 0},
        **{"attention": "none", "scoring": "biaffine", "cross_span": "false", "cross_span_residual": "false"},
        triaffine_rank="none",
        num_train_epochs=(3, 15),
    ),
    on_gpu=True,
)
# What most people would start with; its tags cannot nest. Words take the tag of their first sub-word.
TOKEN_CLASSIFICATION = Peer(
    "transformers",
    (),
    """
from datasets import Dataset
from transformers import AutoModelForTokenClassification, AutoTokenizer, DataCollatorForTokenClassification
from transformers import Trainer, TrainingArguments, set_seed
set_seed(seed)
tags = ["O", *(border + label for label in labels for border in ("B-", "I-"))]
tokenizer = AutoTokenizer.from_pretrained(encoder)
limits = {"truncation": True, "max_length": 512, "is_split_into_words": True}
def tagged(record):
    found = [0] * len(record["tokens"])
    for entity in record["entities"]:
        inside = tags.index("I-" + entity["type"])
        found[entity["start"] : entity["end"]] = [inside] * (entity["end"] - entity["start"])
        found[entity["start"]] = inside - 1
    example = tokenizer(record["tokens"], **limits)
    words = [None, *example.word_ids()]
    example["labels"] = [
        -100 if word is None or word == before else found[word] for before, word in zip(words, words[1:])
    ]
    return dict(example)
model = AutoModelForTokenClassification.from_pretrained(
    encoder, id2label=dict(enumerate(tags)), label2id={tag: index for index, tag in enumerate(tags)}
)
arguments = TrainingArguments(folder, seed=seed, use_cpu=True, report_to="none", save_strategy="no", **options)
collator = DataCollatorForTokenClassification(tokenizer)
Trainer(
    model, arguments, train_dataset=Dataset.from_list([tagged(record) for record in train]), data_collator=collator
).train()
def predict(sentences):
    model.eval()
    for words in sentences:
        example = tokenizer(words, return_tensors="pt", **limits)
        with torch.no_grad():
            best = model(**example).logits[0].argmax(-1).tolist()
        found, before = ["O"] * len(words), None
        for place, word in enumerate(example.word_ids()):
            if word is not None and word != before:
                found[word] = tags[best[place]]
            before = word
        entities, start = [], None
        for place, tag in enumerate([*found, "O"]):
            if start is not None and tag != "I-" + found[start][2:]:
                entities.append((start, place, found[start][2:]))
                start = None
            if start is None and tag != "O":
                start = place
        yield entities
""",
    grid(
        [{"learning_rate": rate} for rate in (5e-5, 1e-4, 3e-4)],
        **{"per_device_train_batch_size": 8, "weight_decay": 0.01, "warmup_steps": 0.1},
        num_train_epochs=(3, 15),
    ),
    flat=True,
)
# Samples are shorter than in its README (256 tokens, 128 pairs of markers), which only saves padding.
SPAN_MARKER = Peer(
    "span_marker",
    ("torch==2.13.0", "transformers<5", "span-marker==1.8.1"),
    """
from datasets import Dataset
from span_marker import SpanMarkerModel, Trainer
from transformers import TrainingArguments, set_seed
set_seed(seed)
tags = ["O", *(border + label for label in labels for border in ("B-", "I-"))]
def tagged(record):
    found = [0] * len(record["tokens"])
    for entity in record["entities"]:
        inside = tags.index("I-" + entity["type"])
        found[entity["start"] : entity["end"]] = [inside] * (entity["end"] - entity["start"])
        found[entity["start"]] = inside - 1
    return {"tokens": record["tokens"], "ner_tags": found}
limits = {"model_max_length": 128, "marker_max_length": 64, "entity_max_length": 8}
model = SpanMarkerModel.from_pretrained(encoder, labels=tags, **limits)
arguments = TrainingArguments(
    folder, seed=seed, use_cpu=device == "cpu", report_to="none", save_strategy="no", **options,
)
Trainer(model, arguments, Dataset.from_list([tagged(record) for record in train])).train()
def predict(sentences):
    for entities in model.predict(sentences, batch_size=32):
        yield [(entity["word_start_index"], entity["word_end_index"], entity["label"]) for entity in entities]
""",
    grid(
        [{"learning_rate": rate} for rate in (5e-5, 1e-4, 3e-4)],
        **{"per_device_train_batch_size": 32, "weight_decay": 0.01, "warmup_ratio": 0.1},
        num_train_epochs=(3, 15),
    ),
    flat=True,
    on_gpu=True,
)
# The configuration that its training guide starts from. Every sentence is asked for all labels, as the guide advises
# for a fixed set of them.
GLINER = Peer(
    "gliner",
    ("torch==2.13.0", "gliner[training]==0.2.29"),
    """
import re
from gliner import GLiNER
from transformers import set_seed
set_seed(seed)
hidden = json.load(open(encoder + "/config.json"))["hidden_size"]
model = GLiNER.from_config({"model_name": encoder, "hidden_size": hidden, "span_mode": "markerV0", "max_width": 12})
def example(record):
    entities = [[entity["start"], entity["end"] - 1, entity["type"]] for entity in record["entities"]]
    return {"tokenized_text": record["tokens"], "ner": entities, "ner_labels": labels}
model.train_model(
    [example(record) for record in train], None, output_dir=folder, max_steps=-1, seed=seed,
    use_cpu=True, save_strategy="no", dataloader_num_workers=0, lr_scheduler_type="cosine", **options,
)
def split(text):
    return ((match.group(), match.start(), match.end()) for match in re.finditer(r"\\S+", text))
def predict(sentences):
    model.data_processor.words_splitter = split
    texts = [" ".join(words) for words in sentences]
    for text, entities in zip(texts, model.inference(texts, labels, flat_ner=False, batch_size=32)):
        words_before = lambda place: len(text[:place].split())
        yield [(words_before(found["start"]), words_before(found["end"]), found["label"]) for found in entities]
""",
    grid(
        [
            {"learning_rate": encoder, "others_lr": others}
            for encoder, others in ((1e-5, 5e-5), (5e-5, 5e-4), (1e-4, 1e-3))
        ],
        per_device_train_batch_size=8,
        num_train_epochs=(3, 15),
    ),
)
# `spacy init config --lang en --pipeline spancat --gpu`, but for spans of up to 12 words instead of 3. It has one rate
# for encoder and head; its schedule warms up for a tenth of the updates.
SPANCAT = Peer(
    "spancat",
    ("torch==2.13.0", "spacy==3.8.18", "spacy-transformers==1.4.0"),
    """
epochs = options["num_train_epochs"]
from spacy.cli.init_config import init_config
from spacy.tokens import Doc, DocBin, Span
from spacy.training.initialize import init_nlp
from spacy.training.loop import train as train_pipeline
from spacy.util import load_config_from_str
from spacy.vocab import Vocab
def write(path, records):
    docs = DocBin()
    for record in records:
        doc = Doc(Vocab(), words=record["tokens"])
        entities = record["entities"]
        doc.spans["sc"] = [Span(doc, entity["start"], entity["end"], entity["type"]) for entity in entities]
        docs.add(doc)
    docs.to_disk(path)
os.makedirs(folder, exist_ok=True)
write(folder + "/train.spacy", train)
write(folder + "/dev.spacy", train[:1])
config = init_config(lang="en", pipeline=["spancat"], optimize="efficiency", gpu=True)
given = {
    "paths.train": folder + "/train.spacy", "paths.dev": folder + "/dev.spacy", "system.seed": seed,
    "components.transformer.model.name": encoder,
    "components.spancat.suggester": {"@misc": "spacy.ngram_range_suggester.v1", "min_size": 1, "max_size": 12},
    "training.max_epochs": epochs, "training.eval_frequency": 100000, "training.patience": 0,
}
updates = epochs * -(-len(train) // options["batch_size"])
optimizer = "training.optimizer.learn_rate."
given |= {
    "training.accumulate_gradient": 1,
    "training.batcher": {"@batchers": "spacy.batch_by_sequence.v1", "size": options["batch_size"]},
    optimizer + "initial_rate": options["learning_rate"],
    optimizer + "warmup_steps": updates // 10, optimizer + "total_steps": updates,
}
for name, value in given.items():
    *sections, last = name.split(".")
    section = config
    for part in sections:
        section = section[part]
    section[last] = value
nlp = init_nlp(load_config_from_str(config.to_str()))
train_pipeline(nlp)
def predict(sentences):
    for doc in nlp.pipe([Doc(nlp.vocab, words=words) for words in sentences], batch_size=32):
        yield [(span.start, span.end, span.label_) for span in doc.spans["sc"]]
""",
    grid([{"learning_rate": rate} for rate in (5e-5, 1e-4, 3e-4)], batch_size=8, num_train_epochs=(3, 15)),
    keeps_memory=False,  # 18 GB
)
# Li et al., AAAI 2022: its own model, data and decoding, with the optimizer and schedule of its `main.py` (which needs
# a GPU and an old transformers) and the sizes of its `config/genia.json`. Its labels are lower case.
W2NER = Peer(
    "w2ner",
    ("torch==2.13.0", "transformers==5.23.0", "gensim", "prettytable", "requests", "scikit-learn"),
    """
import types
import numpy
numpy.int = int  # as it was before numpy 1.24
sys.path.insert(0, code)
import data_loader, utils
from model import Model
from torch.utils.data import DataLoader
from transformers import AutoTokenizer, get_linear_schedule_with_warmup, set_seed
set_seed(seed)
os.makedirs(folder, exist_ok=True)
os.chdir(folder)
tokenizer, vocabulary = AutoTokenizer.from_pretrained(encoder), data_loader.Vocabulary()
for label in labels:
    vocabulary.add_label(label)
config = types.SimpleNamespace(
    **json.load(open(code + "/config/genia.json")) | options | {
        "bert_name": encoder, "bert_hid_size": json.load(open(encoder + "/config.json"))["hidden_size"],
        "label_num": len(vocabulary.label2id), "vocab": vocabulary,
    }
)
def loader(records, shuffle):
    data = [
        {
            "sentence": record["tokens"],
            "ner": [
                {"index": list(range(entity["start"], entity["end"])), "type": entity["type"]}
                for entity in record["entities"]
            ],
        }
        for record in records
    ]
    examples = data_loader.RelationDataset(*data_loader.process_bert(data, tokenizer, vocabulary))
    return DataLoader(
        examples, config.batch_size, collate_fn=data_loader.collate_fn, shuffle=shuffle, drop_last=shuffle
    )
model = Model(config)
batches = loader(train, shuffle=True)
of_encoder = dict(model.bert.named_parameters())
def undecayed(name):
    return any(part in name for part in ("bias", "LayerNorm.weight"))
def group(parameters, rate, decay):
    return {"params": list(parameters), "lr": rate, "weight_decay": decay}
known = {id(parameter) for parameter in of_encoder.values()}
optimizer = torch.optim.AdamW([
    group((p for n, p in of_encoder.items() if not undecayed(n)), config.bert_learning_rate, config.weight_decay),
    group((p for n, p in of_encoder.items() if undecayed(n)), config.bert_learning_rate, 0.0),
    group((p for p in model.parameters() if id(p) not in known), config.learning_rate, config.weight_decay),
])
updates = len(batches) * config.num_train_epochs
schedule = get_linear_schedule_with_warmup(optimizer, config.warm_factor * updates, updates)
criterion = torch.nn.CrossEntropyLoss()
for epoch in range(config.num_train_epochs):
    print(f"epoch {epoch + 1} of {config.num_train_epochs}", flush=True)
    model.train()
    for pieces, grid_labels, mask, pieces2word, distances, lengths in (batch[:-1] for batch in batches):
        scores = model(pieces, mask, distances, pieces2word, lengths)
        criterion(scores[mask], grid_labels[mask]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_grad_norm)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
def predict(sentences):
    model.eval()
    type_of = {label.lower(): label for label in labels}
    records = [{"tokens": words, "entities": []} for words in sentences]
    for pieces, _, mask, pieces2word, distances, lengths, texts in loader(records, shuffle=False):
        with torch.no_grad():
            best = model(pieces, mask, distances, pieces2word, lengths).argmax(-1)
        _, _, _, decoded = utils.decode(best.numpy(), texts, lengths.numpy())
        for entities in decoded:
            yield [(words[0], words[-1] + 1, type_of[vocabulary.id_to_label(kind)]) for words, kind in entities]
""",
    grid(
        [{"bert_learning_rate": encoder, "learning_rate": 1e-3} for encoder in (5e-6, 5e-5, 1e-4)],
        batch_size=8,
        num_train_epochs=(3, 15),
    ),
    repository="github.com/ljynlp/W2NER",
)
# Yan et al., ACL 2023 (short): its own model and decoding, with the optimizer and schedule of its `train.py` (which
# needs a GPU, fastNLP and torch_scatter; the two functions of these that the model calls are made here) and the sizes
# of its README for GENIA.
CNN_NESTED_NER = Peer(
    "cnn_nested_ner",
    ("torch==2.13.0", "transformers==5.23.0", "numpy"),
    """
import types
from torch.nn.utils.rnn import pad_sequence
def seq_len_to_mask(lengths):
    return torch.arange(int(lengths.max()), device=device) < lengths[:, None]
def scatter_max(values, index, dim):
    places = index.unsqueeze(-1).expand_as(values)
    empty = values.new_zeros(len(values), int(index.max()) + 1, values.size(-1))
    return empty.scatter_reduce(dim, places, values, "amax", include_self=False), None
for name, function in (("fastNLP", seq_len_to_mask), ("torch_scatter", scatter_max)):
    sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[name], function.__name__, function)
sys.path.insert(0, code)
from model.metrics_utils import decode
from model.model import CNNNer
from transformers import AutoTokenizer, get_linear_schedule_with_warmup, set_seed
set_seed(seed)
tokenizer = AutoTokenizer.from_pretrained(encoder)
sizes = {"cnn_dim": 200, "biaffine_size": 400, "n_head": 4, "cnn_depth": 3, "size_embed_dim": 25, "kernel_size": 3}
model = CNNNer(encoder, num_ner_tag=len(labels), logit_drop=0, **sizes)
if getattr(model.pretrain_model, "pooler", None) is not None:
    model.pretrain_model.pooler = None
model.to(device)
def batch_of(records):
    pieces, words, targets = [], [], []
    for record in records:
        parts = [tokenizer.encode(word, add_special_tokens=False) for word in record["tokens"]]
        parts = [part or [tokenizer.unk_token_id] for part in parts]
        pieces.append([tokenizer.cls_token_id, *(part for word in parts for part in word), tokenizer.sep_token_id])
        words.append([0, *(number for number, word in enumerate(parts, 1) for _ in word), 0])
        target = torch.zeros(len(parts), len(parts), len(labels))
        for entity in record["entities"]:
            first, last, kind = entity["start"], entity["end"] - 1, labels.index(entity["type"])
            target[first, last, kind] = target[last, first, kind] = 1
        targets.append(target)
    longest = max(map(len, targets))
    matrix = torch.full((len(targets), longest, longest, len(labels)), -100.0)
    for target, row in zip(targets, matrix):
        row[: len(target), : len(target)] = target
    batch = {
        "input_ids": pad_sequence([torch.tensor(row) for row in pieces], True, tokenizer.pad_token_id),
        "bpe_len": torch.tensor([len(row) for row in pieces]),
        "indexes": pad_sequence([torch.tensor(row) for row in words], True),
        "matrix": matrix,
    }
    return {name: values.to(device) for name, values in batch.items()}
groups = {}
for name, parameter in model.named_parameters():
    of_encoder = "pretrain_model" in name
    decays = not ("norm" in name.lower() or "bias" in name.lower())
    groups.setdefault((of_encoder, decays), []).append(parameter)
optimizer = torch.optim.AdamW([
    {
        "params": parameters, "lr": options["learning_rate" if of_encoder else "others_lr"],
        "weight_decay": 0.01 if decays else 0.0,
    }
    for (of_encoder, decays), parameters in groups.items()
])
size = options["batch_size"]
updates = options["num_train_epochs"] * -(-len(train) // size)
schedule = get_linear_schedule_with_warmup(optimizer, 0.1 * updates, updates)
model.train()
for epoch in range(options["num_train_epochs"]):
    print("epoch", epoch + 1, "of", options["num_train_epochs"], flush=True)
    order = torch.randperm(len(train)).tolist()
    for first in range(0, len(order), size):
        model(**batch_of([train[place] for place in order[first : first + size]]))["loss"].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
def predict(sentences):
    model.eval()
    for first in range(0, len(sentences), 32):
        batch = batch_of([{"tokens": words, "entities": []} for words in sentences[first : first + 32]])
        with torch.no_grad():
            scores = model(**batch)["scores"].sigmoid()
        scores = (scores + scores.transpose(1, 2)) / 2
        lengths = batch["indexes"].amax(-1)
        for row, spans in zip(scores, decode(scores.amax(-1), lengths, allow_nested=True, thres=0.5)):
            yield [(first, last + 1, labels[row[first, last].argmax()]) for first, last, _ in spans]
""",
    grid(
        [
            {"learning_rate": encoder, "others_lr": others}
            for encoder, others in ((7e-6, 7e-4), (2e-5, 2e-3), (1e-4, 1e-3))
        ],
        batch_size=8,
        num_train_epochs=(3, 15),
    ),
    repository="github.com/yhcc/CNN_Nested_NER",
    on_gpu=True,
)
PEERS = {
    "modeling_triaffine": OURS,
    "transformers": TOKEN_CLASSIFICATION,
    "biaffine": BIAFFINE,
    "cnn_nested_ner": CNN_NESTED_NER,
    "w2ner": W2NER,
    "spancat": SPANCAT,
    "gliner": GLINER,
    "span_marker": SPAN_MARKER,
}
