"""Networks of a recipe: backbone, fine-tuning, inference engine, experience model."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, field_validator, model_validator

from schemas.recipes.methods import JudgeRecipe
from schemas.recipes.section import Section


class SftRecipe(Section):
    """Supervised fine-tuning."""

    epochs: float = Field(default=2.0, gt=0)
    """Number of passes over the examples."""
    learning_rate: float = Field(default=5e-4, gt=0)
    """Peak learning rate, with linear warm-up and cosine decay."""
    tokens_per_update: int = Field(default=4_096, ge=256)
    """Batch size in tokens; the length of each example is rounded up to a multiple of 32."""


class ScratchRecipe(Section):
    """A small backbone and its tokenizer, trained from scratch on the run's own logs."""

    hidden_size: int = Field(default=128, ge=16)
    """Hidden width; must be a multiple of twice num_heads."""
    num_layers: int = Field(default=4, ge=1)
    """Number of layers."""
    num_heads: int = Field(default=4, ge=1)
    """Number of attention heads; there are half as many key-value heads."""
    vocab_size: int = Field(default=1_024, ge=512)
    """Vocabulary size of its byte-level tokenizer."""
    sft: SftRecipe = SftRecipe(epochs=4, learning_rate=2e-3, tokens_per_update=8_192)
    """Next-token prediction on all transitions of the logs, prompts included."""
    relu_share: float = Field(default=0.0, ge=0, le=1)
    """Stochastic activations (arXiv 2509.22358): share of the negative inputs of an activation that are set to 0 while
    this backbone is trained; later trainings and sampling use SiLU. 0: SiLU always."""

    @model_validator(mode="after")
    def _heads_are_even(self) -> Self:
        if self.hidden_size % (2 * self.num_heads):
            raise ValueError(f"hidden_size {self.hidden_size} is no multiple of twice num_heads, {2 * self.num_heads}")
        return self


class BackboneRecipe(Section):
    """The network that policy and experience model start from."""

    model: str = "textworld-tiny"
    """Name of a shipped backbone, a folder, a GGUF file or a folder with one, "smollm2-135m" (which comes in a Python
    package), or a hub id."""
    revision: str | None = None
    """Commit of a hub model; required for hub models."""
    random_init: bool = False
    """Load architecture and tokenizer only and initialise weights at random, to try a recipe without its weights."""
    scratch: ScratchRecipe | None = None
    """Train a backbone from scratch on the logs instead of loading `model`; false: load it."""
    learn_transitions: bool = False
    """Fit the backbone to the logs' transitions first, like the experience model, so that the policy knows what actions
    do before it learns which to take: implicit world modelling (Early Experience, arXiv 2510.08558)."""

    @field_validator("scratch", mode="before")
    @classmethod
    def _false_is_none(cls, given: Any) -> Any:
        return None if given is False else given

    @model_validator(mode="after")
    def _it_comes_from_one_place(self) -> Self:
        if self.scratch and self.model != BackboneRecipe.model_fields["model"].default:
            raise ValueError(
                f"backbone.scratch makes a network of the logs, and backbone.model names {self.model!r}: leave out one of them, "
                "for example with --set backbone.scratch=false"
            )
        return self


class TrainingRecipe(Section):
    """Settings of all fine-tuning in a run, supervised and reinforcement learning."""

    lora_rank: int = Field(default=0, ge=0)
    """Rank of low-rank adapters on every projection of attention and MLP, trained instead of all weights; 0: train all
    weights. 16 is common for a large model, with higher learning rates."""
    lora_alpha: int = Field(default=32, gt=0)
    """Scale of the adapters: they are multiplied by lora_alpha / lora_rank."""
    tokens_per_batch: int = Field(default=16_000, ge=256)
    """Tokens per micro-batch, counting every stream as long as the longest; gradients are accumulated over an update.
    Fewer tokens need less memory."""
    gradient_checkpointing: bool = False
    """Recompute activations within a block in the backward pass: a third more computation, far less memory."""


class EngineRecipe(Section):
    """The engine that samples the tokens of policy and experience model."""

    name: Literal["auto", "torch", "vllm"] = "torch"
    """torch: in this process. vllm: one server per model, in a separate Python environment created on first use. auto:
    vllm on GPUs where it is installed and there are several, or streams of more than 4,096 tokens; torch otherwise."""
    vllm_dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Data type of vLLM's weights; auto is bfloat16 for a float32 model. The torch engine samples in bfloat16."""
    policy_gpus: tuple[NonNegativeInt, ...] = ()
    """Numbers of the GPUs of the policy's vLLM server, which divide the model among them (tensor parallelism), counted
    among those that the process sees. None: the first."""
    experience_gpus: tuple[NonNegativeInt, ...] = ()
    """GPUs of the experience model's server. Roles that could share a server do so if they have the same GPUs."""
    sleep: bool = False
    """Let vLLM's servers give back their GPU memory while a network is trained. Useful where they use the GPU that trains."""

    @field_validator("policy_gpus", "experience_gpus")
    @classmethod
    def _each_once(cls, gpus: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(gpus)) < len(gpus):
            raise ValueError(f"a GPU holds one part of a model: {list(gpus)} names one twice")
        return gpus


