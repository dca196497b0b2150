"""A governed reader dropped into an index that is there already.

``as_query_engine`` is given ``llm=`` as well: LlamaIndex looks for its default LLM otherwise, and
asks for an OpenAI key, although the synthesizer has an LLM of its own.
"""

from typing import Any

from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback

from harness_integrations.llama_index import Governor, ReaderSynthesizer, Trace

NOTES = [
    Document(text="The old bridge was built in 1884 of local stone.", id_="bridge"),
    Document(text="The bridge carries one lane of cars and a tram.", id_="traffic"),
]


class HouseLLM(CustomLLM):
    """Stands for your LLM; it has the name of one, so that it has a price."""

    model: str = "gpt-4o-mini"
    max_tokens: int | None = None

    @property
    def metadata(self) -> LLMMetadata:
        """Its window, its cap, its name."""
        return LLMMetadata(
            context_window=128_000, num_output=self.max_tokens or -1, model_name=self.model
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer."""
        return CompletionResponse(text="In 1884 [chunk 1].")

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """Answer word by word."""
        for word in ("In ", "1884 ", "[chunk 1]."):
            yield CompletionResponse(text=word, delta=word)


def main() -> None:
    """Ask the index, whole and streamed, under one budget."""
    llm, trace = HouseLLM(), Trace(Governor(max_cost_usd=0.05))
    index = VectorStoreIndex.from_documents(NOTES, embed_model=MockEmbedding(embed_dim=8))
    reader = ReaderSynthesizer.from_defaults("stuff", llm, spec={"cite": True}, trace=trace)
    engine = index.as_query_engine(response_synthesizer=reader, llm=llm)
    response: Any = engine.query("When was the bridge built?")
    print(f"Answer    {response}")
    places = sorted((one.document_id, one.start, one.end) for one in response.citations)
    print(f"Rests on  {places}")
    print(f"Partial   {response.partial}, metadata {response.metadata['harness']['reader']}")
    streaming = ReaderSynthesizer.from_defaults("stuff", llm, streaming=True, trace=trace)
    streamed: Any = index.as_query_engine(response_synthesizer=streaming, llm=llm).query("When?")
    print(f"Pieces    {list(streamed.response_gen)}")
    print(f"Requests  {trace.calls}, spent under 5 cents: {trace.spent_usd < 0.05}")


if __name__ == "__main__":
    main()
