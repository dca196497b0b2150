import subprocess
import sys

import pytest


@pytest.mark.parametrize("room", ["harness_core.models", "harness_core.ranking"])
def test_heavy_packages_wait_for_their_first_use(room: str) -> None:
    heavy = ("numpy", "tiktoken", "genai_prices", "pydantic")
    program = f"import sys, {room}; print([one for one in {heavy} if one in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
