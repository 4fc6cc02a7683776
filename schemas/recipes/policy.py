"""The policy of a recipe: what it is shown, what it writes, and how much of either."""

from typing import Literal, Self

from pydantic import Field, model_validator

from schemas.recipes.section import Section

_LEAST_PROMPT = 64
"""Tokens that a prompt needs at least."""
_TAG_TOKENS = 32
"""Tokens that the tags around thought and action may take."""


class PolicyRecipe(Section):
    """Prompts and answers of the policy, and their limits."""

    template: Literal["plain", "chat", "messages"] = "plain"
    """plain: our own markers around task, history and state, for small networks made of logs. chat: the model's own chat
    template around the prompt of an agent, for instruct models. messages: the messages that an agent loop sends, in the
    model's own chat template."""
    prompt: str = ""
    """Text of the agent's prompt with the fields $task, $num_steps, $history and $state, for template = "chat". Empty: the
    prompt of models/text/policies/agent_prompt.py."""
    think: Literal["off", "short", "free"] = "off"
    """Let the policy write a thought before each action, as <think>..</think><action>..</action>: of a sentence or two
    (short), or of any length that max_thought_tokens allows (free). It needs template = "chat"."""
    remember_episode: bool = False
    """Show the policy the whole episode so far; else the task, its last actions and the present state, which here
    includes what was seen before."""
    history_length: int = Field(default=2, ge=0)
    """Number of last turns shown to a policy that does not remember the episode: their actions, in a chat their states,
    too."""
    max_prompt_tokens: int | None = Field(default=None, ge=_LEAST_PROMPT)
    """Tokens of a prompt; None: what max_episode_tokens leaves beside an answer. A longer one loses its oldest history
    first, then the middle of its state, which is marked."""
    max_thought_tokens: int = Field(default=256, ge=1)
    """Tokens of a thought."""
    max_action_tokens: int = Field(default=24, ge=1)
    """Tokens of an action, its end included. A longer one is cut there; in a chat it is refused."""
    max_episode_tokens: int = Field(default=4_096, ge=64)
    """Tokens of a stream: of a turn's prompt and answer, or of the whole episode if the policy remembers it. An episode
    that needs more has no outcome."""
    num_slots: int = Field(default=128, ge=1)
    """Episodes that are played at once."""

    @property
    def max_answer_tokens(self) -> int:
        """Tokens that a policy may write in a turn."""
        return self.max_action_tokens + (self.max_thought_tokens + _TAG_TOKENS if self.think != "off" else 0)

    @property
    def prompt_budget(self) -> int:
        """Tokens that a prompt may have."""
        return self.max_prompt_tokens or self.max_episode_tokens - self.max_answer_tokens

    @model_validator(mode="after")
    def _a_turn_fits_into_its_stream(self) -> Self:
        needed = (self.max_prompt_tokens or _LEAST_PROMPT) + self.max_answer_tokens
        if needed > self.max_episode_tokens:
            raise ValueError(
                f"a prompt and its answer may take {needed} tokens, and an episode has {self.max_episode_tokens}: raise "
                "policy.max_episode_tokens, or lower policy.max_prompt_tokens"
            )
        return self

    @model_validator(mode="after")
    def _only_a_chat_thinks(self) -> Self:
        if self.template != "chat" and (self.think != "off" or self.prompt):
            raise ValueError('policy.think and policy.prompt need policy.template = "chat"')
        if self.template != "plain" and self.remember_episode:
            raise ValueError(
                'policy.remember_episode needs policy.template = "plain": a chat shows its last policy.history_length turns, '
                "and messages are what an agent loop sends"
            )
        return self
