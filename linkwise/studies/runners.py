"""Executors of chunks: this process, processes on this machine, a Dask cluster; with a bounded number in flight."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import platform
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from typing import TYPE_CHECKING, Any

import numpy as np

from ..display import amount
from .errors import StudyError, library

if TYPE_CHECKING:
    from .stores import Chunk

PER_THREAD = 2  # chunks in flight per thread of a worker: one that is computed, one that waits
BEGINNING = 40  # letters


def this_process() -> str:
    """An identifier of this process, unique on this machine and elsewhere."""
    return f"{platform.node()}:{os.getpid()}"


class Here(Executor):
    """Computes at once, in this process, with its threads."""

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(*arguments, **options))
        except Exception as error:
            done.set_exception(error)
        return done


def chunks_done(
    client: Any, recipe: Any, chunks: Sequence[Chunk], cases: int, progress: bool | None, in_flight: int | None
) -> Iterator[tuple[Chunk, dict[str, np.ndarray]]]:
    """Yield each chunk as it is computed, in any order; at most ``in_flight`` chunks are computed or wait to be
    consumed."""
    from .study import computed

    repeated: set[Any] = set()  # categories and beginnings of warnings: numbers in them differ
    waiting = iter(chunks)
    under_way: dict[Future[Any], Chunk] = {}
    done = cases - sum(chunk.stop - chunk.start for chunk in chunks)
    with _executor(client) as (executor, width), amount("study", cases, "cases", progress, done, 0) as bar:
        try:
            while True:
                free = (in_flight or width()) - len(under_way)
                for chunk in itertools.islice(waiting, max(0, free)):
                    with _naming(chunk):
                        work = executor.submit(computed, recipe, chunk.start, chunk.stop - chunk.start, this_process())
                    under_way[work] = chunk
                if not under_way:
                    return
                for work in wait(under_way, return_when=FIRST_COMPLETED).done:
                    chunk = under_way.pop(work)
                    with _naming(chunk):
                        arrays, caught = work.result()
                    del work  # whose result would stay
                    for category, text in caught:
                        if (category, text[:BEGINNING]) not in repeated:
                            repeated.add((category, text[:BEGINNING]))
                            message = f"cases {chunk.start} to {chunk.stop - 1}: {text}"
                            warnings.warn(message, category, stacklevel=4)
                    yield chunk, arrays
                    done += chunk.stop - chunk.start
                    bar.reach(done)
        finally:
            for work in under_way:
                work.cancel()


@contextlib.contextmanager
def _naming(chunk: Chunk) -> Iterator[None]:
    """Raise ``StudyError`` that names the chunk where its processes die again and again."""
    try:
        yield
    except Exception as error:
        if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":
            raise StudyError(
                f"cases {chunk.start} to {chunk.stop - 1}: the processes that computed them died. If memory is short, "
                "give a smaller chunk; what is stored stays, and the study goes on when run again"
            ) from error
        raise


@contextlib.contextmanager
def _executor(client: Any) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """The executor, and a function that returns how many chunks it takes at a time, since clusters grow."""
    if client is None:
        yield Here(), lambda: 1
    elif isinstance(client, bool):
        raise StudyError("client is a client of Dask, an address, a number of processes or an Executor")
    elif isinstance(client, int):
        if client < 1:
            raise StudyError(f"the number of processes must be positive, not {client}")
        with ProcessPoolExecutor(client, multiprocessing.get_context("spawn"), _end_with_parent) as pool:
            yield pool, lambda: PER_THREAD * client
    elif isinstance(client, Executor):
        yield client, lambda: PER_THREAD * (getattr(client, "_max_workers", None) or os.cpu_count() or 1)
    elif isinstance(client, str):
        distributed = library("distributed", "a cluster")
        try:
            connected = distributed.Client(client, timeout="10s")
        except (OSError, ValueError) as error:
            raise StudyError(f"there is no Dask scheduler at {client!r}: {error}") from None
        with connected:
            yield _dask(connected)
    elif hasattr(client, "get_executor") and hasattr(client, "scheduler_info"):
        yield _dask(client)
    else:
        raise StudyError(f"{client!r} is no client of Dask, address, number of processes or Executor")


def _end_with_parent() -> None:
    """End this worker when its parent is killed, instead of waiting for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _dask(client: Any) -> tuple[Executor, Callable[[], int]]:
    """A cluster; the tasks of a lost worker are computed by another."""
    return client.get_executor(pure=False), lambda: PER_THREAD * max(1, sum(client.nthreads().values()))
