"""read_ahead: an iterator that another thread reads from, some items before they are used."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Iterator
from typing import Any


def read_ahead(source: Iterator[Any], size: int) -> Iterator[Any]:
    """The items of `source`, at most `size` of them read before they are asked for.

    An error in the source is raised where its item would have come. When the iterator is closed, or
    dropped, the thread ends, and `source` is closed.
    """
    slots, done = threading.Semaphore(size), threading.Event()
    items: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def read() -> None:
        try:
            while True:
                slots.acquire()
                if done.is_set():
                    break
                items.put(("item", next(source)))
        except StopIteration:
            items.put(("end", None))
        except BaseException as error:
            items.put(("error", error))
        finally:
            close = getattr(source, "close", None)
            if close is not None and hasattr(source, "gi_frame"):
                close()

    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(read,), name="read_ahead", daemon=True
    )
    thread.start()
    try:
        while True:
            kind, item = items.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            slots.release()
            yield item
            del item
    finally:
        done.set()
        slots.release()
        thread.join()
