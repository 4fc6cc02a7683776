"""Small shop with the protocol of AgentGym's WebShop server: nine products, in three colours and two sizes each."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KINDS, STUFFS, COLOURS, SIZES = (
    ("dress", "shirt", "coat"),
    ("cotton", "wool", "silk"),
    ("red", "green", "blue"),
    ("small", "large"),
)
PRODUCTS = {f"b0000000{i}{j}": f"{stuff} {kind}" for i, kind in enumerate(KINDS) for j, stuff in enumerate(STUFFS)}


def goal(number: int) -> tuple[str, str, str]:
    """Return the product, colour and size that a goal number stands for."""
    return list(PRODUCTS.values())[number % 9], COLOURS[number % 3], SIZES[number % 2]


class _Session:
    def __init__(self, number: int) -> None:
        self.wanted = goal(number)
        self.product, self.chosen, self.found, self.done = "", set[str](), list[str](), False

    @property
    def asked(self) -> str:
        what, colour, size = self.wanted
        return f"Find me a {what} with color: {colour}, and size: {size}, and price lower than 60.00 dollars"

    def take(self, action: str) -> float:
        verb, _, what = action.removesuffix("]").partition("[")
        if verb == "search" and what and not self.found and not self.product:
            self.found = sorted(PRODUCTS, key=lambda one: -len(set(PRODUCTS[one].split()) & set(what.split())))[:3]
        elif verb == "click" and what in self.clickables:
            return self.click(what)
        return 0.0

    def click(self, what: str) -> float:
        if what == "back to search":
            self.product, self.found = "", []
        elif what in PRODUCTS:
            self.product, self.chosen = what, set()
        elif what == "buy now":
            self.done = True
            bought = {PRODUCTS[self.product], *self.chosen}
            return len(bought & set(self.wanted)) / 3
        else:
            self.chosen -= set(COLOURS if what in COLOURS else SIZES)
            self.chosen.add(what)
        return 0.0

    @property
    def clickables(self) -> list[str]:
        if self.product:
            return ["back to search", "< prev", "description", "buy now", *COLOURS, *SIZES]
        return ["back to search", *self.found] if self.found else ["search"]

    @property
    def page(self) -> str:
        parts = ["Instruction:", self.asked]
        if self.product:
            parts += [
                "Back to Search",
                "color",
                *COLOURS,
                "size",
                *SIZES,
                PRODUCTS[self.product],
                "Price: $24.99",
                "Buy Now",
            ]
        elif self.found:
            parts += ["Back to Search", "Page 1 (Total results: 3)"]
            parts += [part for one in self.found for part in (one.upper(), PRODUCTS[one], "$24.99")]
        else:
            parts = ["WebShop", *parts, "Search"]
        return " [SEP] ".join(parts)


class ShopServer(ThreadingHTTPServer):
    """Server on loopback; sessions in `lost` are answered with an error."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.sessions: dict[int, _Session] = {}
        self.lost: set[int] = set()
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, path: str, asked: dict[str, Any]) -> Any:
        if path == "/create":
            self.sessions[len(self.sessions)] = _Session(0)
            return len(self.sessions) - 1
        number = int(asked["env_idx"])
        if number in self.lost:
            raise KeyError(number)
        if path == "/reset":
            self.sessions[number] = _Session(asked["session_id"])
            return [self.sessions[number].page, None]
        session = self.sessions[number]
        if path == "/step":
            score = session.take(asked["action"])
            return {"state": session.page, "reward": score, "done": session.done, "info": None}
        return {"has_search_bar": session.clickables == ["search"], "clickables": session.clickables}


class _Handler(BaseHTTPRequestHandler):
    server: ShopServer

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        self._answer(path.path, {name: values[0] for name, values in parse_qs(path.query).items()})

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        self._answer(self.path, json.loads(self.rfile.read(length) or b"{}"))

    def _answer(self, path: str, asked: dict[str, Any]) -> None:
        try:
            with self.server.lock:
                status, answer = 200, self.server.answer(path, asked)
        except (KeyError, ValueError) as error:
            status, answer = 500, repr(error)
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def shop() -> Iterator[ShopServer]:
    """Yield a running shop."""
    with ShopServer() as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.shutdown()
