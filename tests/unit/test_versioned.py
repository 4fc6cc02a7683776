"""Changes that make a versioned task run again, and changes that do not."""

import ast
import gc
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from schemas.errors import DreamGymError
from schemas.plain import plain, references_in, restored
from schemas.recipes import digests
from schemas.recipes.digests import digest_of
from schemas.recipes.learning import RlRecipe
from schemas.recipes.methods import JudgeRecipe
from schemas.recipes.networks import ExperienceRecipe
from schemas.recipes.policy import PolicyRecipe
from schemas.recipes.recipe import Recipe
from schemas.records import Reference
from tasks.running import cache_key, device, import_closure
from tasks.running.cache_key import code_and_packages, key_parts
from tasks.running.import_closure import closure_of, digests_now
from tasks.running.versioned import versioned_task

MODEL = Reference("folder/a", "a" * 64, "model", {"round": 1})
TEXTWORLD = Recipe(name="a").environment
MINIWOB = Recipe.model_validate({"name": "a", "environment": {"name": "miniwob"}}).environment


def key(task="train", module="tasks.learning.train_policy", **inputs) -> str:
    return key_parts(task, module, {"policy": MODEL, "recipe": RlRecipe(), "round": 0} | inputs).key


@pytest.mark.parametrize(
    "change",
    [
        {"task": "dream"},
        {"module": "tasks.judging.judge"},
        {"round": 1},
        {"recipe": RlRecipe(group_size=4)},
        {"policy": Reference("folder/a", "b" * 64, "model")},
        {"more": [MODEL]},
    ],
)
def test_whatever_decides_a_result_changes_the_key(change):
    assert key(**change) != key()


def test_where_an_input_lies_and_what_was_noted_of_it_changes_nothing():
    assert key(policy=Reference("s3://elsewhere", "a" * 64, "model", {"round": 7})) == key()


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """Copy the rooms, so that a test may change their files."""
    for room in ("schemas", "models", "infra", "tasks", "flows"):
        shutil.copytree(import_closure.ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("backbones"))
    monkeypatch.setattr(import_closure, "ROOT", tmp_path)
    return tmp_path


def code_of(task: str, environment=TEXTWORLD) -> dict[str, str]:
    return code_and_packages(f"tasks.{task}", [environment])[0]


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_a_comment_and_a_docstring_change_no_digest(checkout):
    before = code_of("playing.dream")
    file = checkout / "models" / "rollout" / "rollouts.py"
    file.write_text(f"# a remark\n{file.read_text()}".replace('"""', '"""Another word. ', 1))
    assert code_of("playing.dream") == before


def test_code_that_only_the_judge_uses_makes_it_judge_again_and_nothing_be_dreamt_again(checkout):
    judge, dream = code_of("judging.judge"), code_of("playing.dream")
    edit(checkout / "models" / "measurement" / "gate.py", "asked.margin == 1", "asked.margin >= 1")
    assert code_of("judging.judge") != judge
    assert code_of("playing.dream") == dream


def test_digests_of_a_steps_files_tell_whether_its_code_is_the_same(checkout):
    code = code_of("curriculum.propose_tasks")
    assert digests_now(code) == code
    edit(
        checkout / "models" / "methods" / "curricula" / "__init__.py", "import random\n", "import math\nimport random\n"
    )
    assert {path for path, digest in digests_now(code).items() if digest != code[path]} == {
        "models/methods/curricula/__init__.py"
    }
    (checkout / "models" / "methods" / "entropies.py").unlink()
    assert code.keys() - digests_now(code).keys() == {"models/methods/entropies.py"}


def test_code_is_read_while_other_threads_parse_and_collect_garbage(tmp_path):
    class Cyclic:
        def __init__(self):
            self.own = self

        def __del__(self):
            for _ in range(200):
                pass

    deep = "".join(f"{'    ' * depth}if a:\n" for depth in range(60)) + "    " * 60 + "pass\n"
    files = [tmp_path / f"{number}.py" for number in range(400)]
    for file in files:
        file.write_text(deep)
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(50, 2, 2)
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            read = []
            for file in files:
                pool.submit(lambda: (Cyclic(), ast.parse(deep)))
                read.append(pool.submit(lambda file=file: (Cyclic(), import_closure._read(file, "", 0))[1]))
            digests = {one.result().digest for one in read}
    finally:
        gc.set_threshold(*threshold)
        sys.setswitchinterval(interval)
    assert len(digests) == 1


