#!/usr/bin/env python3
"""Stand-in for a Python with vLLM that answers completions as a file next to it says, one line for each.

It misbehaves on request, as no real server does.
"""

import json
import os
import socketserver
import sys
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

PLAN = Path(__file__).with_name("plan")
ASKED = Path(__file__).with_name("asked")
ADAPTERS = Path(__file__).with_name("adapters")
Path(__file__).with_name("arguments").write_text(json.dumps(sys.argv[1:]))
Path(__file__).with_name("visible").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "all"))
NAN = {"choices": [{"index": 0, "token_ids": [7, 8], "logprobs": {"token_logprobs": [-0.5, float("nan")]}}]}
BAD = {
    "nan": json.dumps(NAN),
    "garbage": "<html>",
    "no logprobs": json.dumps({"choices": [{"index": 0, "token_ids": [7, 8], "logprobs": {"token_logprobs": [-1.0]}}]}),
    "too few": json.dumps({"choices": []}),
    "too long": json.dumps(
        {"choices": [{"index": 0, "token_ids": [7] * 9, "logprobs": {"token_logprobs": [-1.0] * 9}}]}
    ),
    "nothing": json.dumps({"choices": [{"index": 0, "token_ids": [], "logprobs": {"token_logprobs": []}}]}),
    "certain": json.dumps({"choices": [{"index": 0, "token_ids": [7], "logprobs": {"token_logprobs": [0.7]}}]}),
}
FINE = json.dumps({"choices": [{"index": 0, "token_ids": [7, 0], "logprobs": {"token_logprobs": [-0.5, -0.25]}}]})

ONE = json.dumps({"choices": [{"index": 0, "token_ids": [7], "logprobs": {"token_logprobs": [-0.5]}}]})


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.answer(200, "vllm:generation_tokens_total 7" if self.path == "/metrics" else "")

    def do_POST(self) -> None:
        if self.path in ("/sleep?level=1", "/wake_up"):
            with ASKED.open("a") as file:
                file.write(json.dumps(self.path) + "\n")
            self.answer(200, "")
            return
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "lora_name" in asked:
            with ADAPTERS.open("a") as file:
                file.write(f"{os.getpid()} {self.path} {asked['lora_name']}\n")
            self.answer(200, "")
            return
        with ASKED.open("a") as file:
            file.write(json.dumps({"prompts": asked["prompt"], "max_tokens": asked["max_tokens"]}) + "\n")
        what, *later = PLAN.read_text().splitlines() or ["fine"]
        PLAN.write_text("\n".join(later))
        if what == "die":
            os._exit(1)
        if what == "hang":
            time.sleep(3600)
        self.answer(500 if what == "out of memory" else 200, ONE if what == "one" else BAD.get(what, FINE))

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def address_string(self) -> str:
        return "somebody"

    def log_message(self, *_: object) -> None:
        pass


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


Server(sys.argv[sys.argv.index("--uds") + 1], Handler).serve_forever()
