"""The processes beside the server: one that ends is noticed, whoever collects it first."""

from __future__ import annotations

import threading

import pytest
import uvicorn

from qlog_assets.errors import QlogError
from qlog_assets.ui.serving import Children, Server


@pytest.fixture
def children() -> Children:
    """One child that ends by itself."""
    children = Children()
    children.start("stand-in", "this")  # `python -m this` prints a poem and ends
    return children


async def nothing(scope: object, receive: object, send: object) -> None:
    raise AssertionError("no request is sent")


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_child_collected_before_it_is_watched_still_ends_the_server(children: Children) -> None:
    """`qlog ui` ended with a traceback of its watching thread when the main thread collected a child first."""
    children.end()
    server = Server(uvicorn.Config(nothing))
    with children.watched(server):
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and thread.name.endswith("(watch)"):
                thread.join()
    assert server.should_exit
    with pytest.raises(QlogError, match="stand-in ended by itself"):
        children.check()
