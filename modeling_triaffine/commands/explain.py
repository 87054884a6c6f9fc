"""Explains the scores of a span by the model's attention: which words and candidates contribute to them, by label.

    triaffine-ner explain --model outputs/demo/model --text "The mayor of Port Velmar resigned." --span "Port Velmar"

Prints tables whose columns add up: the contributions of the inside words and the label's bias to the logit before the
cross-span stage, those of the candidates and the bias to the logit after it (in a model with `cross_span_residual`,
together with the logit before it). Each contribution has its attention weight. `triaffine-ner page` shows them, too.
"""

from typing import Annotated

import typer

from .options import Device, Model, open_model


def command(
    text: Annotated[str, typer.Option(help="The text, with the sentences around the span as its context.")],
    span: Annotated[str | None, typer.Option(help="The span as written, which must occur once in the text.")] = None,
    offsets: Annotated[
        tuple[int, int] | None,
        typer.Option(help="Instead of --span: its character offsets, end exclusive.", metavar="START END"),
    ] = None,
    model: Model = None,
    device: Device = None,
) -> None:
    if span is not None and offsets is None:
        if text.count(span) != 1:
            raise ValueError(f"--span {span!r} occurs {text.count(span)} times in the text. Copy it or use --offsets.")
        offsets = text.index(span), text.index(span) + len(span)
    elif span is not None or offsets is None:
        raise ValueError("Give the span either as --span, as it is written, or as --offsets START END.")
    from ..explanation import explain, format_explanation

    print(format_explanation(explain(open_model(model, device), text, offsets)))
