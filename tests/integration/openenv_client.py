"""OpenEnv's own client, in an environment of its own: play the episodes of standard input and print what was seen.

All episodes are played at once.

in:  {"url": ..., "episodes": [{"reset": {...}, "actions": [...]}, ...]}
out: by episode [[observation, reward, done] of the reset and of each step], then the session's state
"""

import asyncio
import json
import sys

from openenv.core.generic_client import GenericEnvClient  # pyright: ignore[reportMissingImports]


async def play(url: str, episode: dict) -> dict:
    async with GenericEnvClient(base_url=url) as client:
        results = [await client.reset(**episode["reset"])]
        for action in episode["actions"]:
            if not results[-1].done:
                results.append(await client.step({"action": action}))
        seen = [[one.observation, one.reward, one.done] for one in results]
        return {"seen": seen, "state": await client.state()}


async def main() -> None:
    asked = json.load(sys.stdin)
    print(json.dumps(await asyncio.gather(*(play(asked["url"], one) for one in asked["episodes"]))))


asyncio.run(main())
