"""Recipes of models too large for this machine, with a small random one of the same architecture in their place."""

import json
import time
from pathlib import Path
from typing import Any

import openai
import pytest

from models.network.language_model import LanguageModel
from models.text.prompts import PromptFormat
from tests.alfworld import require_games
from tests.chat import chat_tokenizer
from tests.command_line import LENIENT_GATE, SMALLER, TOY, dreamgym_here, lineage_of
from tests.end_to_end.test_dream_out import serving
from tests.integration.shop_server import shop
from tests.unit.tiny import tiny_network


def in_its_place(folder: Path, kind: str) -> tuple[str, ...]:
    """Return changes that put a small random network of an architecture in place of a recipe's."""
    tokenizer = chat_tokenizer()
    network = tiny_network(kind=kind, vocab_size=len(tokenizer) + 8)  # Qwen2's tokenizer adds a token of its own
    network.config.max_position_embeddings = 16_384
    LanguageModel(network, tokenizer, PromptFormat(tokenizer)).save(folder / kind)
    model = (f"backbone.model={folder / kind}", "backbone.random_init=true", "engine.name=torch")
    short = ("experience.max_new_tokens=48", "policy.max_thought_tokens=24", "policy.max_action_tokens=24")
    return (*TOY, *LENIENT_GATE, *model, *short, "rl.group_size=4", "gpus=0")


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_qwen3_with_adapters_goes_through_a_whole_cycle(tmp_path):
    plain = ("policy.template=plain", "policy.think=off", "experience.max_prompt_tokens=700")
    changes = (*in_its_place(tmp_path, "qwen3"), *SMALLER, *plain, "environment.max_steps=12")
    made = lineage_of(tmp_path, "qwen3-0.6b-lora-1gpu", changes)
    assert made >= {"start", "experience_model", "dream", "sim_to_real"}
    limits = json.loads(dreamgym_here(tmp_path, "show", "--json").stdout)["stage_limits"]["predictions"]
    assert limits.keys() >= {"answers longer than 24 tokens", "prompts without their farthest demonstrations"}


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_a_chat_policy_that_thinks_goes_through_a_whole_cycle(tmp_path):
    limits = ("policy.max_prompt_tokens=500", "policy.max_episode_tokens=640", "experience.max_prompt_tokens=1000")
    changes = (*in_its_place(tmp_path, "llama"), *SMALLER, *limits, "environment.max_steps=6")
    made = lineage_of(tmp_path, "qwen3-0.6b-lora-1gpu", changes)
    assert made >= {"start", "experience_model", "dream", "sim_to_real"}
    summary = json.loads(dreamgym_here(tmp_path, "show", "--json").stdout)
    met = {kind for limits in summary["stage_limits"].values() for kind in limits}
    assert "answers longer than 80 tokens" in met or "answers without a thought and an action" in met
    assert "max_new_tokens=80" in _model_card(tmp_path)
    with serving(tmp_path, "", "--policy", "@latest") as url:
        client = openai.OpenAI(base_url=f"{url.replace('ws', 'http')}/v1", api_key="none", max_retries=0)
        answer = _once_it_listens(client, model="policy", messages=[{"role": "user", "content": "Act."}], max_tokens=8)
    assert answer.usage.completion_tokens <= 8


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_an_agent_loop_of_a_user_is_trained_without_logs_by_a_network_that_transformers_computes(tmp_path):
    loop = ("environment={name='treasure-agent', families=['2']}", "policy.template=messages", "policy.think=off")
    base = ("ingest.played_by=base", "start.from=base", "policy.num_slots=8", "experience.max_prompt_tokens=1000")
    changes = (*in_its_place(tmp_path, "smollm3"), *loop, *SMALLER, *base, "environment.max_steps=3")
    made = lineage_of(tmp_path, "qwen3-0.6b-lora-1gpu", changes)
    assert made >= {"start", "experience_model", "dream", "sim_to_real"}
    rows = json.loads(dreamgym_here(tmp_path, "trajectories", "--origin", "real", "--json").stdout)
    assert rows


def _model_card(home: Path) -> str:
    done = dreamgym_here(home, "export", "@latest", str(home / "exported"))
    assert done.returncode == 0, done.stderr
    return (home / "exported" / "README.md").read_text()


def _once_it_listens(client: openai.OpenAI, **asked: Any) -> Any:
    """Return the answer of a server that is starting, which takes minutes where other tests have the cores."""
    for _ in range(300):
        try:
            return client.chat.completions.create(**asked)
        except openai.APIConnectionError:
            time.sleep(1)
    raise TimeoutError


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_alfworld_goes_through_a_whole_cycle(tmp_path, monkeypatch):
    require_games(monkeypatch)
    changes = (*in_its_place(tmp_path, "qwen2"), *SMALLER, 'environment.families=["look_at_obj_in_light"]')
    made = lineage_of(tmp_path, "qwen2.5-7b-alfworld", changes)
    assert made >= {"start", "experience_model", "dream", "sim_to_real"}


@pytest.mark.e2e
@pytest.mark.usefixtures("shared_prefect")
def test_webshop_goes_through_a_whole_cycle_with_a_small_shop(tmp_path):
    changes = (*in_its_place(tmp_path, "llama"), *SMALLER)
    with shop() as server:
        made = lineage_of(tmp_path, "llama-3.1-8b-webshop", changes, DREAMGYM_ENVIRONMENT_URL=server.url)
    assert made >= {"start", "experience_model", "dream", "sim_to_real"}
