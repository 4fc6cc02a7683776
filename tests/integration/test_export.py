"""Export of a policy as a Hugging Face folder: whole or not at all, loaded by transformers, equal to the stored one."""

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

from flows.promotion.export import export_policy
from flows.runs.find_policy import FoundPolicy, find_policy
from infra.context import blobs, ledger, objects
from infra.storage.run_records import save_record
from models.generation.torch_engine import TorchEngine
from models.network.language_model import load_model
from models.network.transformer import weights_of
from models.text.prompts import PromptFormat
from schemas.errors import InputError, IntegrityError, StorageError
from schemas.ledger import Decision, Entry
from schemas.plain import plain
from schemas.policies import PolicyName
from schemas.recipes.networks import TrainingRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import AgentTask
from schemas.sampling import Sampling
from tasks.backbones.find_backbone import SHIPPED
from tasks.running.artifacts import forget, get_frozen_model, get_model, put_model
from tests.stored_runs import finished_run

pytestmark = pytest.mark.integration

TASK = AgentTask("t/1", "cook the carrot", "test", "one-ingredient")
STATE = "you are in the kitchen\na carrot is on the table [end]"
GAIN = {"mean": 0.25, "low": 0.125, "high": 0.375}
SECRETS = {"DREAMGYM_ENDPOINT_API_KEY": "hush-1", "DREAMGYM_S3_SECRET_KEY": "hush-2", "DREAMGYM_SERVE_TOKEN": "hush-3"}


def success(real: float, dream: float, steps: int = 0) -> dict:
    return {
        "real_success": real,
        "interval": [real - 0.1, real + 0.1],
        "real_interactions": steps,
        "dream_success": dream,
        "outcome_agreement": 0.9,
        "dream_real_gap": dream - real,
        "num_tasks": 40,
    }


@pytest.fixture
def stored(home):
    """Store a run with three different policies, the last with adapters; the second is champion."""
    forget()
    start = put_model(load_model(SHIPPED / "textworld-tiny"))
    dream = put_model(changed(get_model(start, TrainingRecipe())))
    tuned = put_model(changed(get_model(dream, TrainingRecipe(lora_rank=4, lora_alpha=8))), dream)
    report = objects().put_json({"passed": True}, "gate")
    gate = {"passed": True, "gain": GAIN, "reasons": [], "report": report}
    finished_run(
        "tiny-0001",
        recipe=Recipe(name="tiny", description="As small as can be.").model_dump(mode="json"),
        recipe_digest="f" * 64,
        results={"start": success(0.5, 0.6), "dream": success(0.75, 0.7), "sim_to_real": success(0.8, 0.7, 120)},
        lineage=plain({"start": start, "dream": dream, "sim_to_real": tuned, "experience": [start, dream]}),
        gate=plain(gate),
        versions={"dream": "1"},
        promoted="dream",
    )
    ledger().append(lambda _: Entry(Decision.PROMOTED, dream, report.sha256, True, "me"))
    forget()
    return {"start": start, "dream": dream, "sim-to-real": tuned}


def changed(model):
    """Change a model as training might."""
    for name, weight in model.network.named_parameters():
        if weight.requires_grad and ("lora_B" in name or "norm" in name):
            torch.nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(0))
    return model


def exported(tmp_path, run="tiny", name=None):
    folder = tmp_path / "agent"
    export_policy(find_policy(run, name), folder)
    return folder


