"""A dispatcher: an agent with two tools, its model made by a function. Knows no harness."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool


@tool
def timetable(ship: str) -> str:
    """When a ship leaves."""
    return {"Dunlin": "08:15 and 17:40", "Heron": "hourly"}.get(ship, "not listed")


@tool
def seats_left(ship: str, time: str) -> int:
    """How many seats of a departure are free."""
    return 12 if (ship, time) == ("Dunlin", "17:40") else 0


def make_model() -> Any:
    """The model of the live app."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model="gpt-4o-mini", temperature=0)


def ask(question: str) -> list[str]:
    """The texts of a conversation with the dispatcher."""
    tools = [timetable, seats_left]
    agent: Any = create_agent(make_model(), tools, system_prompt="You dispatch ferries.")
    state = agent.invoke({"messages": [("human", question)]})
    return [str(message.text) for message in state["messages"]]
