"""`python -m modeling_triaffine COMMAND …` is `triaffine-ner COMMAND …`, where the latter is not on the path."""

from .commands import main

main()
