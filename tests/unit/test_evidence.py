from flows.evidence import families_markdown, fidelity_markdown, markdown


def run(seed: int, start: float, dream: float, **more) -> dict:
    policy = {"real_success": dream, "dream_success": dream, "real_interactions": 1234}
    return {
        "variant": "full",
        "seed": seed,
        "start": {"real_success": start},
        "dream": policy,
        "gain": {"mean": dream - start, "low": 0.01, "high": 0.5},
        "outcome_agreement": 1.0,
        "state_agreement": 0.75,
        "fidelity": {"state_exact": 0.9, "done_recall": 0.5, "unparsable": 0.0},
        "seconds": 60.0,
        "training_seconds": 20.0,
        "families": {"f": {"num_tasks": 8, "baseline": start, "candidate": dream}},
        **more,
    }


def test_the_table_shows_each_run_and_their_mean_by_hand():
    real_only = {"real_success": 0.8, "real_interactions": 9000, "training_seconds": 1500.0}
    table = markdown([run(0, 0.0, 0.9, real_only=real_only), run(1, 0.5, 0.8, real_only=real_only)]).splitlines()
    assert table[2].split(" | ")[2:5] == ["0.0", "90.0", "+90.0 (+1.0 to +50.0)"]
    assert "refused by the gate" in table[2]
    assert "80.0 (9,000 steps) | 20 | 1,500 | 60 |" in table[3]
    assert table[4].split(" | ")[1:5] == ["mean", "25.0", "85.0", "+60.0 (-321.2 to +441.2)"]


def test_a_single_run_has_no_mean():
    assert len(markdown([run(0, 0.5, 0.9)]).splitlines()) == 3


def test_families_are_the_mean_of_the_runs():
    table = families_markdown([run(0, 0.0, 0.9), run(1, 0.5, 0.8)]).splitlines()
    assert table[2:] == ["| full | f | 8 | 25.0 | 85.0 | +60.0 |"]


def test_what_had_no_case_to_be_measured_on_is_left_out():
    table = fidelity_markdown([run(0, 0.0, 0.9)]).splitlines()
    assert table[2] == "| full | 0 | 90.0 |  |  |  | 50.0 |  | 0.0 | 75.0 | 100.0 |"
