"""Before the first request: what a read will need, and whether it is worth starting.

Never judged by what replies may cost: every request is held to the limits when its turn comes.
"""

from dataclasses import dataclass
from typing import Any

from harness_core.calls.prepare import REASONING_CAP
from harness_core.calls.trace import Trace
from harness_core.client import Client
from harness_core.config import setting
from harness_core.errors import CallCapError, CostCapError, UnpricedModelError
from harness_core.messages import Usage
from harness_core.models.prices import bound, price, usd
from harness_core.models.registry import ModelInfo, model_info
from harness_core.models.tokenizers import count_tokens
from harness_core.ranking.embedders import BATCH, unknown_texts
from harness_core.reading.job import Job
from harness_core.reading.registry import Registered

REQUEST_OVERHEAD = 200
"""Prompt tokens around the excerpts of one request, at the most."""

LIKELY_REPLY = 150
"""Tokens of a reply that nothing is known of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a read will need: requests, tokens, USD. ``expected`` and, at the most, ``worst``.

    USD is None where a model has no price. ``embed_calls`` are part of ``calls``.
    """

    reader: str
    recipe: str | None
    chunks: int
    model: str
    calls: int
    worst_calls: int
    embed_calls: int
    tokens_in: int
    tokens_out: int
    worst_tokens_in: int
    worst_tokens_out: int
    usd: float | None
    worst_usd: float | None

    def __str__(self) -> str:
        expected = _need(self.calls, self.tokens_in, self.tokens_out, self.usd)
        most = _need(self.worst_calls, self.worst_tokens_in, self.worst_tokens_out, self.worst_usd)
        return (
            f"<Estimate> {self.reader} over {self.chunks} chunk(s) with {self.model}\n"
            f"  expected  {expected}\n  at most   {most}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The estimate as JSON data."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _need(calls: int, tokens_in: int, tokens_out: int, cost: float | None) -> str:
    price = "cost unknown" if cost is None else f"${cost:.4f}"
    return f"{calls} request(s), {tokens_in} in / {tokens_out} out tokens, {price}"


def estimated(
    job: Job, reader: Registered, client: Client, *, recipe: str | None = None
) -> Estimate:
    """What reading ``job`` will need; sends nothing.

    Raises:
        BudgetError: the model's window has no room for a question and its answer.
    """
    expected, worst = reader.expected(job), reader.worst(job)
    embeds = _embed_calls(job, reader, client)
    document = job.tokens
    sent = document if reader.reads_all else min(document, _shown(job))
    overhead = REQUEST_OVERHEAD + count_tokens(job.question, job.model)
    infos = [model_info(model) for model in _models(job)]
    caps = [_largest_reply(job, info) for info in infos]
    tokens_in, likely_out = sent + expected * overhead, expected * min(caps[0], LIKELY_REPLY)
    # every reply but the last may go into a later request, once
    worst_in = reader.passes(job) * document + worst * overhead + (worst - 1) * max(caps)
    likely = price(infos[0], Usage(input=tokens_in, output=likely_out))
    bounds = [bound(one, worst_in, worst * cap) for one, cap in zip(infos, caps, strict=True)]
    most = max((one for one in bounds if one is not None), default=None)
    free = client.unpriced_ok and infos[0].input_usd is None
    return Estimate(
        reader=reader.name,
        recipe=recipe,
        chunks=len(job.chunks),
        model=job.model,
        calls=expected + embeds,
        worst_calls=worst + embeds,
        embed_calls=embeds,
        tokens_in=tokens_in,
        tokens_out=likely_out,
        worst_tokens_in=worst_in,
        worst_tokens_out=worst * max(caps),
        usd=0.0 if free else None if likely is None else usd(likely),
        worst_usd=0.0 if free else None if most is None else usd(most),
    )


def _largest_reply(job: Job, info: ModelInfo) -> int:
    """The most tokens that one reply of a model may have, as its cap is sent."""
    spec = job.spec
    cap = max(spec.max_answer_tokens, spec.max_chunk_tokens, spec.max_summary_tokens)
    if info.reasoning:
        cap = max(cap, REASONING_CAP)
    return min(cap, max(info.max_output, 1))


def preflight(job: Job, reader: Registered, client: Client, trace: Trace) -> None:
    """Refuse a read that could not be finished, before its first request; note what is expected.

    Raises:
        CallCapError: more requests than ``max_calls`` leaves.
        UnpricedModelError: a model without a price under a spending limit.
        CostCapError: the limit is spent, or sending every chunk alone would pass it.
    """
    found = estimated(job, reader, client)
    inputs = _input_pico(job, reader)
    trace.note(
        "preflight",
        reader=reader.name,
        chunks=found.chunks,
        model=job.model,
        est_calls=found.calls,
        embed_calls=found.embed_calls,
        worst_calls=found.worst_calls,
        est_input_usd=None if inputs is None else round(usd(inputs), 4),
        est_cost_usd=None if found.worst_usd is None else round(found.worst_usd, 4),
        settings={k: v for k, v in job.settings.items() if _recordable(v)},
    )
    _check_calls(found, trace)
    if not may_cost_nothing(client):
        _check_money(job, reader, client, trace, inputs)


def may_cost_nothing(client: Client) -> bool:
    """Whether a recording or a readable cache may answer, so that prices decide nothing yet."""
    cache = client.cache
    return hasattr(client, "recording") or (cache is not None and cache.read)


def _check_calls(found: Estimate, trace: Trace) -> None:
    most = trace.governor.limits().max_calls
    made = trace.calls - trace.to_take_over()[0]
    if most is None or made + found.calls <= most:
        return
    embeds = f" ({found.embed_calls} of them for embeddings)" if found.embed_calls else ""
    raise CallCapError(
        f"reader {found.reader!r} over {found.chunks} chunks would need about {found.calls} more "
        f"requests{embeds} ({made} already made in this run), above the cap of {most}; use "
        "a larger max_tokens when segmenting (fewer chunks), a top-k reader, or raise max_calls"
    )


def _check_money(
    job: Job, reader: Registered, client: Client, trace: Trace, inputs: int | None
) -> None:
    limits = trace.governor.limits()
    if limits.max_pico is None:
        return
    most = limits.max_cost_usd
    account = trace.ledger.account
    spent = account.spent + account.replayed - trace.to_take_over()[1]
    infos = [model_info(model) for model in _models(job)]
    unpriced = [info.id for info in infos if info.input_usd is None and not client.unpriced_ok]
    if unpriced and not limits.allow_unpriced:
        raise UnpricedModelError(
            f"{unpriced[0]!r} has no registered price, so a read with it cannot be held to the "
            f"${most:g} spending limit; register its prices with register_model(), or allow it "
            "with allow_unpriced=True (HARNESS_ALLOW_UNPRICED=yes)"
        )
    if spent > 0 and spent >= limits.max_pico:
        raise CostCapError(f"the run has already spent its ${most:g} limit; raise max_cost_usd")
    if limits.max_pico == 0 and any((info.input_usd or 0) > 0 for info in infos):
        raise CostCapError("the spending limit is $0 and the model has a price; raise max_cost_usd")
    if inputs is not None and spent + inputs > limits.max_pico:
        raise CostCapError(
            f"sending every chunk to reader {reader.name!r} would cost ${usd(inputs):.4f} before "
            f"any reply, with ${usd(spent):.4f} spent of the ${most:g} limit; use a top-k reader, "
            "a cheaper model, or raise max_cost_usd"
        )


def _input_pico(job: Job, reader: Registered) -> int | None:
    """The price of the chunks that are sent whatever is found, as far as known; None for none."""
    prices = [
        price(model_info(model), Usage(input=tokens, output=0))
        for model, tokens in reader.inputs(job)
    ]
    known = [pico for pico in prices if pico is not None]
    return sum(known) if known else None


def _embed_calls(job: Job, reader: Registered, client: Client) -> int:
    """Embedding requests, counted only where the client posts them to a provider."""
    texts = getattr(reader.reader, "embedding_texts", None)
    if texts is None or not client.provider or not client.can_embed:
        return 0
    if (setting("embedder") or client.embedder or "api") != "api":
        return 0
    unknown = unknown_texts(texts(job), client)
    extra = getattr(reader.reader, "later_embeddings", None)
    return -(-unknown // BATCH) + (int(extra(job)) if extra is not None else 0)


def _models(job: Job) -> list[str]:
    spec = job.spec
    return [m for m in dict.fromkeys((job.model, spec.skim_model, spec.summary_model)) if m]


def _shown(job: Job) -> int:
    ranked = sorted((chunk.tokens for chunk in job.chunks), reverse=True)
    return sum(ranked[: job.spec.top_k])


def _recordable(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, list, tuple, dict))
