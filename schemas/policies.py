"""The policies that a cycle evaluates, in the order in which people read them, and what tables call them."""

POLICY_LABELS = {
    "start": "starting policy",
    "dream": "after dream-only RL",
    "champion": "champion until then",
    "sim_to_real": "after sim-to-real",
}