def test_no_garbage_is_collected_before_every_thread_has_read(tmp_path, monkeypatch):
    parse, collected = ast.parse, []

    def slow(source: bytes) -> ast.Module:
        time.sleep(0.2)
        collected.append(gc.isenabled())
        return parse(source)

    first, second = tmp_path / "first.py", tmp_path / "second.py"
    with monkeypatch.context() as changed, ThreadPoolExecutor(2) as pool:
        changed.setattr(ast, "parse", slow)
        for file in (first, second):
            file.write_text("pass\n")
            pool.submit(import_closure._read, file, "", 0)
            time.sleep(0.1)  # the first one ends while the second one parses
        pool.shutdown()
    assert collected == [False, False]
    assert gc.isenabled()


def test_another_environments_code_counts_only_where_that_is_played(checkout):
    kitchen, pages = code_of("judging.evaluate"), code_of("judging.evaluate", MINIWOB)
    file = checkout / "infra" / "environments" / "miniwob" / "names.py"
    file.write_text(f"{file.read_text()}\nANOTHER = 1\n")
    assert code_of("judging.evaluate") == kitchen
    assert code_of("judging.evaluate", MINIWOB) != pages
    assert not any("miniwob" in name for name in kitchen)
    assert any("cooking" in name for name in kitchen)


def test_code_that_carries_results_is_no_part_of_a_key():
    carried = {
        "infra/tracking/tracker.py",
        "infra/promotion/ledger.py",
        "infra/storage/replay_store.py",
        "schemas/recipes/recipe.py",
        "tasks/running/versioned.py",
    }
    assert not carried & closure_of(["flows.loop.cycle"]).code.keys()


def test_a_file_counts_however_it_is_imported(tmp_path, monkeypatch):
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "__init__.py").write_text("")
    (tmp_path / "stranger" / "game.py").write_text("def play():\n    from . import rules\n    import numpy\n")
    (tmp_path / "stranger" / "rules.py").write_text("import json\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = closure_of(["stranger.game"], ["stranger"])
    assert {Path(name).name for name in found.code} == {"__init__.py", "game.py", "rules.py"}
    assert found.packages == {"numpy"}


@pytest.mark.parametrize(("package", "touched"), [("torch", True), ("textworld", True), ("alfworld", False)])
def test_another_version_of_a_package_counts_where_its_code_is_run(package, touched, monkeypatch):
    before = code_and_packages("tasks.playing.dream", [TEXTWORLD])[1]
    version = cache_key._version
    monkeypatch.setattr(cache_key, "_version", lambda name: "0.0" if name == package else version(name))
    assert (code_and_packages("tasks.playing.dream", [TEXTWORLD])[1] != before) == touched
    assert not {"prefect", "mlflow", "boto3", "lancedb"} & before.keys()


@pytest.mark.parametrize("changed", [{"device": "cuda"}, {"matmul": "float16"}])
def test_another_kind_of_device_or_precision_counts_where_networks_compute(changed, monkeypatch):
    train, judge = key(), key(module="tasks.judging.judge")
    settings = device.number_settings()
    monkeypatch.setattr(cache_key, "number_settings", lambda: settings | changed)
    assert key() != train
    assert key(module="tasks.judging.judge") == judge


def test_a_new_field_at_its_default_changes_no_digest_and_another_default_does():
    class NewRecipe(RlRecipe):
        entropy_bonus: float = 0.0

    recorded = digests.recorded_defaults()["RlRecipe"]
    digests.recorded_defaults()["NewRecipe"] = recorded
    try:
        assert digest_of(NewRecipe()) == digest_of(RlRecipe())
        assert digest_of(NewRecipe(entropy_bonus=0.1)) != digest_of(RlRecipe())
        digests.recorded_defaults()["NewRecipe"] = recorded | {"group_size": 16}
        assert digest_of(NewRecipe()) != digest_of(RlRecipe()), "the default is 8 now, and was 16 when it was recorded"
    finally:
        del digests.recorded_defaults()["NewRecipe"]


def test_every_default_is_recorded():
    assert digests.unrecorded() == {}, "python -m schemas.recipes.digests"


def test_an_input_without_a_digest_is_an_error_and_not_a_silent_miss():
    @versioned_task
    def add(numbers: object) -> int:
        return 1

    with pytest.raises(DreamGymError, match="was given a set, which has no digest"):
        add({1, 2})


def test_references_survive_as_json_and_are_all_found():
    made = {"policy": MODEL, "several": [MODEL, {"deep": MODEL}], "count": 3}
    assert restored(plain(made)) == made
    assert list(references_in(made)) == [MODEL] * 3


def test_real_episodes_are_not_played_anew_because_the_experience_model_is_fitted_otherwise():
    recipe = Recipe(name="a")
    longer = recipe.model_copy(update={"experience": ExperienceRecipe(judge=JudgeRecipe(num_votes=3))})
    assert longer.real_play == recipe.real_play
    assert longer.play != recipe.play
    otherwise = recipe.model_copy(update={"policy": PolicyRecipe(history_length=5)})
    assert otherwise.real_play != recipe.real_play
