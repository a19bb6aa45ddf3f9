"""A collection over HTTP, and a page to look at it.

`rankbits serve` runs what `create_app` makes; `rankbits.client` talks to it.
"""

from rankbits._check import extra

extra("fastapi", "rankbits.service", "serve")

from rankbits.service._app import create_app  # noqa: E402
from rankbits.service._limits import Limits  # noqa: E402
from rankbits.service._server import serve  # noqa: E402
from rankbits.service._tokens import load_token  # noqa: E402

__all__ = ["Limits", "create_app", "load_token", "serve"]
