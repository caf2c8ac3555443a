"""linkwise cache: compiled code on disk, shown and cleared."""

from __future__ import annotations

import dataclasses

import click

import linkwise as lw

from .screen import Answer, shown, table
from .signatures import command

UNITS = ("bytes", "kB", "MB", "GB", "TB")


@command("Compiled code on disk: how much, and clear it.", cls=click.Group, invoke_without_command=True)
def cache(answer: Answer) -> None:
    """Where compiled code is kept between runs, how many programs there are, their size and its limit.

    Beyond the limit, what was not used for longest is deleted. The environment variables LINKWISE_CACHE_DIR and
    LINKWISE_CACHE_LIMIT (in bytes) set another place and another limit.

    \b
    linkwise cache
    linkwise cache clear --yes
    """
    if click.get_current_context().invoked_subcommand is not None:
        return
    info = lw.codegen.cache.info()
    rows = [
        ("place", shown(info.directory)),
        ("programs", str(info.files)),
        ("size", size_text(info.size)),
        ("limit", size_text(info.limit)),
    ]
    answer.show({**dataclasses.asdict(info), "directory": str(info.directory)}, table(None, rows))


@cache.add_command
@command("Delete all of it.")
def clear(yes: bool = False) -> None:
    """Delete all compiled code on disk; programs that run keep theirs.

    yes   do not ask

    \b
    linkwise cache clear --yes
    """
    info = lw.codegen.cache.info()
    amount = f"{info.files} program{'s' * (info.files != 1)}, {size_text(info.size)}"
    if not yes:
        try:
            agreed = click.confirm(f"delete {amount} in {shown(info.directory)}?", err=True)
        except click.Abort:
            raise click.UsageError("nobody answers whether to delete the compiled code: add --yes") from None
        if not agreed:
            click.echo("nothing deleted")
            return
    lw.codegen.cache.clear()
    click.echo(f"deleted {amount}")


def size_text(size: float) -> str:
    """Bytes in a unit that leaves at most three digits before the point."""
    power = 0
    while size >= 999.5 and power < len(UNITS) - 1:
        size, power = size / 1000.0, power + 1
    return f"{size:.3g} {UNITS[power]}"
