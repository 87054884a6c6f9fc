"""What another package adds as entry points: formats of corpora (`data/formats`) and policies for overlaps."""

from importlib.metadata import EntryPoint


def owner_of(point: EntryPoint) -> str:
    """Whose it is, to be said in errors."""
    return f"of the package {point.dist.name} {point.dist.version}" if point.dist else f"of {point.value}"
