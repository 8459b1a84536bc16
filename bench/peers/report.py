"""The figures as a table: one line for each system, the same columns for all, and what has to be known with them."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

_COLUMNS = (
    "system", "version", "enqueue/s", "bulk/s", "jobs", "drain/s", "of ceiling", "drain x2/s", "of ceiling",
    "pick-up p50", "p99 ms", "on-time p50", "p99 ms", "once",
)  # fmt: skip


def table(result: Mapping[str, Any]) -> str:
    """Return the whole report as text."""
    ceiling = result["ceiling"]
    rows: list[list[str]] = [list(_COLUMNS)]
    rows += [_ceiling_row(f"ceiling, {when}", figures) for when, figures in ceiling.items()]
    rows += [_row(system, result["ratios"].get(name, {})) for name, system in result["systems"].items()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    lines = [_line(row, widths) for row in rows]
    server = ", ".join(f"{name} {value}" for name, value in result["server"].items())
    copies = " and ".join(_rate(figures["copy/s"]) for figures in ceiling.values())
    lines += ["", f"Server: {server}.", f"Ceiling: bare SQL; by COPY instead of an INSERT it stores {copies} rows/s."]
    lines += [
        f"{system['title']}: {system['how']}." for system in result["systems"].values() if "skipped" not in system
    ]
    lines += [
        f"{system['title']}, {measurement}: {text}."
        for system in result["systems"].values()
        for measurement, text in _remarks(system)
    ]
    return "\n".join(lines)


def ratios(result: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return for each system its share of what bare SQL does: the mean of the ceiling before and after."""
    ceilings = list(result["ceiling"].values())

    def ceiling(figure: str) -> float:
        return statistics.mean(float(figures[figure]) for figures in ceilings)

    found: dict[str, dict[str, float]] = {}
    for name, system in result["systems"].items():
        found[name] = {
            key: value / ceiling(against)
            for key, value, against in (
                ("enqueue", _figure(system, "enqueue", "enqueue/s"), "insert/s"),
                ("bulk", _figure(system, "enqueue", "bulk/s"), "unnest/s"),
                ("drain x1", _figure(system, "drain x1", "jobs/s"), "claim and finish x1/s"),
                ("drain x2", _figure(system, "drain x2", "jobs/s"), "claim and finish x2/s"),
            )
            if value is not None
        }
    return found


def _ceiling_row(title: str, figures: Mapping[str, float]) -> list[str]:
    rates = [figures["insert/s"], figures["unnest/s"], None, figures["claim and finish x1/s"], None]
    rates += [figures["claim and finish x2/s"]]
    return [title, "", *map(_rate, rates), *[""] * (len(_COLUMNS) - 8)]


def _row(system: Mapping[str, Any], share: Mapping[str, float]) -> list[str]:
    if "skipped" in system:
        return [system["title"], system["skipped"], *[""] * (len(_COLUMNS) - 2)]
    jobs = _figure(system, "drain x1", "jobs")
    return [
        system["title"],
        system["version"],
        _rate(_figure(system, "enqueue", "enqueue/s")),
        _rate(_figure(system, "enqueue", "bulk/s")),
        f"{jobs:,}" if jobs else "-",
        _rate(_figure(system, "drain x1", "jobs/s")),
        _share(share.get("drain x1")),
        _rate(_figure(system, "drain x2", "jobs/s")),
        _share(share.get("drain x2")),
        *(
            _milliseconds(_figure(system, "latency", f"{what} {percentile} ms"))
            for what in ("pick-up", "on-time")
            for percentile in ("p50", "p99")
        ),
        _once(system),
    ]


def _figure(system: Mapping[str, Any], measurement: str, name: str) -> Any:
    return system.get(measurement, {}).get(name)


def _once(system: Mapping[str, Any]) -> str:
    """Whether every handler ran exactly once, in all measurements that came to their end."""
    found = [
        system[name]["mistakes"] for name in ("drain x1", "drain x2", "latency") if _figure(system, name, "mistakes")
    ]
    mistakes = {kind: sum(each[kind] for each in found) for kind in ("lost", "too many")}
    if not found:
        return "-"
    return ", ".join(f"{number} {kind}" for kind, number in mistakes.items() if number) or "yes"


def _remarks(system: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
    errors = [
        (name, figures["error"]) for name, figures in system.items() if isinstance(figures, dict) and "error" in figures
    ]
    wanted = {"drain x1": 1, "drain x2": 2}
    idle = [
        (name, f"only {figures['processes']} of {wanted[name]} processes ran jobs")
        for name, figures in system.items()
        if name in wanted and figures.get("processes", wanted[name]) != wanted[name]
    ]
    return [*errors, *idle]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
