"""The demo page as a Space on the Hub; README.md tells how to make one."""

import os
import sys

MODELS = "TRIAFFINE_MODELS"


def main() -> None:
    models = os.environ.get(MODELS, "").split()
    if not models:
        sys.exit(
            f"error: this Space does not know which model to show. Set its variable {MODELS} (Settings, Variables and "
            "secrets) to the id of a model on the Hub, such as owner/name, or to several with spaces between them."
        )
    from modeling_triaffine.page import build_page, serve_page

    serve_page(build_page(models), host="0.0.0.0")


if __name__ == "__main__":
    main()
