"""Short commands, and the processes that play and dream, begin without packages that they do not use."""

import subprocess
import sys

import pytest

_SERVICES = {"mlflow", "prefect", "lancedb", "boto3"}


@pytest.mark.parametrize(
    ("module", "unused"),
    [
        ("tasks.playing.play_shards", _SERVICES),
        ("tasks.playing.dream", _SERVICES),
        ("flows.planning.check_recipe", _SERVICES),
        ("flows.runs.list_runs", _SERVICES | {"torch", "transformers"}),
    ],
)
def test_what_is_not_used_is_not_imported(module, unused):
    program = f"import sys, {module}; print(sorted({unused} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
