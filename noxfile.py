"""The supported range of the frameworks: the lowest and the newest version of each.

``pip install nox && nox`` runs all; it is not part of the ordinary test run.
"""

import nox

nox.options.default_venv_backend = "venv"


@nox.session(python="3.11")
@nox.parametrize("version", ["==1.8.0", ">=1.8,<2"], ids=["lowest", "newest"])
def langchain(session: nox.Session, version: str) -> None:
    """The LangChain adapter on the lowest and the newest langchain-core."""
    session.install(
        ".[langchain,langchain-agents,documents,openai,test]", f"langchain-core{version}"
    )
    session.run("pip", "list", "--format=freeze")
    session.run("pytest", "tests/langchain", "tests/shared")
    session.run("pytest", "-c", "tests/standard/pytest.ini", "--rootdir", ".", "tests/standard")


@nox.session(python="3.11")
@nox.parametrize("version", ["==0.14.16", ">=0.14.16,<0.15"], ids=["lowest", "newest"])
def llama_index(session: nox.Session, version: str) -> None:
    """The LlamaIndex adapter on the lowest and the newest llama-index-core."""
    session.install(".[llama-index,documents,openai,test]", f"llama-index-core{version}")
    session.run("pip", "list", "--format=freeze")
    session.run("pytest", "tests/llama_index", "tests/shared")
