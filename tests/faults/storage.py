"""S3-compatible store that fails: it refuses some requests, or carries them out and loses the answer."""

import random
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from infra.promotion.ledger import Ledger
from infra.settings import Settings
from infra.storage.blobs import open_blobs
from infra.storage.object_store import ObjectStore
from infra.storage.replay_store import ReplayStore
from schemas.ledger import Decision, Entry
from tests.faults.outcome import Outcome
from tests.integration.s3 import s3_server

_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>reduce your request rate</Message></Error>"


class Weather:
    """Fate of requests: each is passed on, refused, or passed on with its answer lost."""

    def __init__(self, seed: int) -> None:
        self.rng, self.refused_share, self.lost_share = random.Random(seed), 0.0, 0.0
        self.num_refused = self.num_lost = 0

    def decide(self) -> str:
        draw = self.rng.random()
        if draw < self.refused_share:
            self.num_refused += 1
            return "refuse"
        if draw < self.refused_share + self.lost_share:
            self.num_lost += 1
            return "lose"
        return "pass"


@contextmanager
def weathered(target: str, weather: Weather) -> Iterator[str]:
    """Yield the address of a server that passes requests on to `target`, as `weather` decides."""
    lock, client = threading.Lock(), httpx.Client(timeout=30)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                fate = weather.decide()
                status, headers, content = _refused(weather.rng) if fate == "refuse" else self._passed_on(body)
            if fate == "lose":
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _passed_on(self, body: bytes):
            told = {name: value for name, value in self.headers.items() if name.lower() not in ("expect", "connection")}
            answer = client.request(self.command, f"{target}{self.path}", headers=told, content=body)
            kept = {n: v for n, v in answer.headers.items() if n.lower() not in ("connection", "transfer-encoding")}
            kept.setdefault("content-length", str(len(answer.content)))
            return answer.status_code, kept, answer.content

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        client.close()


def _refused(rng: random.Random) -> tuple[int, dict[str, str], bytes]:
    status = rng.choice((500, 503, 503))
    return status, {"content-length": str(len(_SLOW_DOWN)), "content-type": "application/xml"}, _SLOW_DOWN


def check_errors(num_tries: int) -> Outcome:
    """Write objects, a ledger and a table while one request in five is refused."""
    outcome = Outcome("S3 answers 500, 503 or SlowDown to one request in five", "everything is written once")
    _in_weather(outcome, num_tries, refused=0.2, lost=0.0)
    return outcome


def check_lost_answers(num_tries: int) -> Outcome:
    """Write the same while the answer to one request in five is lost after it was carried out."""
    outcome = Outcome("S3 does what it is asked, and its answer is lost", "everything is written once")
    _in_weather(outcome, num_tries, refused=0.0, lost=0.2)
    return outcome


def _in_weather(outcome: Outcome, num_tries: int, *, refused: float, lost: float) -> None:
    weather = Weather(seed=1)
    with tempfile.TemporaryDirectory() as home, s3_server("faults") as calm, weathered(calm, weather) as address:
        settings = Settings(
            home=Path(home),
            object_store=f"s3://faults/{Path(home).name}/objects",
            replay_store=f"s3://faults/{Path(home).name}/replay",
            s3_endpoint=address,
            s3_access_key="key",
            s3_secret_key="secret",
        )
        blobs = open_blobs(settings)
        objects, ledger, table = ObjectStore(blobs), Ledger(blobs), ReplayStore(settings)
        weather.refused_share, weather.lost_share = refused, lost
        for number in range(num_tries):
            outcome.tried(*_problems(lambda number=number: _write_one_of_each(objects, ledger, table, number)))
        weather.refused_share = weather.lost_share = 0.0
        entries, rows = Ledger(blobs).history().entries, table.read("quarantine")
        written = [[entry.by for entry in entries], sorted(int(row["row_id"]) for row in rows)]
        wanted = [[str(n) for n in range(num_tries)], list(range(num_tries))]
        outcome.tried(*([] if written == wanted else [f"written {written}"]))
        outcome.tried(*([] if weather.num_refused + weather.num_lost else ["no fault was injected"]))


def _write_one_of_each(objects: ObjectStore, ledger: Ledger, table: ReplayStore, number: int) -> None:
    content = str(number).encode()
    if objects.get(objects.put(content, "file")) != content:
        raise AssertionError("an object came back changed")
    ledger.append(lambda _: Entry(Decision.JUDGED, None, by=str(number)))
    table.upsert("quarantine", [quarantined(number)])


def quarantined(number: int) -> dict[str, object]:
    """Return a row of the smallest table."""
    from schemas.tables import QUARANTINE_SCHEMA

    blank = {field.name: "" if str(field.type) == "string" else 0 for field in QUARANTINE_SCHEMA}
    return {**blank, "row_id": str(number)}


def _problems(work: Callable[[], None]) -> list[str]:
    try:
        work()
    except Exception as error:  # every error is a broken promise here
        return [f"{type(error).__name__}: {error}"[:200]]
    return []
