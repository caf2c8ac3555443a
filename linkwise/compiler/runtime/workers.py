"""Threads that run compiled loops without Python: they sleep in machine code and take tiles of a batch from a counter.

Python threads need the interpreter lock to start, one after the other: for sixteen threads that takes longer than a
batch of an arm.  These threads wait for a semaphore instead.  The caller wakes them, takes tiles itself and waits for
them in one call without the lock.  A late or slow thread takes fewer tiles.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from array import array
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from . import llvm_loader

# 64-bit words of a job; words that threads write are on separate cache lines.
FUNCTION, DATA, OPERANDS, CORE, COUNT, TILE, DIMENSIONS, STEPS, BASES, DONE, MASK = range(11)
NEXT, PENDING, FLAGS, JOB_WORDS = 16, 24, 32, 40
MAX_OPERANDS = 32
SEMAPHORE = 64  # bytes for a sem_t; 32 on Linux
# Bits of the floating-point status by the names of numpy.errstate
STATUS = (
    {"invalid": 1, "divide": 4, "over": 8, "under": 16}
    if platform.machine() in ("x86_64", "AMD64", "i686")
    else {"invalid": 1, "divide": 2, "over": 4, "under": 8}
)

ALL_STATUS = sum(STATUS.values())


def drain(begin: str = "", end: str = "") -> str:
    """LLVM text of ``drain(job)``, which runs tiles of a job until all are taken; instructions before and after."""
    return f"""
declare i64 @llvm.umin.i64(i64, i64)

define internal i64 @word(ptr %job, i64 %k) alwaysinline {{
  %p = getelementptr i64, ptr %job, i64 %k
  %x = load i64, ptr %p
  ret i64 %x
}}

define internal ptr @address(ptr %job, i64 %k) alwaysinline {{
  %p = getelementptr i64, ptr %job, i64 %k
  %x = load ptr, ptr %p
  ret ptr %x
}}

define internal void @drain(ptr %job) {{
entry:
  %args = alloca [{MAX_OPERANDS} x ptr]
  %own = alloca [{2 * MAX_OPERANDS} x i64]
  %function = call ptr @address(ptr %job, i64 {FUNCTION})
  %data = call ptr @address(ptr %job, i64 {DATA})
  %operands = call i64 @word(ptr %job, i64 {OPERANDS})
  %core = call i64 @word(ptr %job, i64 {CORE})
  %count = call i64 @word(ptr %job, i64 {COUNT})
  %size = call i64 @word(ptr %job, i64 {TILE})
  %dimensions = call ptr @address(ptr %job, i64 {DIMENSIONS})
  %steps = call ptr @address(ptr %job, i64 {STEPS})
  %bases = call ptr @address(ptr %job, i64 {BASES})
  %next = getelementptr i64, ptr %job, i64 {NEXT}
{begin}
  br label %copy
copy:
  %c = phi i64 [0, %entry], [%c1, %copy]
  %from = getelementptr i64, ptr %dimensions, i64 %c
  %to = getelementptr i64, ptr %own, i64 %c
  %dimension = load i64, ptr %from
  store i64 %dimension, ptr %to
  %c1 = add i64 %c, 1
  %copied = icmp ugt i64 %c1, %core
  br i1 %copied, label %take, label %copy
take:
  %start = atomicrmw add ptr %next, i64 %size acq_rel
  %more = icmp slt i64 %start, %count
  br i1 %more, label %tile, label %finish
tile:
  %left = sub i64 %count, %start
  %n = call i64 @llvm.umin.i64(i64 %size, i64 %left)
  store i64 %n, ptr %own
  br label %operand
operand:
  %k = phi i64 [0, %tile], [%k1, %operand]
  %base = call ptr @address(ptr %bases, i64 %k)
  %step = call i64 @word(ptr %steps, i64 %k)
  %offset = mul i64 %step, %start
  %here = getelementptr i8, ptr %base, i64 %offset
  %arg = getelementptr ptr, ptr %args, i64 %k
  store ptr %here, ptr %arg
  %k1 = add i64 %k, 1
  %all = icmp eq i64 %k1, %operands
  br i1 %all, label %run, label %operand
run:
  call void %function(ptr %args, ptr %own, ptr %steps, ptr %data)
  br label %take
finish:
{end}
  ret void
}}
"""


_CLEAR_STATUS = f"""  %wide = call i64 @word(ptr %job, i64 {MASK})
  %mask = trunc i64 %wide to i32
  %cleared = call i32 @linkwise_feclearexcept(i32 %mask)"""
_KEEP_STATUS = f"""  %status = call i32 @linkwise_fetestexcept(i32 %mask)
  %bits = zext i32 %status to i64
  %flags = getelementptr i64, ptr %job, i64 {FLAGS}
  %before = atomicrmw or ptr %flags, i64 %bits monotonic"""

_SOURCE = f"""
declare i32 @linkwise_sem_wait(ptr)
declare i32 @linkwise_sem_post(ptr)
declare i32 @linkwise_feclearexcept(i32)
declare i32 @linkwise_fetestexcept(i32)
{drain(_CLEAR_STATUS, _KEEP_STATUS)}
define void @linkwise_worker(ptr %slot) {{
entry:
  %semaphore = call ptr @address(ptr %slot, i64 1)
  br label %sleep
sleep:
  %failed = call i32 @linkwise_sem_wait(ptr %semaphore)
  %again = icmp ne i32 %failed, 0
  br i1 %again, label %sleep, label %awake
awake:
  %job = load atomic ptr, ptr %slot acquire, align 8
  %over = icmp eq ptr %job, null
  br i1 %over, label %end, label %work
work:
  %done = call ptr @address(ptr %job, i64 {DONE})
  call void @drain(ptr %job)
  %pending = getelementptr i64, ptr %job, i64 {PENDING}
  %others = atomicrmw sub ptr %pending, i64 1 acq_rel
  %last = icmp eq i64 %others, 1
  br i1 %last, label %tell, label %sleep
tell:
  %told = call i32 @linkwise_sem_post(ptr %done)
  br label %sleep
end:
  ret void
}}

