"""Pages and their parts: charts are safe and repeatable, sentences are right, episodes show what changed."""

import re
import shlex
from itertools import pairwise

import pytest
from typer.main import get_command

from flows.command_line import app
from flows.reports.compare_verdict import verdicts
from flows.reports.nights_verdict import verdict
from infra.pages.charts import DREAM, REAL, Point, Series, forest, histogram, line_chart, long_bars, stacked_bars
from infra.pages.wording import count, duration, points
from models.measurement.intervals import Interval, independent_gain
from schemas.records import AgentTask, Failure, Step, Trajectory, Turn
from tasks.judging.replayed_samples import pairs_of, replayed_samples
from tasks.judging.report_parts.facts import next_steps
from tasks.judging.report_parts.gain import headline
from tasks.judging.report_parts.timeline import state_changes, timeline
from tasks.judging.report_parts.trust import trust_checks

LINES = [Series("<b>&", [Point(1, 50.0, 40.0, 60.0), Point(2, 70.0)], REAL), Series("$b$", [Point(1, 1.25)], DREAM)]
CHARTS = {
    "forest": lambda: forest("<i>", ["a<script>", "b"], LINES, "success (%)", reference=50),
    "lines": lambda: line_chart("<i>", LINES, "round", "success (%)"),
    "stacked": lambda: stacked_bars("<i>", [LINES[0], LINES[0]], "round", "groups"),
    "bars": lambda: long_bars("<i>", {"a<script>": 1.0}, "time (s)"),
    "histogram": lambda: histogram("<i>", [("<b>", [0.0, 0.1], REAL), ("none", [], DREAM)], "entropy", "tasks"),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_small_safe_and_the_same_each_time(name):
    svg = CHARTS[name]()
    assert svg == CHARTS[name]()
    assert len(svg) < 20_000
    assert svg.startswith('<svg viewBox="0 0 360 ')
    assert 'aria-label="&lt;i&gt;"' in svg
    for foreign in ("http", "<script", "<i>", "<b>", "<style", "#000000", "DejaVu", "<metadata"):
        assert foreign not in svg
    text = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert text, "text stays text"
    assert "var(--" in svg, "the page's style colours it"


def test_no_two_series_differ_by_colour_alone():
    from infra.pages.charts import FOURTH, NEUTRAL, THIRD

    looks = [REAL, DREAM, THIRD, FOURTH, NEUTRAL]
    for part in ("dash", "hatch"):
        assert len({getattr(one, part) for one in looks}) >= len(looks) - 1
    assert len({(one.marker, one.hollow) for one in looks}) == len(looks)


def test_numbers_in_words():
    assert points({"mean": 0.021, "low": -0.004, "high": 0.039}) == "+2.1 points (-0.4 to +3.9)"
    assert [duration(one) for one in (8, 877.6, 3600, 90_000)] == ["8 s", "14 min 38 s", "1 h 0 min", "1 d 1 h"]
    assert [count(one) for one in (12_345, 7_215_531)] == ["12,345", "7.2 million"]


def test_the_difference_on_different_tasks_joins_both_intervals():
    # Newcombe (1998), example a: 56 of 70 against 48 of 80 gives 0.2 with 0.0524 to 0.3339
    gain = independent_gain(Interval(0.8, 0.6918, 0.8769), Interval(0.6, 0.4904, 0.7000))
    assert (gain.mean, gain.low, gain.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-4)


def table(mean: float, low: float, high: float, paired: bool = True) -> dict:
    gain = {"mean": mean, "low": low, "high": high, "num_tasks": 400 if paired else 0, "paired": paired}
    return {
        "runs": ["A", "B"],
        "results": [{"seconds": 100.0}, {"seconds": 130.0}],
        "differences": {"start": [None], "dream": [gain], "champion": [None], "sim_to_real": [None]},
    }


@pytest.mark.parametrize(
    ("compared", "sentence"),
    [
        (
            table(0.021, 0.004, 0.039),
            "B is 2.1 points better than A (0.4 to 3.9) on 400 tasks (after dream training); it cost 1.3x the time.",
        ),
        (
            table(-0.021, -0.039, -0.004),
            "B is 2.1 points worse than A (0.4 to 3.9) on 400 tasks (after dream training); it cost 1.3x the time.",
        ),
        (
            table(0.003, -0.012, 0.018, paired=False),
            "No difference between B and A is shown: +0.3 points (-1.2 to +1.8) on different tasks (after dream "
            "training); it cost 1.3x the time.",
        ),
    ],
)
def test_a_comparison_is_one_sentence(compared, sentence):
    assert verdicts(compared) == [sentence]


def test_runs_without_a_common_policy_are_not_compared():
    compared = {**table(0, 0, 0), "differences": {name: [None] for name in ("start", "dream", "sim_to_real")}}
    assert verdicts(compared) == ["B and A have no evaluated policy in common; it cost 1.3x the time."]


def night(run: str, success: float, promoted: str = "") -> dict:
    policy = {"real_success": success, "interval": [success - 0.02, success + 0.01]}
    return {"run_id": run, "policies": {"dream": policy}, "promoted": promoted}


def test_nights_are_one_sentence():
    assert verdict([night("a", 0.8, "dream"), night("b", 0.85), night("c", 0.9, "dream"), night("d", 0.89)]) == (
        "Real success after dream training went from 80.0% (78.0 to 81.0) to 89.0% (87.0 to 90.0); 2 new champions, the "
        "last from c with 90.0%."
    )
    assert verdict([night("a", 0.8)]) == "Real success after dream training was 80.0% (78.0 to 81.0); no new champion."


def judged(mean: float, low: float, high: float, **more) -> dict:
    gate = {"passed": low > 0, "calibrated": True, "gain": {"mean": mean, "low": low, "high": high}, **more}
    policy = {"real_interactions": 0, "num_tasks": 800}
    return {
        "run_id": "tiny-1",
        "recipe": {"name": "textworld-tiny", "experience": {}, "dream": {"num_rounds": 20}},
        "results": {"start": {"real_success": 0.755}, "dream": {"real_success": 0.755 + mean, **policy}},
        "gate": gate,
        "reached": "real",
        "promoted": "",
    }


def test_the_headline_says_what_was_gained():
    good = headline(judged(0.231, 0.2, 0.262))
    assert good.is_good
    assert good.sentence == (
        "Real success rose from 75.5% to 98.6% by training in the dream: +23.1 points (+20.0 to +26.2) on 800 test "
        "tasks, with 0 real steps of training."
    )
    doubtful = headline(judged(0.01, -0.01, 0.03))
    assert not doubtful.is_good
    assert doubtful.sentence.startswith("No gain is shown: real success went from 75.5% to 76.5%")
    assert headline(judged(-0.1, -0.2, -0.05)).sentence.startswith("Real success fell")
    unfinished = headline({"gate": {}, "results": {}, "reached": "experience"})
    assert unfinished.sentence == "Not judged yet: the run went as far as experience."


@pytest.mark.parametrize(
    "record",
    [
        judged(0.231, 0.2, 0.262),
        judged(0.01, -0.01, 0.03),
        judged(-0.1, -0.2, -0.05),
        judged(0.2, 0.1, 0.3, passed=False, calibrated=False),
        {**judged(0, 0, 0), "gate": {}},
    ],
)
def test_the_next_commands_are_understood(record):
    for step in next_steps(record):
        program, name, *arguments = shlex.split(step.command)
        assert program == "dreamgym"
        vars(get_command(app))["commands"][name].make_context(name, arguments)


def test_trust_is_told_with_the_bounds_of_the_gate():
    thresholds = {"min_outcome_agreement": 0.9, "min_outcome_kappa": 0.4, "max_dream_real_gap": 0.1}
    measured = {
        "outcome_agreement": 0.99,
        "outcome_kappa": 0.3,
        "outcome_kappa_high": 0.35,
        "dream_real_gap": -0.12,
        "state_agreement": 0.93,
    }
    checks = {one.measure: one for one in trust_checks(measured, {"thresholds": thresholds})}
    assert [one.holds for one in checks.values()] == [True, False, False, True]
    assert checks["outcomes agree"].meaning == "Share of dreamt episodes that end for real as they were dreamt."
    assert checks["dream minus real"].bound == "within ±10.0"
    assert "harsher than the real environment by 12.0 points" in checks["dream minus real"].meaning


TASK = AgentTask("t/1", "fry a carrot", "test", "t")


def episode(*states: str, success: bool = True, origin: str = "dream") -> Trajectory:
    last = len(states) - 2
    turns = [
        Turn(
            before,
            f"act {place}",
            Step(after, float(success and place == last), place == last, success and place == last),
        )
        for place, (before, after) in enumerate(pairwise(states))
    ]
    return Trajectory(TASK, origin, turns)


def test_a_state_change_is_shown_word_by_word():
    assert [
        list(one) for one in state_changes("you: here\ncarrot: raw uncut", "you: here\ncarrot: raw diced\nmeal: yes")
    ] == [
        [("del", "carrot: raw uncut")],
        [("ins", "carrot: raw diced")],
        [("ins", "meal: yes")],
    ]
    assert [list(one) for one in state_changes("carrot: raw uncut\nyou: here", "carrot: raw diced\nyou: here")] == [
        [("same", "carrot: raw"), ("del", "uncut"), ("ins", "diced")]
    ]
    assert list(state_changes("same", "same")) == []


def test_nothing_of_a_long_state_is_left_out_in_silence():
    (change,) = state_changes("", " ".join(str(number) for number in range(100)))
    assert "(60 words)" in change[0][1]
    shown = timeline(episode("", "\n".join(map(str, range(20)))))
    assert (len(shown.moments[0].side.changes), shown.moments[0].side.num_left_out) == (8, 12)
    assert timeline(episode(*map(str, range(41)))).num_steps == 40


def test_the_first_disagreement_with_the_real_replay_is_marked():
    dreamt, real = episode("a", "b", "c", "d"), episode("a", "b", "x", "d", origin="real")
    shown = timeline(dreamt, real)
    assert shown.disagrees_at == 2
    assert [one.first_disagreement for one in shown.moments] == [False, True, False]
    assert [one.replay is None for one in shown.moments] == [True, False, True]
    assert timeline(dreamt, episode("a", "b", "c", "d")).disagrees_at == 0


def test_a_dream_that_goes_on_after_the_real_end_disagrees():
    shown = timeline(episode("a", "b", "c", success=False), episode("a", "b"))
    assert (shown.disagrees_at, shown.replay_outcome, shown.outcome) == (1, "success", "failure")
    assert shown.moments[1].replay is None
    assert not shown.moments[1].confirmed


def test_the_most_instructive_dreams_are_kept_with_their_replays():
    same = episode("a", "b", "c")
    lost = episode("a", "b", "c", success=False)
    dreamt = [same, same, same, same, same, lost, same, same, same]
    replays = [[turn.step for turn in one.turns] for one in dreamt]
    replays[3] = [turn.step for turn in lost.turns]
    replays[7] = [Step("other", 0.0, False, False), same.turns[1].step]
    replays[8] = []
    kept = pairs_of(replayed_samples(dreamt, replays))
    assert len(kept) == 6
    assert [(one.success, other.success) for one, other in kept[:3]] == [(True, False), (True, True), (False, False)]
    assert kept[1][1].turns[0].step.state == "other"
    assert all((one.origin, other.origin) == ("dream", "real") for one, other in kept)
    assert replayed_samples([], []) == []


def test_a_broken_replay_says_so():
    broken = Step("", 0.0, True, False, failure=Failure.ENVIRONMENT)
    (_, replay), *_ = pairs_of(replayed_samples([episode("a", "b")], [[broken]]))
    assert timeline(episode("a", "b"), replay).replay_outcome == f"no outcome: {Failure.ENVIRONMENT.value}"
