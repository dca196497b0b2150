"""Retries inside a framework's provider client, which no limit would see, switched off."""

from typing import Any


def quiet_client(value: Any) -> Any:
    """A provider SDK's client, or a resource of one, that tries once; anything else as it is."""
    if hasattr(value, "with_options") and hasattr(value, "max_retries"):
        return value.with_options(max_retries=0)
    owner = getattr(value, "_client", None)
    if owner is not None and hasattr(owner, "with_options") and hasattr(owner, "max_retries"):
        return type(value)(owner.with_options(max_retries=0))
    return value


def without_retries(model: Any, **also: Any) -> Any:
    """A copy of a pydantic model object whose provider client tries each request once.

    ``also`` are further fields to set where the model has them and leaves them None. The model
    itself, and its connections, stay as they are.
    """
    fields = type(model).model_fields
    changes = {k: v for k, v in also.items() if k in fields and getattr(model, k) is None}
    if "max_retries" in fields:
        changes["max_retries"] = 1 if "google" in type(model).__module__ else 0  # 1 is one attempt
    if not changes:
        return model
    twin = model.model_copy(update=changes)
    state = vars(twin)
    for name in [name for name in state if name not in fields]:
        del state[name]  # clients that are made on first use, from the settings
    for name, value in state.items():
        state[name] = quiet_client(value)
    return twin