define void @linkwise_run(ptr %job, ptr %slots, i64 %count) {{
entry:
  %pending = getelementptr i64, ptr %job, i64 {PENDING}
  store atomic i64 %count, ptr %pending release, align 8
  %alone = icmp eq i64 %count, 0
  br i1 %alone, label %own, label %wake
wake:
  %i = phi i64 [0, %entry], [%i1, %wake]
  %slot = call ptr @address(ptr %slots, i64 %i)
  store atomic ptr %job, ptr %slot release, align 8
  %semaphore = call ptr @address(ptr %slot, i64 1)
  %woken = call i32 @linkwise_sem_post(ptr %semaphore)
  %i1 = add i64 %i, 1
  %all = icmp eq i64 %i1, %count
  br i1 %all, label %own, label %wake
own:
  call void @drain(ptr %job)
  %done = call ptr @address(ptr %job, i64 {DONE})
  br i1 %alone, label %end, label %wait
wait:
  %failed = call i32 @linkwise_sem_wait(ptr %done)
  %again = icmp ne i32 %failed, 0
  br i1 %again, label %wait, label %end
end:
  ret void
}}
"""


class _Native(NamedTuple):
    """The native functions; their machine code is never unloaded, as threads sleep in it."""

    worker: Callable[[int], None]
    run: Callable[[int, int, int], None]
    sem_init: Callable[[int, int, int], int]
    sem_post: Callable[[int], int]
    code: tuple[llvm_loader.MachineCode, ...]


@cache
def native() -> _Native | None:
    """The native functions; None if the system lacks such semaphores."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    libm = libc if hasattr(libc, "fetestexcept") else ctypes.CDLL("libm.so.6")
    functions = (libc.sem_wait, libc.sem_post, libm.feclearexcept, libm.fetestexcept)
    names = ("sem_wait", "sem_post", "feclearexcept", "fetestexcept")
    host = {
        f"linkwise_{name}": ctypes.cast(function, ctypes.c_void_p).value or 0
        for name, function in zip(names, functions, strict=True)
    }
    options = llvm_loader.host_options()
    worker, run = (
        llvm_loader.load(_SOURCE, symbol, options, host_functions=host)
        for symbol in ("linkwise_worker", "linkwise_run")
    )
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    libc.sem_init.argtypes, libc.sem_post.argtypes = (pointer, ctypes.c_int, ctypes.c_uint), (pointer,)
    return _Native(
        ctypes.CFUNCTYPE(None, pointer)(worker.address),
        ctypes.CFUNCTYPE(None, pointer, pointer, number)(run.address),
        libc.sem_init,
        libc.sem_post,
        (worker, run),
    )


