"""How a flow is declared: nothing of it is persisted, printed or retried, and its form survives pickling.

``FLOW.serve()`` may send a flow to its runs as a pickled function without its module. Annotations that are
text could not be read there, so they are resolved where the flow is declared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, get_type_hints

import prefect

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def flow(name: str, **hooks: Any) -> Callable[[Callable[P, R]], prefect.Flow[P, R]]:
    """Declare a flow of this project.

    Parameters
    ----------
    name : str
        As Prefect shows it.
    **hooks
        Those of :func:`prefect.flow`, such as ``on_cancellation``.

    Returns
    -------
    callable
        A decorator that makes a Prefect flow of a function.
    """

    def declared(function: Callable[P, R]) -> prefect.Flow[P, R]:
        function.__annotations__ = get_type_hints(function, include_extras=True)
        return prefect.flow(name=name, persist_result=False, log_prints=False, retries=0, **hooks)(function)

    return declared
