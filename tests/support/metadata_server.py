"""The instance metadata service of EC2, as small as a worker needs it: version 2, and its moods."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN_PATH = "/latest/api/token"
FACTS = "/latest/meta-data/"


@dataclass
class MetadataServer:
    """`facts` is what there is to tell: names below `FACTS`, or whole paths. `status`, if set, is
    the answer to everything.
    """

    facts: dict[str, str] = field(default_factory=lambda: {"instance-life-cycle": "spot"})
    status: int | None = None
    tokens: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    address: str = ""

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        self.asked.append(path)
        if self.status is not None:
            return self.status, "no"
        if method == "PUT" and path == TOKEN_PATH:
            if not headers.get("X-aws-ec2-metadata-token-ttl-seconds", "").isdigit():
                return 400, "for how long?"
            token = secrets.token_hex(8)
            self.tokens.add(token)
            return 200, token
        if headers.get("X-aws-ec2-metadata-token") not in self.tokens:
            return 401, "version 2 only"
        found = self.facts.get(path.removeprefix(FACTS))
        return (404, "nothing") if found is None else (200, found)


@contextmanager
def metadata_server(host: str = "127.0.0.1") -> Iterator[MetadataServer]:
    told = MetadataServer()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self._answer("PUT")

        def do_GET(self) -> None:
            self._answer("GET")

        def _answer(self, method: str) -> None:
            status, body = told.answer(method, self.path, self.headers)  # type: ignore[arg-type]  # a mapping in all but name
            self.send_response(status)
            answer = body.encode()
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_words: Any) -> None:
            """Not a word."""

    server = ThreadingHTTPServer((host, 0), Handler)
    told.address = f"http://{host}:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    serving.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
