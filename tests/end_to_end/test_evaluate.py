"""`dreamgym evaluate`: any model on the pinned tasks of a recipe, beside the policies of a run."""

import json

import pytest

from models.network.language_model import LanguageModel
from models.text.prompts import PromptFormat
from tests.chat import chat_tokenizer
from tests.command_line import LENIENT_GATE, TOY, changed, dreamgym_here
from tests.unit.tiny import tiny_network

PINNED = changed(*TOY, "evaluation.panel=pinned")
CHAT = changed("policy.template=chat", "policy.think=short", "policy.max_thought_tokens=16", "environment.max_steps=3")


@pytest.fixture(scope="module")
def home(tmp_path_factory, prefect_server):
    home = tmp_path_factory.mktemp("home")
    evaluated = ("run", "textworld-tiny", *PINNED, *changed(*LENIENT_GATE), "--only", "evaluate")
    done = dreamgym_here(home, *evaluated, PREFECT_API_URL=prefect_server)
    assert done.returncode == 0, done.stderr
    return home


@pytest.fixture
def evaluate(home, prefect_server):
    def evaluated(*arguments: str):
        return dreamgym_here(home, "evaluate", "textworld-tiny", *arguments, PREFECT_API_URL=prefect_server)

    return evaluated


@pytest.mark.e2e
def test_a_model_is_compared_with_the_policies_of_a_run_for_real_and_in_its_dream(evaluate, home):
    done = evaluate("--model", "textworld-tiny", "--against", "@latest", *PINNED, "--json")
    assert done.returncode == 0, done.stderr
    found, run = json.loads(done.stdout), json.loads(dreamgym_here(home, "show", "--json").stdout)
    assert found["num_tasks"] == 4
    assert {"dream_success", "outcome_agreement"} <= found.keys()
    for name in ("start", "dream"):
        gain = found["real_success"] - run["results"][name]["real_success"]
        assert found["gains"][name]["mean"] == pytest.approx(gain)
    assert "wins 0" in evaluate("--model", "textworld-tiny", *PINNED).stdout, "a backbone that was never cloned"


@pytest.mark.e2e
def test_a_chat_model_in_a_folder_is_evaluated_for_real(evaluate, tmp_path):
    tokenizer = chat_tokenizer()
    network = tiny_network(kind="llama", vocab_size=len(tokenizer))
    LanguageModel(network, tokenizer, PromptFormat(tokenizer)).save(tmp_path / "chat")
    done = evaluate("--model", str(tmp_path / "chat"), *PINNED, *CHAT, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["real_success"], found["gains"]) == (0.0, {})
    assert "dream_success" not in found


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--model", "nowhere/to-be-found", *PINNED), "neither a folder nor shipped"),
        (("--model", "textworld-tiny", *PINNED, *CHAT), "has no chat template"),
        (
            ("--model", "textworld-tiny", "--against", "@latest", *PINNED, *changed("environment.num_test_tasks=2")),
            "evaluated on other tasks, of which 2",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_said_in_a_sentence(evaluate, arguments, told):
    done = evaluate(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert "Traceback" not in done.stderr