@pytest.mark.parametrize("name", ["start", "dream", "sim-to-real"])
def test_plain_transformers_computes_what_our_engine_computes(stored, tmp_path, name):
    folder = exported(tmp_path, "tiny-0001", PolicyName(name))
    plainly = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    ids = PromptFormat(tokenizer).turn_prompt(TASK, ["look"], STATE)
    network = get_frozen_model(stored[name]).network
    assert ids == get_frozen_model(stored[name]).format.turn_prompt(TASK, ["look"], STATE)
    sessions = TorchEngine(weights_of(network, torch.float32), 0).open(1)
    sessions.extend([0], [ids])
    (sampled,) = sessions.generate([0], Sampling(8, end_ids=(tokenizer.eos_token_id,)))
    with torch.no_grad():
        theirs = plainly(torch.tensor([[*ids, *sampled.ids]])).logits[0]
        ours = network(torch.tensor([[*ids, *sampled.ids]])).logits[0]
    torch.testing.assert_close(theirs, ours, atol=1e-5, rtol=1e-5)
    logprobs = theirs.log_softmax(-1)[len(ids) - 1 : -1].gather(1, torch.tensor(sampled.ids)[:, None])[:, 0]
    torch.testing.assert_close(logprobs, torch.tensor(sampled.logprobs), atol=1e-5, rtol=1e-5)


def test_the_folder_holds_a_model_and_its_card_and_nothing_that_can_run(stored, tmp_path):
    folder = exported(tmp_path, "tiny", PolicyName.SIM_TO_REAL)
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"} <= names
    assert names - {"model.safetensors"} == {name for name in names if name.endswith((".json", ".md", ".jinja"))}
    with safe_open(folder / "model.safetensors", "pt") as weights:
        assert not [name for name in weights.keys() if "lora" in name]  # noqa: SIM118 - it is no dictionary
    assert "auto_map" not in json.loads((folder / "config.json").read_text())
    assert list(folder.parent.glob(".agent*")) == []


def test_adapters_can_stay_files_of_their_own(stored, tmp_path):
    export_policy(find_policy("tiny", PolicyName.SIM_TO_REAL), tmp_path / "apart", merge=False)
    assert (tmp_path / "apart" / "adapter_model.safetensors").exists()
    apart, whole = (
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
        for folder in (tmp_path / "apart", exported(tmp_path, "tiny", PolicyName.SIM_TO_REAL))
    )
    ids = torch.tensor([[1, 2, 3, 4]])
    with torch.no_grad():
        torch.testing.assert_close(apart(ids).logits, whole(ids).logits, atol=1e-5, rtol=1e-5)


def test_files_are_the_stored_bytes(stored, tmp_path):
    folder = exported(tmp_path)
    for name, sha256 in objects().get_json(stored["dream"]).items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == sha256


def test_the_champion_is_the_ledgers(stored, tmp_path):
    found = find_policy("champion")
    assert (found.reference, found.name, found.summary["run_id"]) == (stored["dream"], "dream", "tiny-0001")
    ledger().append(lambda _: Entry(Decision.PROMOTED, stored["sim-to-real"], "", True, "me"))
    assert find_policy("champion").name == "sim-to-real"
    with pytest.raises(InputError, match="--policy chooses among the policies of a run"):
        find_policy("champion", PolicyName.START)


def test_a_champion_of_another_home_has_a_card_that_says_so(stored, tmp_path):
    stranger = put_model(load_model(SHIPPED / "textworld-tiny"), None, {})
    ledger().append(lambda _: Entry(Decision.PROMOTED, stranger, "", True, "me"))
    card = (exported(tmp_path, "champion") / "README.md").read_text()
    assert stranger.sha256 in card
    assert "its results and its recipe are not known here" in card


def test_the_card_tells_results_verdict_and_lineage_and_calls_a_dream_a_dream(stored, tmp_path):
    card = (exported(tmp_path) / "README.md").read_text()
    assert "| after dream training | 75.0% | 65.0% to 85.0% | 0 | 70.0% (dream) |" in card
    assert "**passed**, real gain over the starting\npolicy +25.0% (95% +12.5% to +37.5%)" in card
    assert all(reference.sha256 in card for reference in stored.values())
    recipe = json.loads(re.search(r"```json\n(.*?)```", card, re.DOTALL)[1])
    assert Recipe.model_validate(recipe) == Recipe(name="tiny", description="As small as can be.")


