r"""Trains a model on a corpus, scores it, and saves it with its card.

    triaffine-ner train --recipe genia-minilm --train_file my_corpus/ --output_dir outputs/mine
    triaffine-ner train --recipe demo --train_file my_corpus/ --output_dir outputs/full --triaffine_rank none \
        --max_candidates 40
    accelerate launch --num_processes 2 -m modeling_triaffine.commands.train --recipe …  (several GPUs)

The command line overrides the recipe, and the recipe the defaults below. An empty value (--word_vectors=) restores the
default. Options may be written with underscores or dashes. To resume an interrupted training, repeat the command with
--resume_from_checkpoint.

Start
  --recipe NAME                    Recipe of the package (demo, genia-minilm, …), or a recipe's folder.
  --output_dir FOLDER              Folder for checkpoints and the final model. Required.
  --model_name_or_path MODEL       Pretrained encoder, or a trained model to train further (new labels are added): a
                                   folder or a name on the Hub. Default: the recipe's encoder, which demo trains
                                   from scratch.
  --keep_labels                    Keep the labels of a trained model that the training data does not annotate.
  --resume_from_checkpoint [PATH]  Resume from this checkpoint; without PATH, from the latest in --output_dir.

Data
  --train_file PATH                Corpus: a file, or a folder with train, dev and test.
  --validation_file PATH           Validation data (default: that in --train_file).
  --test_file PATH                 Test data (default: that in --train_file).
  --data_format FORMAT             Format of the corpus (default: recognized by name and content).
  --words WHICH                    Words to train on: those of the corpus (corpus), of raw text (text), or both
                                   (default: auto, text if the corpus has its text, else both).
  --word_splitter HOW              Words of texts end at white space, punctuation and symbols (punctuation), in Korean
                                   also at every syllable (syllables), or at white space alone (whitespace)
                                   (default: punctuation, or as in the trained model).
  --sentence_splitter HOW          Sentences end at punctuation (punctuation), at each line (lines) or at the end of the
                                   text (none), at the latest after 256 words, in the corpus, unless it marks
                                   sentences, and in the texts that the model reads (default: punctuation, or as in
                                   the trained model).
  --flat_annotation WHICH          The training data annotates the outermost or innermost entities only, or any: leave
                                   the spans it does not annotate out of the loss (outermost, innermost, any).
  --max_train_samples N            Train on the first N sentences only.
  --do_predict                     Also score the test data, and save the predictions.

Training
  --num_train_epochs N             Passes over the training data (default: 15).
  --min_steps N                    Least number of updates: small training data gets more epochs, unless
                                   --num_train_epochs is given (default: 0).
  --per_device_train_batch_size N  Sentences in a batch of each process (default: 8).
  --gradient_accumulation_steps N  Batches in one update of the weights (default: 1).
  --max_subwords_per_batch N       Maximum sub-words in a batch, instead of a number of sentences.
  --encoder_learning_rate RATE     Learning rate of the encoder (default: 3e-5).
  --embeddings_learning_rate RATE  Learning rate of word, part-of-speech and character embeddings and of the BiLSTM
                                   (default: 5e-4).
  --learning_rate RATE             Learning rate of everything else, the triaffine head (default: 3e-5).
  --warmup_steps N                 Updates of linear warm-up, or below 1 their fraction of all (default: 0).
  --weight_decay RATE              Decoupled weight decay (default: 0.01).
  --ema_decay DECAY                Score and save a moving average of the weights with this decay, such as 0.99.
  --max_grad_norm NORM             Clip gradients to this norm; 0: never (default: 0.1).
  --seed N                         Seed of all random numbers (default: 42).
  --bf16                           Mixed precision on a GPU, or a CPU with instructions for bfloat16.
  --fp16                           Mixed precision on a GPU.
  --save_memory                    Reduce the memory of full triaffine tensors; slower.
  --use_cpu                        Train without a GPU.

Scores and card
  --eval_strategy WHEN             Score the validation data: epoch, steps, or no (default: epoch).
  --save_strategy WHEN             Save a checkpoint: no, steps, epoch or best (default: as --eval_strategy,
                                   or each epoch without evaluation).
  --load_best_model_at_end BOOL    End with the checkpoint of the best validation F1 (default: true).
  --dataset_name NAME              Name of the data in the model card.
  --language LANGUAGE              Language in the model card, such as en.
  --license LICENSE                License in the model card, such as apache-2.0.
  --push_to_hub                    Publish the final model.
  --hub_model_id OWNER/NAME        Repository to publish to.

Model: the fields of TriaffineConfig
  --triaffine_dim N                Width d of the triaffine inputs (default: 256).
  --triaffine_rank N|none          Rank of the triaffine tensors; none: full tensors (default: none).
  --max_candidates N               Candidate spans of a sentence that enter the cross-span stage (default: 30).
  --max_span_width N|none          Widest span that is scored, in words; none: all (default: none).
  --learn_span_width               Set it to the width of the widest entity in the training data.
  --multi_label BOOL               Whether each label of a span has its own probability, so that a span can have several
                                   (default: false).
  --attention FORM                 How the words inside a span are weighed: triaffine, triaffine_no_label, label, linear
                                   or none (default: triaffine).
  --scoring FORM                   How a span is scored: triaffine, linear, linear_boundary, linear_boundary_shared,
                                   biaffine or biaffine_shared (default: triaffine).
  --cross_span BOOL                Whether candidates attend to each other (default: true).
  --cross_span_axis AXIS           Softmax of that attention over the related spans (key, as in the paper) or over the
                                   scored ones (query, as in the published code) (default: key).
  --cross_span_residual BOOL       Whether the final scores add those of the span stage (default: false).
  --share_triaffine BOOL           Whether the cross-span stage re-uses the span stage's tensors (default: true).
  --triaffine_init_std STD         Standard deviation of full tensors at the start (default: 0.01).
  --aux_loss_weight WEIGHT         Weight of the span stage's loss (default: 1.0).
  --loss_reduction WAY             Mean over spans, then sentences (sentence), or over all spans (batch)
                                   (default: sentence).
  --boundary_smoothing EPSILON     Share of an entity's probability that spans with nearby boundaries get in training
                                   (default: 0.0).
  --boundary_smoothing_distance N  How many words, head and tail together, those boundaries may be off (default: 1).
  --context CONTEXT                Neighbouring sentences shown to the encoder: none, previous_sentence or document
                                   (default: none).
  --max_subwords N                 Sub-words the encoder reads at once; longer input is windowed (default: 192).
  --subword_pooling WAY            A word's vector from its sub-words: max, first or mean (default: max).
  --word_vectors FILE              Static word vectors to start with: fastText, word2vec or GloVe.
  --word_embedding_size N          Size of static word vectors; 0: none (default: 0).
  --pos_embedding_size N           Size of part-of-speech embeddings; 0: none (default: 0).
  --pos_tagger PIPELINE            spaCy pipeline to tag sentences without parts of speech.
  --char_embedding_size N          Size of character embeddings; 0: none (default: 0).
  --char_lstm_hidden_size N        Size of the characters' BiLSTM in each direction; 0: none (default: 0).
  --char_readout WAY               Where that BiLSTM is read: both_ends or last_character (default: both_ends).
  --lstm_hidden_size N             Size of the BiLSTM over words in each direction; 0: none (default: 512).
  --lstm_layers N                  Its layers (default: 2).
  --mix_layers BOOL                Whether words are a learned average of all encoder layers (default: false).
  --encoder_dropout P              Dropout of the encoder's output (default: 0.0).
  --word_dropout P                 Dropout of static word vectors (default: 0.2).
  --pos_dropout P                  Dropout of part-of-speech embeddings (default: 0.2).
  --char_dropout P                 Dropout of character embeddings (default: 0.2).
  --lstm_dropout P                 Dropout between layers of the BiLSTM (default: 0.2).
  --mlp_dropout P                  Dropout between layers of MLPs (default: 0.1).
  --word_vocab_size N, --pos_vocab_size N, --char_vocab_size N
                                   Sizes of vocabularies, set by the training data (default: 0).

--help-all lists all options, including those inherited from transformers' TrainingArguments.
"""

