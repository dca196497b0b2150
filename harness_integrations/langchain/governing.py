"""``govern``: every model of a chain under one budget, or a list of what cannot be reached."""

from typing import Any, TypeVar

from langchain_core.embeddings import Embeddings

from harness_core.calls.ambient import trace_for
from harness_core.calls.cache import ResponseCache
from harness_core.calls.governor import Governor
from harness_core.calls.trace import Trace
from harness_integrations.langchain.embeddings import GovernedEmbeddings
from harness_integrations.langchain.models import GovernedChatModel
from harness_integrations.langchain.reaching import Reach

R = TypeVar("R")


def _embeddings(
    bound: Embeddings, *, response_cache: ResponseCache | None = None, **budget: Any
) -> GovernedEmbeddings:
    return GovernedEmbeddings(bound, **budget)  # a cache of replies keeps no vectors


def govern(
    runnable: R,
    *,
    trace: Trace | None = None,
    governor: Governor | None = None,
    response_cache: ResponseCache | None = None,
    strict: bool = True,
) -> R:
    """The runnable with every chat model in it governed.

    That is in bindings, sequences, maps, branches, fallbacks, retries, alternatives, and in the
    fields of retrievers, compressors, tools and chains. The runnable given stays as it is. With
    neither ``trace`` nor ``governor`` the budget is that of the ``governed_run`` around each call.
    ``strict=False`` warns of what cannot be reached and notes it in the trace.

    Raises:
        UngovernedError: something in it can send requests that no limit would see.
    """
    known = trace_for(trace, governor)
    given = {"trace": trace, "governor": governor, "response_cache": response_cache}
    reach = Reach(given, model=GovernedChatModel, embeddings=_embeddings)
    governed = reach.govern(runnable, strict=strict)
    if reach.found and known is not None:
        known.note("ungoverned", found=list(reach.found))
    return governed
