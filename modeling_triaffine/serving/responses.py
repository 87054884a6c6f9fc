"""Responses: JSON in UTF-8."""

import json
from typing import Any

from starlette.responses import Response

from ..files import SURROGATES


def json_answer(content: Any, status: int = 200) -> Response:
    """JSON in UTF-8. Lone surrogates, which JSON can contain and UTF-8 cannot, are written as JSON escapes."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", SURROGATES)
    return Response(body, status, media_type="application/json")