import re
import sys
from typing import Any

import typer
from typer.core import TyperCommand

from ..errors import ending_plainly


class Unparsed(TyperCommand):
    """A command that parses its arguments itself, so that its help needs no imports."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = args
        return args

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer.core import CompletionItem  # type: ignore[attr-defined, unused-ignore]

        names = re.findall(r"^  (--\w+)", __doc__ or "", re.MULTILINE)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


SETTINGS = {"cls": Unparsed}


def command(context: typer.Context) -> None:
    if "--help" in context.args:
        print(f"Usage: {context.command_path} [--recipe NAME] --train_file PATH --output_dir FOLDER [OPTIONS]\n")
        print(__doc__)
        return
    from ..publishing.upload import NotPublishedError
    from ..training.faults import TrainingFault
    from ..training.run import prepare_run, start_logging, train_and_save

    start_logging()
    arguments = ["--help" if argument == "--help-all" else argument for argument in context.args]
    with ending_plainly(TrainingFault):
        run = prepare_run(arguments)
        try:
            train_and_save(run)
        except (TrainingFault, NotPublishedError):
            raise
        except (ValueError, OSError) as error:  # a mistake of the user is found before the training
            raise RuntimeError("Training stopped at an error that is none of its options, data or machine.") from error


if __name__ == "__main__":
    from modeling_triaffine.commands import main

    main(["train", *sys.argv[1:]])
