"""The route that measures the heap against the timing wheel: what it takes, and what it answers."""

from dataclasses import asdict
from typing import Any, Literal

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import ConfigDict, Field

from jobs import benchmarking
from jobs.api.envelope import ERRORS, Envelope, envelope
from scheduling.comparison import ALGORITHMS, MEASURES, Comparison

router = Router(tags=["benchmark"])


class BenchmarkIn(Schema):
    """What is to be measured."""

    model_config = ConfigDict(extra="forbid")

    n: int = Field(ge=1, le=benchmarking.N_LIMIT, description="How many entries.")
    algorithm: Literal["heap", "wheel", "both"] = "both"


class FiguresOut(Schema):
    """What one algorithm costs; times are medians of the runs."""

    insert_ms: float = Field(description="Milliseconds to insert all entries.")
    retrieve_ms: float = Field(description="Milliseconds to take all out in order, one after the other.")
    drain_ms: float = Field(description="Milliseconds to take all out in order, at once.")
    cancel_ms: float = Field(description="Milliseconds to cancel all in random order.")
    tick_us: float = Field(description="Microseconds of a tick, or a re-scoring, at which nothing is due.")
    bytes_per_entry: float = Field(description="Memory for each entry, beyond the job itself.")


class BenchmarkOut(Schema):
    """What was measured, and how many times as much the heap costs as the wheel."""

    n: int
    runs: int
    figures: dict[str, FiguresOut]
    heap_to_wheel: dict[str, float] | None = Field(description="Below 1 the heap costs less; null unless both ran.")

    @classmethod
    def of(cls, found: Comparison) -> dict[str, Any]:
        """Return a comparison as plain values."""
        both = all(name in found.figures for name in ALGORITHMS)
        return {
            "n": found.n,
            "runs": found.runs,
            "figures": {name: asdict(figures) for name, figures in found.figures.items()},
            "heap_to_wheel": {name: found.ratio(name, *ALGORITHMS) for name in MEASURES} if both else None,
        }


@router.post("/benchmark/run", response={200: Envelope[BenchmarkOut], **ERRORS})
async def run_benchmark(request: HttpRequest, wanted: BenchmarkIn) -> dict[str, Any]:  # noqa: ARG001  ninja's signature
    """Measure the heap against the timing wheel, in a process of its own. 409 while another measurement runs."""
    found = await benchmarking.run(wanted.n, wanted.algorithm)
    return envelope(f"Measured on {found.n:,} entries, medians of {found.runs} runs.", BenchmarkOut.of(found))
