"""linkwise cache: compiled code on disk, shown and cleared."""

from __future__ import annotations

import dataclasses

import click

import linkwise as lw

from .screen import as_json, shown, table

UNITS = ("bytes", "kB", "MB", "GB", "TB")


@click.group(invoke_without_command=True, short_help="Compiled code on disk: how much, and clear it.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document; sizes in bytes.")
@click.pass_context
def cache(context: click.Context, json_wanted: bool) -> None:
    """Where compiled code is kept between runs, how many programs there are, their size and its limit.

    Beyond the limit, what was not used for longest is deleted. The environment variables LINKWISE_CACHE_DIR and
    LINKWISE_CACHE_LIMIT (in bytes) set another place and another limit.

    \b
    linkwise cache
    linkwise cache clear --yes
    """
    if context.invoked_subcommand is not None:
        return
    found = lw.cache.info()
    if json_wanted:
        click.echo(as_json({**dataclasses.asdict(found), "directory": str(found.directory)}))
        return
    rows = [
        ("place", shown(found.directory)),
        ("programs", str(found.files)),
        ("size", size_text(found.size)),
        ("limit", size_text(found.limit)),
    ]
    click.echo("\n".join(table(None, rows)))


@cache.command(short_help="Delete all of it.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def clear(yes: bool) -> None:
    """Delete all compiled code on disk; programs that run keep theirs.

    \b
    linkwise cache clear --yes
    """
    found = lw.cache.info()
    what = f"{found.files} program{'s' * (found.files != 1)}, {size_text(found.size)}"
    if not yes:
        try:
            agreed = click.confirm(f"delete {what} in {shown(found.directory)}?", err=True)
        except click.Abort:
            raise click.UsageError("nobody answers whether to delete the compiled code: add --yes") from None
        if not agreed:
            click.echo("nothing deleted")
            return
    lw.cache.clear()
    click.echo(f"deleted {what}")


def size_text(size: float) -> str:
    """Bytes in a unit that leaves at most three digits before the point."""
    power = 0
    while size >= 999.5 and power < len(UNITS) - 1:
        size, power = size / 1000.0, power + 1
    return f"{size:.3g} {UNITS[power]}"
