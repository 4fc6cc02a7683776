"""Formats of experience models by the template that a recipe names."""

from models.experience.chat_experience import ChatExperience
from models.experience.experience_format import ExperienceFormat
from models.experience.plain_experience import PlainExperience
from models.text.prompts import PromptFormat
from schemas.recipes.networks import ExperienceRecipe


def open_experience_format(format: PromptFormat, recipe: ExperienceRecipe) -> ExperienceFormat:
    """Return what an experience model reads and writes.

    Raises:
        InputError: the model's tokenizer cannot be used with the recipe's template.
    """
    return ChatExperience(format, recipe) if recipe.template == "chat" else PlainExperience(format)
