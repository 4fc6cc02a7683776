"""The teacher against a real HTTP server on loopback that misbehaves on purpose."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from infra import settings as settings_module
from infra.teacher import TeacherAnnotator
from schemas.errors import DreamGymError, InputError
from schemas.records import AgentTask, Step, Trajectory, Turn


class Teacher(BaseHTTPRequestHandler):
    """Fails the first request with 500, then leaves out a step once, then answers."""

    num_requests = 0
    num_bad_answers = 1

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Teacher.num_requests += 1
        if Teacher.num_requests == 1:
            self.send_response(500)
            self.end_headers()
            return
        steps = json.loads(body["messages"][1]["content"])["steps"]
        if Teacher.num_bad_answers > 0:
            Teacher.num_bad_answers -= 1
            steps = steps[:-1]
        traces = [{"step": s["step"], "reasoning": f"because of {s['action']} [end]"} for s in steps]
        answer = {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": json.dumps({"transitions": traces})},
                }
            ],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint(tmp_path, monkeypatch):
    Teacher.num_requests, Teacher.num_bad_answers = 0, 1
    server = ThreadingHTTPServer(("127.0.0.1", 0), Teacher)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("DREAMGYM_HOME", str(tmp_path))
    monkeypatch.setenv("DREAMGYM_TEACHER_URL", f"http://127.0.0.1:{server.server_port}/v1")
    settings_module.settings.cache_clear()
    yield server
    server.shutdown()
    settings_module.settings.cache_clear()


def episodes(count: int) -> list[Trajectory]:
    task = AgentTask("t", "do it", "train", "f")
    return [
        Trajectory(
            task,
            "real",
            [Turn(f"- n: {i}", a, Step(f"- n: {i}{a}", 0.0, done=False, success=False)) for a in ("one", "two")],
        )
        for i in range(count)
    ]


@pytest.mark.integration
def test_every_step_is_explained_through_errors_and_the_second_time_costs_nothing(endpoint):
    teacher = TeacherAnnotator("m")
    traces = teacher.annotate(episodes(4))
    assert traces == [["because of one (end)", "because of two (end)"]] * 4
    assert teacher.cost.num_requests == 5  # four, and one that left out a step
    assert teacher.cost.num_prompt_tokens == 50
    again = TeacherAnnotator("m")
    assert again.annotate(episodes(4)) == traces
    assert (again.cost.num_requests, again.cost.num_cached) == (0, 4)


@pytest.mark.integration
def test_a_teacher_that_never_explains_every_step_is_an_error(endpoint):
    Teacher.num_bad_answers = 99
    with pytest.raises(DreamGymError, match="did not explain each of 2 steps"):
        TeacherAnnotator("m").annotate(episodes(1))


@pytest.mark.integration
def test_no_endpoint_is_an_input_error(monkeypatch):
    monkeypatch.delenv("DREAMGYM_TEACHER_URL", raising=False)
    settings_module.settings.cache_clear()
    with pytest.raises(InputError, match="DREAMGYM_TEACHER_URL"):
        TeacherAnnotator("m")
    settings_module.settings.cache_clear()
