"""Play an ALFWorld game and print what is seen: with our caches, or with TextWorld unpatched."""

import random
import sys

from infra.environments.alfworld import game
from infra.environments.alfworld.files import GameFiles

if __name__ == "__main__":
    name, how = sys.argv[1:]
    if how == "anew":
        game.patch_caches = lambda: None
    playing, rng = game.AlfworldGame(), random.Random(0)
    seen = playing.reset(GameFiles("valid_seen").folder / name)
    for _ in range(20):
        print(seen.said, seen.admissible, seen.expert, seen.outcome)
        seen = playing.step(seen.expert if rng.random() < 0.6 else rng.choice(seen.admissible))
