"""Names of a run's stages in plain words, for its display, tables and report."""

EVALUATION_LABELS = {
    "evaluate start": "evaluate start policy",
    "evaluate dream": "evaluate dream policy",
    "evaluate champion": "evaluate champion",
    "evaluate sim_to_real": "evaluate sim-to-real",
    "evaluate real_only": "evaluate real-only",
    "calibrate": "calibrate",
    "real validation": "validate",
}
"""Evaluations; each is played for real, and most are dreamt, too."""

STAGE_LABELS = {
    **{name: f"{label}, for real" for name, label in EVALUATION_LABELS.items()},
    **{f"{name} dream": f"{label}, in the dream" for name, label in EVALUATION_LABELS.items()},
    "replays": "replay dreams for real",
    "logged actions": "replay logged actions",
    "ingest": "logs",
    "annotate": "reasoning traces",
    "recall": "earlier real episodes",
    "start policy": "clone start policy",
    "experience model": "fit experience model",
    "fidelity": "one-step fidelity",
    "predictions": "predictions and variations",
    "alternatives": "other actions than demonstrated",
    "world model": "learn consequences of actions",
    "preferences": "prefer better logs",
    "train dream": "train policy on dreams",
    "value states": "dream on from forks",
    "task generator": "train task generator",
    "real rollouts": "real episodes",
    "train real": "train policy on real episodes",
    "refit": "episodes to refit on",
    "dream": "dream episodes",
    "rubric": "judge dreams by the rubric",
    "consolidation": "clone demonstrations and wins",
}
"""Stages whose name is not plain by itself."""


def stage_label(name: str) -> str:
    """Return the name of a stage in plain words."""
    return STAGE_LABELS.get(name, name)
