"""Formats of policies by the template that a recipe names."""

from models.text.characters import CHARACTERS_PER_TOKEN, Characters
from models.text.policies.chat_policy import ChatPolicy
from models.text.policies.messages_policy import MessagesPolicy
from models.text.policies.plain_policy import PlainPolicy
from models.text.policies.policy_format import PolicyFormat
from models.text.prompts import PromptFormat
from schemas.errors import InputError
from schemas.recipes.policy import PolicyRecipe


def open_policy_format(format: PromptFormat, recipe: PolicyRecipe) -> PolicyFormat:
    """Return what a policy reads and writes.

    Raises:
        InputError: the model's tokenizer cannot be used with the recipe's template, or its prompt lacks a field.
    """
    kinds = {"chat": ChatPolicy, "messages": MessagesPolicy, "plain": PlainPolicy}
    return kinds[recipe.template](format, recipe)


def open_endpoint_format(recipe: PolicyRecipe) -> PolicyFormat:
    """Return what a policy at an endpoint reads and writes, in characters; its prompts have four for each token.

    Raises:
        InputError: the recipe has no prompts for chat models.
    """
    if recipe.template != "chat":
        raise InputError('a policy at an endpoint needs policy.template = "chat"')
    characters = recipe.prompt_budget * CHARACTERS_PER_TOKEN
    return ChatPolicy(Characters(), recipe.model_copy(update={"max_prompt_tokens": characters}))
