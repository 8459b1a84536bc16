"""The registry: what may be a handler, what its payload looks like, and how handlers are found."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs import job
from jobs.context import Context
from jobs.errors import ConfigurationError, UnknownType
from jobs.limits import ATTEMPTS_RULE, NAME_RULE, PRIORITY_RULE
from jobs.registry import JobType, registry
from scheduling import Backoff
from tests.support import ROOT, handler, process_environment


def work(a: int = 1) -> None:
    """Do nothing: a handler like any other."""


def refusal(function: Any, **options: Any) -> str:
    """Return why a function cannot be a handler."""
    with pytest.raises(ConfigurationError) as caught:
        job(**{"name": "refused", **options})(function)
    assert registry.find("refused") is None
    return str(caught.value)


# Names and options


def test_a_type_is_called_like_its_function() -> None:
    """The name need not be given."""
    try:
        assert job(work).name == "work"
        assert registry.get("work").handler is work
    finally:
        registry.remove("work")


def test_two_handlers_of_one_name_are_refused() -> None:
    """The order of apps does not decide in silence which of two handlers runs."""
    with handler(work, name="twice"), pytest.raises(ConfigurationError) as caught:
        job(name="twice")(lambda: None)
    assert str(caught.value) == (
        f"Two handlers are registered as 'twice': {__name__}.work and "
        f"{__name__}.test_two_handlers_of_one_name_are_refused.<locals>.<lambda>. "
        f"Give one of them another name: @job(name=...)."
    )


def test_the_same_handler_may_be_registered_again() -> None:
    """A module that is loaded twice, as under a reloader, is no clash; its latest options count."""
    with handler(work, name="again"), handler(work, name="again", priority=1.0):
        assert registry.get("again").priority == 1.0


@pytest.mark.parametrize("name", ["", "two words", "-x", "ключ", "a" * 101, "a\n", "x@later", "a\x00"])
def test_a_bad_name_is_refused(name: str) -> None:
    """Names are safe in addresses, notifications and on the command line; the error shows the rule."""
    assert refusal(work, name=name) == f"{name}: name is {name!r}; {NAME_RULE}"


@pytest.mark.parametrize("name", ["a", "A.b:c-d_9", "9", "_", "a" * 100, "myapp.tasks.send"])
def test_a_good_name_is_accepted(name: str) -> None:
    """Dotted paths, colons and digits are fine."""
    with handler(work, name=name):
        assert registry.get(name).name == name


def test_a_lambda_needs_a_name() -> None:
    """What Python calls it is no name of a type."""
    with pytest.raises(ConfigurationError, match=r"<lambda>: name is '<lambda>'; use 1 to 100 letters"):
        job(lambda: None)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"priority": 0.5}, f"priority is 0.5; {PRIORITY_RULE}"),
        ({"priority": float("nan")}, f"priority is nan; {PRIORITY_RULE}"),
        ({"priority": "high"}, f"priority is 'high'; {PRIORITY_RULE}"),
        ({"max_attempts": 0}, f"max_attempts is 0; {ATTEMPTS_RULE}"),
        ({"max_attempts": 2.5}, f"max_attempts is 2.5; {ATTEMPTS_RULE}"),
        ({"max_attempts": 1001}, f"max_attempts is 1001; {ATTEMPTS_RULE}"),
        ({"timeout": 0}, "timeout is 0; use seconds above 0, at most 31,622,400."),
        ({"timeout": float("inf")}, "timeout is inf; use seconds above 0, at most 31,622,400."),
        ({"queue": "no queue"}, f"queue is 'no queue'; {NAME_RULE}"),
    ],
)
def test_an_option_out_of_range_is_refused(options: dict[str, Any], complaint: str) -> None:
    """A default that no job could have is an error where it is written, not at the first job."""
    assert refusal(work, **options) == f"refused: {complaint}"


def test_an_unknown_type_is_told_with_the_known_ones() -> None:
    """Whoever misspelt a name sees the right one."""
    with handler(work, name="known_one"), pytest.raises(UnknownType) as caught:
        registry.get("known_won")
    assert str(caught.value).startswith("No handler is registered for the type 'known_won'. Known types: ")
    assert "known_one" in str(caught.value)


def test_backoff_falls_back_to_the_settings(settings: Any) -> None:
    """A type without delays of its own, or unknown in this process, has those of the settings."""
    settings.DILAMME = {"BACKOFF": Backoff(base=7)}
    own = Backoff(base=3)
    with handler(work, name="has", backoff=own), handler(work, name="has_not"):
        assert 1.5 <= registry.delay_of("has", 1) <= 4.5
        assert 3.5 <= registry.delay_of("has_not", 1) <= 10.5
        assert 3.5 <= registry.delay_of("unknown", 1) <= 10.5
        assert registry.delay_of("has", 1, wanted=9.0) == 9.0


def give_text(attempts: int) -> Any:
    """Return no number."""
    return f"{attempts} seconds"


def give_up(attempts: int) -> Any:
    """Fail."""
    raise LookupError(attempts)


@pytest.mark.parametrize("wrong", [give_text, give_up, lambda _: float("nan"), lambda _: -1, lambda _: True])
def test_a_backoff_function_that_misbehaves_falls_back_to_the_settings(settings: Any, wrong: Any) -> None:
    """Neither an error nor a nonsense delay of user code keeps a job from its next attempt."""
    settings.DILAMME = {"BACKOFF": Backoff(base=7)}
    with handler(work, name="misbehaves", backoff=wrong):
        assert 3.5 <= registry.delay_of("misbehaves", 1) <= 10.5


def test_a_backoff_may_be_a_function_of_the_failed_attempts() -> None:
    """Its seconds are taken as they are."""
    with handler(work, name="by_function", backoff=lambda attempts: 10 * attempts):
        assert registry.delay_of("by_function", 3) == 30


def test_types_may_be_registered_while_others_are_read() -> None:
    """Iterating takes a copy: a late import in another thread does not break it."""
    with handler(work, name="first"), contextlib.ExitStack() as late:
        for kind in registry:
            late.enter_context(handler(work, name=f"late_{kind.name}"))


# What can be a handler


def takes_star(*numbers: int) -> None:
    """Take what no payload can hold."""


def takes_positional(a: int, /) -> None:
    """Take what cannot be passed by name."""


def context_comes_second(a: int, context: Context) -> None:
    """Want the context where it does not come."""


def context_by_keyword(*, ctx: Any) -> None:
    """Want the context where it does not come."""


def unresolvable(a: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821  that is the point
    """Have an annotation that means nothing."""


def generator() -> Iterator[int]:
    """Do nothing when called."""
    yield 1


async def async_generator() -> Any:
    """Do nothing when called."""
    yield 1


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (
            takes_star,
            "the handler's parameter *numbers: int cannot be filled from a payload, whose keys are names; make",
        ),
        (
            takes_positional,
            "the handler's parameter a: int cannot be filled from a payload, whose keys are names; make",
        ),
        (context_comes_second, "the handler's parameter context cannot get the Context, which is passed first and by"),
        (
            context_by_keyword,
            "the handler's parameter ctx cannot get the Context, which is passed first and by position",
        ),
        (unresolvable, f"the annotations of {__name__}.unresolvable make no schema: name 'Nowhere' is not defined"),
        (generator, "the handler contains yield, so a call would run none of it."),
        (async_generator, "the handler contains yield, so a call would run none of it."),
        (5, "the handler is 5; declare a function."),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_no_job_could_call_is_refused(function: Any, complaint: str) -> None:
    """A handler that could never run is an error where it is declared."""
    assert refusal(function).startswith(f"refused: {complaint}")


async def async_work() -> None:
    """Do nothing, asynchronously."""


def test_async_handlers_are_told_apart() -> None:
    """The worker has to know where a handler runs."""
    assert JobType("a", async_work).is_async
    assert not JobType("b", work).is_async


# The context


def by_name(ctx: Any, a: int) -> None:
    """Ask for the context by name."""


def by_annotation(run: Context, a: int) -> None:
    """Ask for the context by annotation."""


def by_text(run: "Context", a: int) -> None:
    """Ask for the context by an annotation in quotes."""


def by_position_only(ctx: Context, /, a: int) -> None:
    """Ask for the context in a way that no payload can reach."""


def without(a: int) -> None:
    """Ask for no context."""


@pytest.mark.parametrize("function", [by_name, by_annotation, by_text, by_position_only])
def test_the_context_is_found_by_name_or_annotation(function: Callable[..., None]) -> None:
    """A first parameter called ctx, or annotated with Context, is no part of the payload."""
    kind = JobType("x", function)
    assert kind.wants_context
    assert kind.payload_from((5,), {}) == {"a": 5}
    assert kind.validate({"a": 5}) == {"a": 5}


def test_without_a_context_all_parameters_are_payload() -> None:
    """Nothing is taken away from a handler that does not ask."""
    kind = JobType("x", without)
    assert not kind.wants_context
    assert kind.payload_from((5,), {}) == {"a": 5}


# How they are found


def start(tmp_path: Path, module: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run `manage.py check` in a project with an app whose module `module` holds `text`."""
    app = tmp_path / "temporary_app"
    app.mkdir()
    (app / "__init__.py").write_text("")
    (app / f"{module}.py").write_text(text)
    (tmp_path / "temporary_settings.py").write_text(
        "from dilamme_project.settings import *\nINSTALLED_APPS = [*INSTALLED_APPS, 'temporary_app']\n"
    )
    environment = process_environment(DJANGO_SETTINGS_MODULE="temporary_settings", PYTHONPATH=f"{tmp_path}:{ROOT}")
    command = [sys.executable, "-m", "django", "check", "--tag", "dilamme"]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        ("jobs", "import sys; sys.exit('bye')", "SystemExit: bye"),
        ("tasks", "1 / 0", "ZeroDivisionError: division by zero"),
        ("jobs", "import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        (
            "tasks",
            "from jobs import job\n@job\ndef f(*args): ...",
            "ConfigurationError: f: the handler's parameter *args",
        ),
    ],
    ids=["exit", "error", "import", "handler"],
)
def test_a_module_that_cannot_be_imported_is_named(tmp_path: Path, module: str, text: str, complaint: str) -> None:
    """A task module that fails, or calls sys.exit(), ends the start with an error that names it."""
    run = start(tmp_path, module, text)
    assert run.returncode != 0
    assert run.stderr.splitlines()[-1].startswith(
        f"jobs.errors.ConfigurationError: The module temporary_app.{module}, searched for job handlers, could not be "
        f"imported: {complaint}"
    )


def test_handlers_are_found_in_the_modules_of_apps(tmp_path: Path) -> None:
    """An app's `jobs` and `tasks` are imported at the start; a clash between apps is found there as well."""
    run = start(tmp_path, "jobs", "from jobs import job\n@job(name='send_email')\ndef other(): ...")
    assert run.returncode != 0
    assert "Two handlers are registered as 'send_email': " in run.stderr
    assert "temporary_app.jobs.other" in run.stderr