def test_the_cards_header_names_a_base_model_of_the_hub_only(stored, tmp_path):
    found = find_policy("tiny")
    assert "base_model" not in (exported(tmp_path) / "README.md").read_text()
    found.summary["recipe"]["backbone"] |= {"model": "Qwen/Qwen3-0.6B", "revision": "c1899de"}
    export_policy(found, tmp_path / "other")
    header = (tmp_path / "other" / "README.md").read_text().split("---\n")[1]
    assert 'base_model: "Qwen/Qwen3-0.6B"\n' in header


def test_the_cards_example_runs_and_prompts_as_training_did(stored, tmp_path):
    folder = exported(tmp_path)
    card = (folder / "README.md").read_text()
    example = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1].replace('folder = "."', f"folder = {str(folder)!r}")
    names: dict = {}
    exec(example, names)  # the card says that it works
    prompt = names["prompt"](TASK.instruction, ["look", "take carrot"], STATE)
    format = get_frozen_model(stored["dream"]).format
    assert prompt == format.turn_prompt(TASK, ["look", "take carrot"], STATE)
    assert isinstance(names["act"](prompt), str)


def test_no_secret_and_no_address_leaves_the_house(stored, tmp_path, monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    folder = exported(tmp_path)
    told = b"".join(path.read_bytes() for path in folder.iterdir())
    for private in (*SECRETS.values(), str(tmp_path)):
        assert private.encode() not in told


def test_a_folder_that_holds_something_is_left_alone(stored, tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="agent is not empty, and nothing in it was touched"):
        exported(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match=r"mine\.txt is a file: name a folder"):
        export_policy(find_policy("tiny"), folder / "mine.txt")


def test_an_empty_folder_is_taken(stored, tmp_path):
    (tmp_path / "agent").mkdir()
    assert (exported(tmp_path) / "config.json").exists()


def object_of(stored, name: str, file: str):
    sha256 = objects().get_json(stored[name])[file]
    return sha256, Path(blobs().root) / sha256[:2] / sha256


@pytest.mark.parametrize("name", ["dream", "sim-to-real"])
def test_an_object_that_is_gone_is_named_and_nothing_is_written(stored, tmp_path, name):
    sha256, path = object_of(stored, name, "tokenizer.json")
    path.unlink()
    with pytest.raises(
        StorageError, match=rf"policy {name} of tiny-0001 cannot be .*{sha256}.*Restore it.*run the recipe"
    ):
        exported(tmp_path, "tiny", PolicyName(name))
    assert not list(tmp_path.glob("*agent*"))


def test_a_champion_that_is_gone_altogether_is_named(stored, tmp_path):
    shutil.rmtree(Path(blobs().root) / stored["dream"].sha256[:2])
    with pytest.raises(StorageError, match=f"{stored['dream'].sha256}.*Restore it"):
        exported(tmp_path, "champion")
    assert not list(tmp_path.glob("*agent*"))


def test_one_flipped_bit_is_not_exported(stored, tmp_path):
    _, path = object_of(stored, "dream", "model.safetensors")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(IntegrityError, match=r"cannot be exported: object .* is corrupt"):
        exported(tmp_path)
    assert not list(tmp_path.glob("*agent*"))


def test_what_is_not_there_is_told(stored, home):
    with pytest.raises(InputError, match="no run is called 'nosuch'; the latest are tiny-0001"):
        find_policy("nosuch")
    summary = find_policy("tiny").summary
    del summary["lineage"]["sim_to_real"]
    save_record(summary)
    with pytest.raises(InputError, match="has no policy sim-to-real: it has --policy start, dream"):
        find_policy("tiny", PolicyName.SIM_TO_REAL)
    ledger().append(lambda _: Entry(Decision.ROLLED_BACK, None, by="me"))
    with pytest.raises(InputError, match="there is no champion"):
        find_policy("champion")


def test_found_by_the_run_is_the_policy_that_was_promoted(stored):
    assert find_policy("tiny") == FoundPolicy(stored["dream"], PolicyName.DREAM, find_policy("tiny").summary)
