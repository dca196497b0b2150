"""Every example runs as it stands, warns of nothing, and says what its page promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
SAYS = {
    "langchain_agent": ["Evidence  ['warranty', 'batteries']", "3: chat, stuff.answer, chat"],
    "langchain_graph": ["Requests 6 of 6", "NOT_IN_DOCUMENT, stopped by calls"],
    "langchain_lcel": ["Answer  Bob keeps two dogs and a cat.", "Pieces  True"],
    "langchain_replay": ["Live      bonjour", "2 tests passed, no socket opened"],
    "langchain_retrieval_chain": ["Rests on  bridge, page 3", "calls: partial=True"],
    "llama_index_agent": ["The manual says: Two years", "['chat', 'stuff.answer', 'chat']"],
    "llama_index_pdf_quotes": ["5 requests over 4 nodes", "quotations, all there: True"],
    "llama_index_replay": ["Live      It was built in 1884.", "2 tests passed, no socket opened"],
    "llama_index_subquestion": ["She carries 61 and 48.", "Refused   calls, after 1 request"],
    "llama_index_synthesizer": ["('bridge', 0, 48)", "'In', ' 1884', ' [chunk 1].'"],
    "serve_demo": ["cites SRC:0001 /report.docx, SRC:0002 /memo.md", "Identical   True"],
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs_and_says_what_it_should(
    example: str, tmp_path: Path
) -> None:  # C4, langchain 48
    # C4, langchain 48
    done = subprocess.run(
        [sys.executable, "-W", "error", ROOT / "examples" / f"{example}.py"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT / 'core'}{os.pathsep}{ROOT}",
            "TMPDIR": str(tmp_path),
        },
    )
    assert done.returncode == 0, done.stderr
    for line in SAYS.get(example, ()):
        assert line in done.stdout