VARIATION_TOKENS = 512
"""Maximum number of tokens of a variation of a task, which the experience model writes."""

NextState = Literal["auto", "changes", "whole"]
"""Form of the next state in an answer of the experience model."""


class ExperienceRecipe(Section):
    """The experience model: what it reads and writes, how it is fitted, and how it is asked."""

    endpoint_model: str = ""
    """Name of a model at the OpenAI-compatible endpoint that predicts the environment without fine-tuning, instead of a
    fine-tuned backbone; on-policy episodes are then only used for retrieval."""
    start_from: Literal["backbone", "last"] = "backbone"
    """backbone: fit on all experience. last: continue from the last run's experience model on what is new."""
    replayed_share: float = Field(default=0.5, ge=0, lt=1)
    """Share of old transitions in the data of a model that is trained further, against forgetting."""
    sft: SftRecipe = SftRecipe(epochs=1.0)
    template: Literal["plain", "chat"] = "plain"
    """plain: our own markers and changed lines, for small networks made of logs. chat: instructions in the model's own chat
    template, for instruct models; a model at an endpoint has the same instructions."""
    next_state: NextState = "auto"
    """Form of the next state in a chat: the lines that change, or the whole state. auto: whole for states that are free
    text, whose lines have no names."""
    with_reasoning: bool = True
    """Predict reasoning before the next state; False is the paper's ablation."""
    history_length: Annotated[int, Field(ge=0)] | Literal["all"] = 1
    """Number of earlier turns in the prompt: their actions, in a chat their states, too."""
    max_prompt_tokens: int = Field(default=4_096, ge=64)
    """Tokens of a prompt. In a chat, a longer one loses its oldest history first, then its farthest demonstrations, then
    the middle of its state, which is marked. A plain one is never shortened: where it leaves no room for an answer, the
    prediction is a failure."""
    demonstration_dropout: float = Field(default=0.0, ge=0, le=1)
    """Share of transitions that are learnt without demonstrations: logs often hold the very answer among them, which a
    model learns to copy."""
    other_tasks_share: float = Field(default=0.0, ge=0, le=1)
    """Share of transitions that are learnt with demonstrations of other tasks only, as those of a new task are."""
    entity_renaming: float = Field(default=0.3, ge=0, le=1)
    """Share of trajectories also shown with entity renaming, so that the model copies names, not memorises them."""
    rare_outcome_copies: int = Field(default=4, ge=1)
    """Copies per pass of each transition that ends an episode."""
    temperature: float = Field(default=0.0, ge=0)
    """Sampling temperature of predictions; 0 is greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Nucleus sampling threshold of sampled predictions (votes and retries): only the most likely tokens that together
    reach this probability."""
    enforce_admissible_actions: bool = True
    """Hold dreams to the admissible actions that dreamt states list: an unlisted action is refused without a
    prediction, and a prediction that refuses a listed one is sampled again. False leaves both to the model."""
    judge: JudgeRecipe = JudgeRecipe()
    num_retries: int = Field(default=3, ge=0)
    """Maximum number of times a wrong prediction is sampled again. After that, an unparsable one counts as a failure, and
    one that refuses an action that its state accepts stands."""
    max_new_tokens: int = Field(default=128, ge=16)
    """Maximum length of a prediction in tokens; a run warns if the training data has longer ones."""
    variation_pairs: Literal["random", "nearest"] = "random"
    """Pairs of tasks that teach the same weights to vary tasks: any two of a family, or each with one of the three that
    are most alike, so that a variation changes little and is new."""
    num_on_policy_episodes: int = Field(default=400, ge=0)
    """Real episodes of the starting policy to add to the logs."""
    on_policy_temperatures: tuple[Annotated[float, Field(ge=0)], ...] = Field(default=(1.0, 1.3), min_length=1)
    """Temperatures at which these are sampled: a hot policy shows mistakes that training will try later."""

    @property
    def is_chat(self) -> bool:
        """True if the experience model is instructed, by its chat template or at an endpoint."""
        return self.template == "chat" or bool(self.endpoint_model)

    @property
    def max_stream_tokens(self) -> int:
        """Tokens of a prompt and its answer, be it a prediction or a variation of a task."""
        return self.max_prompt_tokens + max(self.max_new_tokens, VARIATION_TOKENS)

    @property
    def as_fitted(self) -> Self:
        """This section with prediction-only fields at their defaults, so that a change of the judge refits nothing."""
        of_predictions = (
            *("start_from", "temperature", "top_p", "enforce_admissible_actions", "judge", "num_retries"),
            "max_new_tokens",
        )
        return self.model_copy(update={name: type(self).model_fields[name].default for name in of_predictions})
