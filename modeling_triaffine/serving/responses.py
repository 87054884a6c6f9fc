"""JSON responses."""

import json
from typing import Any

from starlette.responses import Response

from ..files import SURROGATES


def json_answer(content: Any, status: int = 200) -> Response:
    """A JSON response in UTF-8; lone surrogates, which UTF-8 cannot encode, become JSON escapes."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", SURROGATES)
    return Response(body, status, media_type="application/json")
