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


def test_sim_to_real_has_a_verdict_of_its_own_on_its_own_tasks(capsys):
    def verdict(panel: int, mean: float) -> dict:
        gain = {"mean": mean, "low": mean - 0.05, "high": mean + 0.05}
        judged_on = f"test tasks that no judgement used before (panel {panel})"
        return {"passed": False, "gain": gain, "reasons": ["too little"], "judged_on": judged_on, "over_champion": None}

    gates = {"gate": verdict(0, 0.075), "real_gate": verdict(1, -0.025)}
    print_results({**SUMMARY, **gates, "lineage": {}, "versions": {}})
    lines = capsys.readouterr().out.splitlines()
    begins = lines.index("sim-to-real beside dream training refused: real gain -2.5% (95% -7.5% to +2.5%)")
    assert lines[begins + 2].strip().endswith("(panel 1)")
    assert "gate    refused: real gain +7.5% (95% +2.5% to +12.5%)" in lines
