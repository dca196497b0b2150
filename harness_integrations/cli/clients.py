"""Which client a command uses: the model that is named, the one that is configured, or none."""

import os

from harness_core import BadSettingError, ExtractiveClient, MissingDepError, OpenAIClient
from harness_core.client import Client


def client_for(model: str | None, *, sends: bool = True) -> tuple[Client, str | None]:
    """The client of a ``--model`` option, and what to say about it before it is used.

    ``langchain:provider:model`` is a LangChain chat model; any other name an OpenAI model id. With
    neither an option nor HARNESS_MODEL nor a key the extractive default answers. What sends nothing
    needs no key.

    Raises:
        AuthError: an OpenAI model without a key.
        MissingDepError: a LangChain model without LangChain.
    """
    named = model or os.environ.get("HARNESS_MODEL", "").strip() or None
    if named == "extractive" or (
        named is None and not os.environ.get("OPENAI_API_KEY", "").strip()
    ):
        note = (
            None
            if named
            else "no model is configured: the extractive default copies the sentence that fits "
            "best (set OPENAI_API_KEY or pass --model for a language model)"
        )
        return ExtractiveClient(), note
    if named is not None and named.startswith("langchain:"):
        return _langchain(named.removeprefix("langchain:")), f"model {named}"
    client = OpenAIClient(named)
    if sends:
        client.check()
    return client, f"model {client.model}"


def _langchain(name: str) -> Client:
    if ":" not in name:
        raise BadSettingError(
            f"a LangChain model is langchain:provider:model, not langchain:{name}"
        )
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise MissingDepError(
            "langchain: models need their provider's package and the extra: "
            "pip install 'harness-integrations[langchain-agents]'"
        ) from error
    from harness_integrations.langchain import LangChainClient

    try:
        return LangChainClient(init_chat_model(name))
    except ImportError as error:
        raise MissingDepError(str(error)) from error
    except ValueError as error:
        raise BadSettingError(str(error)) from error
