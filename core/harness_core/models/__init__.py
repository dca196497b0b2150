"""What is known about models: limits, prices, token counts, and the room in a window."""

from harness_core.models.budgets import Budget, budget
from harness_core.models.prices import PICO, bound, estimate_cost, price, to_pico, usd
from harness_core.models.registry import (
    ModelInfo,
    list_models,
    model_info,
    register_model,
    unregister_model,
)
from harness_core.models.tokenizers import (
    count_many,
    count_tokens,
    current_tokenizer,
    provenance,
    set_tokenizer,
    truncate_tokens,
    upper_bytes,
)

__all__ = [
    "PICO",
    "Budget",
    "ModelInfo",
    "bound",
    "budget",
    "count_many",
    "count_tokens",
    "current_tokenizer",
    "estimate_cost",
    "list_models",
    "model_info",
    "price",
    "provenance",
    "register_model",
    "set_tokenizer",
    "to_pico",
    "truncate_tokens",
    "unregister_model",
    "upper_bytes",
    "usd",
]
