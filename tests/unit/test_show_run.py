"""Message of a run when it ends."""

import pytest

from flows.reports.show_run import print_results

SUMMARY = {
    "run_id": "tiny-0001",
    "results": {"seconds": 60.0, "overhead_share": 0.1},
    "gate": {},
    "stage_seconds": {},
    "stage_tokens": {},
    "endpoint_costs": {},
}


@pytest.mark.parametrize(
    ("lineage", "versions", "told"),
    [
        ({}, {}, ""),
        ({"dream": {}}, {}, "policy  dreamgym export tiny-0001 ./my-agent"),
        (
            {"dream": {}},
            {"dream": "3"},
            "policy  dreamgym export tiny-0001 ./my-agent    or    models:/dreamgym-policy/3",
        ),
    ],
)
def test_a_run_says_how_its_policy_is_taken_out(lineage, versions, told, capsys):
    print_results({**SUMMARY, "lineage": lineage, "versions": versions})
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("policy")]
    assert lines == ([told] if told else [])
