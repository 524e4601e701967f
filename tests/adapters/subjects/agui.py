"""An agent behind the endpoint for AG-UI; alone, one behind the adapter of AG-UI that Pydantic AI has.

With the broker its cases are played over HTTP, by a client that sends inputs and reads events.
"""

from collections.abc import Mapping
from importlib import import_module

from ..cases import CASES, Alone, Handler
from ..world import World

PACKAGES = ("ag-ui-protocol", "starlette", "sse-starlette", "pydantic-ai-slim")
CANNOT: Mapping[str, str] = {
    "three_one_by_one": "one `resume` answers all that is open",
    "new_input": "an input that leaves an open question out is refused, and the question is named",
    "other_build": "the process that is asked goes on; one of another version runs nothing and sets the run aside",
}
OWN = tuple(CASES)
ALONE: Mapping[str, Alone] = {
    "approve": Alone(("ask", "accept"), "runs once"),
    "reject": Alone(("ask", "decline"), "the model is told why, not who"),
    "edit": Alone(("ask", "edit"), "the edited call runs"),
    "external": Alone(("ask_external", "external"), "it stands for the call, as a message"),
    "three_at_once": Alone(("ask_three", "all_three"), "each runs once"),
    "three_one_by_one": Alone(("ask_three", "one_of_three"), "refused: RUN_ERROR"),
    "duplicate": Alone(("ask", "accept", "accept"), "runs twice"),
    "flipped": Alone(("ask", "accept", "flip"), "both are taken: it ran, and is told not to have"),
    "late": Alone(("ask", "decline", "late"), "it runs, after the run has ended with a no"),
    "unknown_id": Alone(("ask", "unknown"), "refused: RUN_ERROR"),
    "wrong_shape": Alone(("ask", "misfit"), "refused: RUN_ERROR"),
    "race": Alone(("ask", "both"), "runs twice"),
    "killed": Alone(
        ("ask", "killed", "again_after_kill"), "runs again, if somebody keeps the conversation and the answer"
    ),
    "new_input": Alone(("ask", "new_input"), "the model is told that the call was interrupted"),
    "nested": Alone(("nested",), "the outer run ends; the client is not asked"),
    "other_build": Alone(("ask", "other_tools"), "the model is told that there is no such tool"),
    "expired": Alone(("ask", "years_later"), "no deadline: ten years later it runs"),
    "restart_empty": Alone(("ask", "without_state"), "refused: RUN_ERROR"),
    "unserializable": Alone(("unserializable",), "refused: PydanticSerializationError"),
    "changed_arguments": Alone(("ask", "changed"), "runs with the changed ones"),
    "swallowed": Alone(("ask",), "pauses: it is an event, and nothing is raised"),
}


def handler(scenario: str, world: World) -> Handler:
    """Served by `tests.adapters.site`."""
    raise NotImplementedError((scenario, world))


def alone(case: str, phase: str, world: World) -> str:
    """One phase of a case without the broker."""
    word: str = import_module("tests.adapters.subjects.agui_alone").alone(case, phase, world)
    return word