def _semaphore(functions: _Native) -> array[int]:
    memory = array("q", bytes(SEMAPHORE))
    if functions.sem_init(_address(memory), 0, 0) != 0:
        raise OSError(
            "the system gave no semaphore for another thread: use fewer threads (linkwise.codegen.set_num_threads)"
        )
    return memory


def _address(words: array[int]) -> int:
    return words.buffer_info()[0]


class _Worker:
    """A thread that sleeps until it gets a job, and ends with the job 0."""

    def __init__(self, functions: _Native):
        self.start = _semaphore(functions)
        self.slot = array("q", (0, _address(self.start)))
        self.address = _address(self.slot)
        self._post = functions.sem_post
        # The thread keeps this object alive, and with it the semaphore.
        threading.Thread(target=self._work, args=(functions,), name="linkwise", daemon=True).start()

    def _work(self, functions: _Native) -> None:
        functions.worker(self.address)

    def end(self) -> None:
        self.slot[0] = 0
        self._post(_address(self.start))


class Workers:
    """Up to ``most`` threads besides the caller's; each call takes idle ones."""

    def __init__(self, most: int):
        self.most = most
        self._idle: deque[_Worker] = deque()  # appending and popping are atomic
        self._started = 0
        self._lock = threading.Lock()
        self._ends: deque[array[int]] = deque()  # semaphores of finished calls

    def run(self, job: Job, start: int, stop: int, tile: int, wanted: int) -> None:
        """Process the states from ``start`` to ``stop`` in tiles, with up to ``wanted`` threads besides the
        caller's."""
        functions = native()
        assert functions is not None
        taken = self._get_idle(functions, wanted)
        done = self._ends.pop() if self._ends else _semaphore(functions)
        words = job.words
        words[NEXT], words[COUNT], words[TILE], words[DONE] = start, stop, tile, _address(done)
        slots = array("q", [worker.address for worker in taken])
        try:
            functions.run(job.address, _address(slots), len(taken))
        finally:
            self._idle.extend(taken)
            self._ends.append(done)
            if self.most == 0:
                self.end()

    def _get_idle(self, functions: _Native, wanted: int) -> list[_Worker]:
        taken: list[_Worker] = []
        while len(taken) < wanted:
            try:
                taken.append(self._idle.pop())
            except IndexError:
                with self._lock:
                    if self._started >= self.most:
                        break
                    self._started += 1
                taken.append(_Worker(functions))
        return taken

    def end(self) -> None:
        """Stop the threads after their current work."""
        self.most = 0
        while True:
            try:
                self._idle.pop().end()
            except IndexError:
                return


class Job:
    """A loop of NumPy's generalized ufuncs over a batch.

    loop      addresses of the loop and of its data
    bases     addresses of the operands
    sizes     of the loop's core dimensions
    steps     bytes from state to state of every operand, then core strides
    """

    def __init__(self, loop: tuple[int, int], bases: Sequence[int], sizes: Sequence[int], steps: Sequence[int]):
        if len(bases) > MAX_OPERANDS or len(sizes) >= 2 * MAX_OPERANDS:
            raise ValueError(f"a loop may have {MAX_OPERANDS} operands, not {len(bases)}")
        self.words = words = array("q", [0] * JOB_WORDS + [0, *sizes, *steps, *bases])
        self.address = _address(words)
        words[FUNCTION], words[DATA] = loop
        words[OPERANDS], words[CORE], words[MASK] = len(bases), len(sizes), ALL_STATUS
        words[DIMENSIONS] = self.address + 8 * JOB_WORDS
        words[STEPS] = words[DIMENSIONS] + 8 * (1 + len(sizes))
        words[BASES] = words[STEPS] + 8 * len(steps)

    @property
    def raised(self) -> bool:
        """Whether a floating-point status occurred that numpy.errstate does not ignore."""
        if not self.words[FLAGS]:
            return False
        modes: Mapping[str, object] = np.geterr()
        return any(self.words[FLAGS] & bit and modes[name] != "ignore" for name, bit in STATUS.items())
