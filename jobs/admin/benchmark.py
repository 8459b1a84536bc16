"""The page "Heap against wheel": a form, and what was measured as bars and as a table.

It holds no figures and measures nothing: `jobs.benchmarking` does. The bars are SVG that the template draws, without a
script and without a style that a strict content security policy would refuse.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asgiref.sync import async_to_sync
from django import forms
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path

from jobs import benchmarking
from jobs.admin.base import ReadOnlyAdmin
from jobs.errors import DilammeError
from scheduling.comparison import ALGORITHMS, Comparison

_TEMPLATE = "admin/dilamme/benchmark.html"
# What shares a scale stands in one chart: its title, its measures with their labels, and their unit.
_CHARTS = (
    (
        "All entries",
        {
            "insert_ms": "Insert",
            "retrieve_ms": "Retrieve one by one",
            "drain_ms": "Drain at once",
            "cancel_ms": "Cancel",
        },
        "ms",
    ),
    ("One tick", {"tick_us": "Nothing due"}, "µs"),
    ("Memory", {"bytes_per_entry": "For each entry"}, "bytes"),
)
_NAMES = {"heap": "Heap", "wheel": "Wheel"}


class BenchmarkForm(forms.Form):
    """What is to be measured."""

    n = forms.IntegerField(
        label="Entries",
        initial=10_000,
        min_value=1,
        max_value=benchmarking.N_LIMIT,
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            f"Give a whole number of entries, from 1 to {benchmarking.N_LIMIT:,}.",
        ),
    )
    algorithm = forms.ChoiceField(label="Measure", initial="both", choices=[("both", "Both"), *_NAMES.items()])


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: whose it is, how long it is, and what is written beside it."""

    algorithm: str
    name: str
    width: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One measure: its bars, and how many times as much the heap costs as the wheel, if both were measured."""

    label: str
    bars: Sequence[Bar]
    ratio: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Measures on one scale."""

    title: str
    rows: Sequence[Row]


def urls(owner: ReadOnlyAdmin) -> list[URLPattern]:
    """Return the route of the page, below that of the list that it belongs to."""
    view = owner.admin_site.admin_view(functools.partial(_page, owner))
    return [path("benchmark/", view, name="dilamme_benchmark")]


def charts_of(found: Comparison) -> list[Chart]:
    """Return what was measured, ready to be drawn; in each chart the longest bar has the full width."""
    shown = [name for name in ALGORITHMS if name in found.figures]
    charts = []
    for title, labels, unit in _CHARTS:
        costs = {measure: {name: getattr(found.figures[name], measure) for name in shown} for measure in labels}
        longest = max(cost for row in costs.values() for cost in row.values())
        rows = [
            Row(label, _bars(costs[measure].items(), longest, unit), _ratio(found, measure))
            for measure, label in labels.items()
        ]
        charts.append(Chart(title, rows))
    return charts


def _page(owner: ReadOnlyAdmin, request: HttpRequest) -> HttpResponse:
    """Show the form, and after a POST what was measured or why nothing was."""
    if not owner.has_view_permission(request):
        raise PermissionDenied
    form = BenchmarkForm(request.POST if request.method == "POST" else None)
    found = _measure(form) if form.is_valid() else None
    context = owner.admin_site.each_context(request) | {
        "title": "Heap against wheel",
        "opts": owner.opts,
        "media": owner.media,
        "form": form,
    }
    if found:
        context |= {
            "summary": f"{found.n:,} entries, medians of {found.runs} runs on this machine.",
            "names": [_NAMES[name] for name in ALGORITHMS if name in found.figures],
            "charts": charts_of(found),
        }
    return TemplateResponse(request, _TEMPLATE, context)


def _measure(form: BenchmarkForm) -> Comparison | None:
    try:
        return async_to_sync(benchmarking.run)(form.cleaned_data["n"], form.cleaned_data["algorithm"])
    except DilammeError as error:
        form.add_error(None, str(error))
        return None


def _bars(costs: Iterable[tuple[str, float]], longest: float, unit: str) -> list[Bar]:
    # Texts, because a template would write numbers as the reader's language does, and SVG knows only one way.
    return [Bar(name, _NAMES[name], f"{cost / longest:.2%}", f"{_number(cost)} {unit}") for name, cost in costs]


def _ratio(found: Comparison, measure: str) -> str:
    has_both = all(name in found.figures for name in ALGORITHMS)
    return _number(found.ratio(measure, *ALGORITHMS)) if has_both else ""


def _number(value: float) -> str:
    """Return a number with three digits that count, and no fraction from a hundred on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
