"""Names of a run's stages in plain words, as its display shows them."""

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
    "ingest": "logs",
    "annotate": "reasoning traces",
    "recall": "earlier real episodes",
    "start policy": "clone start policy",
    "experience model": "fit experience model",
    "fidelity": "one-step fidelity",
    "train dream": "train policy",
    "real rollouts": "real episodes",
    "train real": "train policy",
    "refit": "episodes to refit on",
}
"""Stages whose name is not plain by itself."""
