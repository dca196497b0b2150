"""A run whose every text tries to be more than text."""

from typing import Any

from harness_core import Answer, Evidence, Governor, MockClient, Reply, Trace, call

ATTACKS = (
    "<script>window.owned=1</script>",
    "<img src=x onerror=window.owned=1>",
    "</pre></details></main><script>window.owned=1</script>",
    "</style><script>window.owned=1</script><svg onload=window.owned=1>",
    "\"'><iframe srcdoc='<script>parent.owned=1</script>'></iframe>",
    "<a href=\"javascript:window.owned=1\">x</a><base href='//evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<!--<script>window.owned=1//--><![CDATA[<script>window.owned=1</script>]]>",
    "{{constructor.constructor('window.owned=1')()}} &lt;script&gt; \u202egnp.exe \x00\x07\x1b[2J",
    "<details ontoggle=window.owned=1 open><summary>x</summary></details>",
)
EVERYTHING = " ".join(ATTACKS)


def hostile_run() -> tuple[Trace, dict[str, Any]]:
    """The trace, and an answer that rests on it."""
    trace = Trace(
        Governor(max_calls=len(ATTACKS) + 1), owner=EVERYTHING, meta={"source": EVERYTHING}
    )
    trace.run_id = f"run_{ATTACKS[3]}"
    trace.note(EVERYTHING, said=EVERYTHING, fallback=True, source=EVERYTHING)
    for attack in ATTACKS:
        call(MockClient(lambda _m, _p, said=attack: said), attack, trace=trace, label=attack)
    failing = MockClient(lambda _m: Reply(ok=False, error=EVERYTHING, finish_reason=EVERYTHING))
    for _ in range(2):
        call(failing, EVERYTHING, trace=trace, label=EVERYTHING, model=None)
    answer = Answer(
        answer=EVERYTHING,
        reader="skim",
        question=EVERYTHING,
        partial=True,
        notes={"error": EVERYTHING},
        warnings=[("x", EVERYTHING)],
        evidence=[
            Evidence(chunk_id=1, text=attack, section=attack, kind="extracted", page=attack,
                     source_text=f"before {attack} after", verified=False, match=0.5)
            for attack in ATTACKS
        ],
    )  # fmt: skip
    return trace, answer.to_dict()
