"""The table of a run, for a terminal and for docs/reliability.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prove.results import Result, Results

__all__ = ["circumstances", "findings", "page_table", "terminal_table"]

_HEAD = ("", "figure", "injected", "lost", "doubled", "stuck", "wrong", "seconds")


def terminal_table(results: Results) -> str:
    """Return the table in columns. What was injected follows below each figure."""
    rows = [_HEAD, *(_cells(result) for result in results.results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    lines: list[str] = []
    for number, row in enumerate(rows):
        lines.append(_aligned(row, widths))
        if number:
            result = results.results[number - 1]
            lines += [f"{'':{widths[0]}}    {what}: {count:,}" for what, count in sorted(result.tally.injected.items())]
            lines += [f"{'':{widths[0]}}    ({note})" for note in result.tally.notes]
    return "\n".join(lines)


def page_table(results: Results) -> str:
    """Return the table in Markdown."""
    rows: list[tuple[str, ...]] = [
        ("", "Figure", "What was injected, and how often", "Lost", "Doubled", "Stuck", "Wrong", "Seconds")
    ]
    for result in results.results:
        cells = _cells(result)
        injected = "; ".join(f"{what}: {count:,}" for what, count in sorted(result.tally.injected.items()))
        notes = "".join(f"<br>{note}" for note in result.tally.notes)
        rows.append((cells[0], cells[1], injected + notes, *cells[3:]))
    head, *body = (f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)
    return "\n".join([head, "|---|---|---|---|---|---|---|---|", *body])


def circumstances(results: Results) -> str:
    """Return tier, seed, time, versions and machine in one sentence or two."""
    made = results.made
    return (
        f"Tier {made['tier']}, seed {made['seed']}, {made['at']}, {made['seconds']:,} s. "
        f"Detent {made['detent']} ({made['commit']}), Python {made['python']}, SQLite {made['sqlite']}, "
        f"PostgreSQL {made['postgresql']}, {made['cores']} cores ({made['machine']}), load average {made['load']} "
        "when it began."
    )


def findings(results: Results) -> Iterable[str]:
    """Return what was found, and what was not reached, one text each."""
    for result in results.results:
        for story in result.tally.stories:
            yield f"{result.id} {result.title}:\n{story}"
    for point, count in results.missing.items():
        yield f"not covered: {point} (reached {count} times)"


def _cells(result: Result) -> tuple[str, ...]:
    tally = result.tally
    outcomes = (tally.lost, tally.doubled, tally.stuck, tally.wrong)
    numbers = (f"{number:,}" for number in outcomes)
    return (result.id, result.title, f"{result.count:,}", *numbers, f"{result.seconds:,.0f}")


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Texts to the left, numbers to the right."""
    cells = [
        cell.ljust(width) if number < 2 else cell.rjust(width)
        for number, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
