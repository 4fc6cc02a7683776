"""Formats of policies by the template that a recipe names."""

from models.text.chat_policy import ChatPolicy
from models.text.plain_policy import PlainPolicy
from models.text.policy_format import PolicyFormat
from models.text.prompts import PromptFormat
from schemas.recipes.policy import PolicyRecipe


def open_policy_format(format: PromptFormat, recipe: PolicyRecipe) -> PolicyFormat:
    """Return what a policy reads and writes.

    Raises:
        InputError: the model's tokenizer cannot be used with the recipe's template, or its prompt lacks a field.
    """
    return ChatPolicy(format, recipe) if recipe.template == "chat" else PlainPolicy(format, recipe)
