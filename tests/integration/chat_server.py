"""Chat model on loopback that knows four questions by the answer they require, and fails on purpose."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ChatServer(ThreadingHTTPServer):
    """Server that answers, unless configured otherwise; the first of every `fail_every` requests fails."""

    daemon_threads = True

    def __init__(self, fail_every: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.questions: list[dict] = []
        self.num_bad_answers = 0
        self.num_at_once = self.most_at_once = 0
        self.one_at_a_time = threading.Condition()
        self.company_s = 0.0
        """Maximum seconds that the first request waits for another one."""
        self.fail_every, self.num_requests = fail_every, 0
        self.judge: Callable[[str], str] = lambda asked: ""
        """Answer to a question for rubric scores, given what is to be judged."""
        self.page = b""
        """Page of a server of another kind, which is sent in place of answers."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def fails_now(self) -> bool:
        with self.one_at_a_time:
            self.num_requests += 1
            return bool(self.fail_every) and self.num_requests % self.fail_every == 1

    def finish_reason(self, text: str) -> str:
        return "stop"

    def answer(self, body: dict) -> str:
        with self.one_at_a_time:
            self.questions.append(body)
            is_bad = self.num_bad_answers > 0
            self.num_bad_answers -= is_bad
        told, asked = (message["content"] for message in body["messages"])
        if '"transitions"' in told:
            steps = json.loads(asked)["steps"][is_bad:]
            return json.dumps(
                {"transitions": [{"step": s["step"], "reasoning": f"as {s['action']} [end]"} for s in steps]}
            )
        if '"rubric_scores"' in told:
            return self.judge(asked)
        if is_bad:
            return "I would rather not say."
        if "simulate the environment" in told:
            return _imagined(asked.partition("**Action:**\n")[2])
        task = asked.removeprefix("<task>").partition("</task>")[0]
        return f"<task>{task}!</task>\n<state>\n- you: kitchen\n</state>"


def _imagined(action: str) -> str:
    """Return a prediction: taking succeeds, eating makes gone, and all else changes nothing."""
    verb, _, thing = action.partition(" ")
    changes = f"- {thing}: gone" if verb == "eat" else ""
    how = "success" if verb == "take" else "continue"
    return f"<think>[next] {verb}</think>\n<changes>\n{changes}\n</changes>\n<outcome>{how}</outcome>"


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.fails_now():
            self.send_error(503)
        elif self.server.page:
            self._send("text/html", self.server.page)
        else:
            with self._counted():
                text = self.server.answer(body)
                completion = _completion(body["model"], text, self.server.finish_reason(text))
                self._send("application/json", json.dumps(completion).encode())

    @contextmanager
    def _counted(self) -> Iterator[None]:
        server = self.server
        with server.one_at_a_time:
            server.num_at_once += 1
            server.most_at_once = max(server.most_at_once, server.num_at_once)
            server.one_at_a_time.notify_all()
            server.one_at_a_time.wait_for(lambda: server.most_at_once > 1, timeout=server.company_s)
        yield
        with server.one_at_a_time:
            server.num_at_once -= 1

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_) -> None:
        pass


def _completion(model: str, text: str, finish_reason: str) -> dict:
    message = {"role": "assistant", "content": text}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


@contextmanager
def chat_server(fail_every: int = 0, kind: type[ChatServer] = ChatServer) -> Iterator[ChatServer]:
    server = kind(fail_every)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
