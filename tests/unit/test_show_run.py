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


def test_limits_of_predictions_have_a_row_without_a_time_of_their_own(capsys):
    limits = {"dream": {"actions cut after 24 tokens": 2}, "predictions": {"answers longer than 128 tokens": 3}}
    counted = {"stage_seconds": {"dream": 6.0}, "stage_limits": limits}
    print_results({**SUMMARY, **counted, "lineage": {}, "versions": {}})
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in capsys.readouterr().out.splitlines() if "│" in line
    ]
    assert rows == [["dream episodes", "6.0", "", "", "2"], ["predictions and variations", "", "", "", "3"]]
