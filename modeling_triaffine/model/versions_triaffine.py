"""The lowest versions of torch and transformers, checked before anything that needs them is imported."""

from importlib.metadata import PackageNotFoundError, version

from packaging.version import Version

LOWEST_VERSIONS = {"torch": "2.6.0", "transformers": "5.20.0"}


def check_versions() -> None:
    """Raises ImportError, in one sentence, for a package that is too old."""
    for package, lowest in LOWEST_VERSIONS.items():
        try:
            installed = version(package)
        except PackageNotFoundError:  # installed without metadata
            continue
        if Version(installed) < Version(lowest):
            raise ImportError(
                f'Triaffine models need {package} {lowest} or newer, but {installed} is installed: pip install -U "'
                f'{package}>={lowest}".'
            )


check_versions()
