"""Scores a model on corpora with flat names, such as CoNLL-2003, with the types that a corpus annotates.

    python benchmarks/flat_names.py eng.testa,0,-1 en_pud-ud-test.iob2,1,2 [--model names-en]

Each corpus is a column file with IO or IOB2 tags, and the columns of its words and tags. Sentences are written as texts
are, and names are compared by characters. Of nested names, only the outermost count, as such corpora have no others.
"""

import argparse
import json
from pathlib import Path

from keep_outermost import keep_outermost
from names_corpus import read_tags

from modeling_triaffine import NestedNERPipeline
from modeling_triaffine.evaluation import score_entities
from modeling_triaffine.installed_models import find_model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="FILE,WORDS,TAGS")
    parser.add_argument("--model", default="names-en")
    given = parser.parse_args()
    ner = NestedNERPipeline(find_model(given.model))
    for corpus in given.corpora:
        path, words, tags = corpus.rsplit(",", 2)
        records = [sentence.record() for sentence in read_tags(Path(path), int(words), int(tags))]
        annotated = {entity["type"] for record in records for entity in record["entities"]} - {"OTHER"}
        found = ner([record["text"] for record in records])
        named = (
            [{"start": e["start"], "end": e["end"], "type": e["entity_group"]} for e in entities] for entities in found
        )
        predicted, gold = (
            [keep_outermost([entity for entity in entities if entity["type"] in annotated]) for entities in side]
            for side in (named, (record["entities"] for record in records))
        )
        scores = score_entities(predicted, gold)
        by_label = {label: round(100 * figures["f1"], 1) for label, figures in scores["by_label"].items()}
        figures = {name: round(100 * scores[name], 1) for name in ("precision", "recall", "f1")}
        print(json.dumps({"corpus": Path(path).name, "sentences": len(records), **figures, **by_label}), flush=True)


if __name__ == "__main__":
    main()
