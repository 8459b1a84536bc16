"""`log_processing`: which lines count, what the report says, and how much memory it takes."""

import io
import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.handlers import errors, logs
from workers.handlers.logs import LEVELS, Tally, log_processing

SAMPLE = Path(__file__).parents[2] / "dilamme_project" / "samples" / "app.log"
NOW = "2025-01-31T12:00:00Z"


def parsed(line: str) -> dict[str, Any] | None:
    """Return the report on one line, or None if it is no log line."""
    try:
        return log_processing(text=line)
    except errors.LogUnparseable:
        return None


# The report


def test_the_report_is_complete() -> None:
    """A log with everything in it gives exactly the documented result."""
    text = f"""
{NOW} INFO started
{NOW} ERROR disk full
   File "app.py", line 3
{NOW} CRITICAL gone
{NOW} ERROR disk full
{NOW} WARN late

{NOW} debug x
"""
    assert log_processing(text=text, source="web-1") == {
        "source": "web-1",
        "total_lines": 7,
        "parsed_lines": 6,
        "parse_errors": 1,
        "level_counts": {"DEBUG": 1, "INFO": 1, "WARNING": 1, "ERROR": 2, "CRITICAL": 1},
        "top_errors": [{"message": "disk full", "count": 2}, {"message": "gone", "count": 1}],
        "has_critical": True,
        "error_rate_pct": 50.0,
    }


def test_ties_keep_the_order_of_appearance() -> None:
    """Errors that are equally frequent are listed in the order in which they were first seen."""
    text = "\n".join(f"{NOW} ERROR {word}" for word in ["b", "c", "a", "c", "d"])
    assert [error["message"] for error in log_processing(text=text, top=3)["top_errors"]] == ["c", "b", "a"]


def test_one_message_at_two_levels_is_one_error() -> None:
    """A message counts once in the ranking, whether it was an error or critical; warnings do not count."""
    text = f"{NOW} ERROR x\n{NOW} CRITICAL x\n{NOW} WARNING y"
    assert log_processing(text=text)["top_errors"] == [{"message": "x", "count": 2}]


def test_a_log_without_errors() -> None:
    """A healthy log has an empty ranking, a rate of zero and nothing critical."""
    report = log_processing(text=f"{NOW} INFO fine")
    assert (report["top_errors"], report["error_rate_pct"], report["has_critical"]) == ([], 0.0, False)


def test_the_rate_is_of_the_parsed_lines() -> None:
    """The error rate leaves unparseable lines out, and has two decimals."""
    text = f"{NOW} ERROR a\n{NOW} INFO b\n{NOW} INFO c\nnoise\nnoise"
    assert log_processing(text=text)["error_rate_pct"] == 33.33


def test_the_source_is_named(log_dir: Path) -> None:
    """Without a name of its own, a report is about the path, or about the text."""
    path = str(log_dir / "a.log")
    Path(path).write_text(f"{NOW} INFO x")
    assert log_processing(path=path)["source"] == path
    assert log_processing(path=path, source="web")["source"] == "web"
    assert log_processing(text=f"{NOW} INFO x")["source"] == "text"


def test_the_sample_log_shows_every_case(settings: Any) -> None:
    """The sample of the demo has every level, lines that do not parse, and errors that stand out."""
    settings.DILAMME = {**settings.DILAMME, "LOG_DIRECTORIES": (str(SAMPLE.parent),)}
    report = log_processing(path=str(SAMPLE))
    assert 350 <= report["total_lines"] <= 450
    assert all(count > 0 for count in report["level_counts"].values())
    assert report["parse_errors"] > 0
    assert report["has_critical"]
    assert report["top_errors"][0]["count"] > report["top_errors"][-1]["count"]


# Lines


@pytest.mark.parametrize(
    "timestamp",
    [
        "2025-01-31T12:00:00",
        "2025-01-31 12:00:00",
        "2025-01-31T12:00:00.123456789Z",
        "2025-01-31 12:00:00,123",
        "2025-01-31T12:00:00Z",
        "2025-01-31T12:00:00+02:00",
        "2025-01-31T12:00:00.5-0330",
        "2025-01-31T12:00:00+02",
        "2025-01-31 12:00:00 +0200",
        "2016-12-31T23:59:60Z",
        "2025-01-31t12:00:00z",
    ],
)
def test_timestamps_that_are_understood(timestamp: str) -> None:
    """ISO 8601 with T or a space, a fraction after a dot or comma, and a zone in any of its forms."""
    assert parsed(f"{timestamp} INFO x") is not None


@pytest.mark.parametrize(
    "line",
    [
        "INFO x",
        "2025-01-31 INFO x",
        "12:00:00 INFO x",
        "31/01/2025 12:00:00 INFO x",
        "2025-13-01T12:00:00 INFO x",
        "2025-01-32T12:00:00 INFO x",
        "2025-01-31T24:00:00 INFO x",
        "2025-01-31T12:60:00 INFO x",
        "2025-01-31T12:00:00INFO x",
        f"{NOW} NOTICE x",
        f"{NOW} INFOx",
        f"{NOW} INFORMATION x",
        f"{NOW} [INFO x",
        f"{NOW} INFO] x",
        f"{NOW} INFO",
        f"{NOW} [INFO]",
        f"x {NOW} INFO x",
        f"{NOW} \u0661INFO x",
        "2025-01-31T12:00:0\u0660Z INFO x",
    ],
)
def test_lines_that_are_no_log_lines(line: str) -> None:
    """A line without timestamp, known level or message is a parse error."""
    assert parsed(line) is None


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("DEBUG", "DEBUG"),
        ("info", "INFO"),
        ("Warning", "WARNING"),
        ("WARN", "WARNING"),
        ("[error]", "ERROR"),
        ("[ERROR   ]", "ERROR"),
        ("CRITICAL", "CRITICAL"),
        ("fatal", "CRITICAL"),
        ("[FATAL]", "CRITICAL"),
    ],
)
def test_levels_are_recognised(word: str, level: str) -> None:
    """Levels count in any case and in brackets; WARN and FATAL are other names of WARNING and CRITICAL."""
    report = parsed(f"{NOW} {word} x")
    assert report is not None
    assert report["level_counts"] == {name: int(name == level) for name in LEVELS}


def test_blank_lines_do_not_count() -> None:
    """Empty lines and lines of white space are neither lines nor parse errors."""
    report = log_processing(text=f"\n   \n\t\n{NOW} INFO x\r\n\r\n")
    assert (report["total_lines"], report["parse_errors"]) == (1, 0)


def test_messages_are_kept_as_they_are() -> None:
    """A message may contain anything, brackets, levels and any script; only white space around it goes."""
    message = "  [INFO] größer 日本 ERROR  x"
    assert log_processing(text=f"{NOW} ERROR {message}  \r\n")["top_errors"][0]["message"] == message.strip()


_words = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=8).map(str.strip)
_messages = _words.filter(bool)
_records = st.tuples(st.sampled_from([*LEVELS, "warn", "[Fatal]", "[info]"]), _messages)


@given(st.lists(_records, min_size=1), st.integers(1, 8))
def test_any_log_is_counted_right(records: list[tuple[str, str]], top: int) -> None:
    """For any levels and messages, the report agrees with a plain count of them."""
    report = log_processing(text="\n".join(f"{NOW} {level} {message}" for level, message in records), top=top)
    names = {"WARN": "WARNING", "FATAL": "CRITICAL"}
    plain = [(level.strip("[]").upper(), message) for level, message in records]
    expected = Counter(names.get(level, level) for level, _ in plain)
    bad = Counter(message for level, message in plain if level in ("ERROR", "CRITICAL", "FATAL"))
    ranking = sorted(bad.items(), key=lambda item: -item[1])[:top]
    assert report["level_counts"] == {level: expected[level] for level in LEVELS}
    assert report["parsed_lines"] == report["total_lines"] == len(records)
    assert [(error["message"], error["count"]) for error in report["top_errors"]] == ranking
    assert report["error_rate_pct"] == round(100 * bad.total() / len(records), 2)


@given(st.binary() | st.text().map(lambda text: f"{NOW} ERROR {text}".encode("utf-8", "replace")))
def test_any_bytes_can_be_read(data: bytes) -> None:
    """No bytes break the reading, the numbers always add up, and the result can be stored."""
    tally = Tally()
    tally.read(io.BytesIO(data))
    try:
        report = tally.report("x", 5)
    except errors.LogUnparseable:
        return
    assert report["parsed_lines"] + report["parse_errors"] == report["total_lines"]
    assert sum(report["level_counts"].values()) == report["parsed_lines"]
    assert "\\u0000" not in json.dumps(report)


# Size


def test_a_gigantic_line_is_cut(log_dir: Path) -> None:
    """A line of many megabytes is one line, and costs a bounded amount of memory."""
    path = log_dir / "big.log"
    with path.open("w") as file:
        file.write(f"{NOW} ERROR start ")
        for _ in range(200):
            file.write("x" * 100_000)
        file.write(f"\n{NOW} INFO after\n")
    tracemalloc.start()
    report = log_processing(path=str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (report["total_lines"], report["parsed_lines"]) == (2, 2)
    assert len(report["top_errors"][0]["message"]) == logs.MAX_MESSAGE_CHARACTERS
    assert peak < 2_000_000


def test_many_different_errors_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many different errors there are, few are held, and a frequent one is found, also a late one."""
    monkeypatch.setattr(logs, "MAX_MESSAGES", 50)
    tally = Tally()
    for n in range(2000):
        tally.count("ERROR", f"unique {n}")
        if n > 1000 and n % 4 == 0:
            tally.count("ERROR", "frequent")
        assert len(tally.errors) <= 50
    (first,) = tally.report("x", 1)["top_errors"]
    assert first["message"] == "frequent"
    assert 240 <= first["count"] <= 249
    assert tally.levels["ERROR"] == 2249


# Arguments


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({}, "neither path nor text"),
        ({"path": "/a", "text": "b"}, "both path and text"),
        ({"text": f"{NOW} INFO x", "top": 0}, "top is 0"),
        ({"text": f"{NOW} INFO x", "top": 101}, "1 to 100"),
    ],
)
def test_arguments_that_cannot_be_used(arguments: dict[str, Any], part: str) -> None:
    """Exactly one of path and text, and a sensible number of errors, or the text says so."""
    with pytest.raises(errors.UnusableArgument, match=part):
        log_processing(**arguments)


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("\n\n", 0), ("a\nb\n", 2)])
def test_a_log_without_a_log_line_is_a_failure(text: str, lines: int) -> None:
    """A text in which nothing parses fails, with the number of lines and an example of one that would."""
    with pytest.raises(errors.LogUnparseable, match=f"None of the {lines} lines of 'text'.*2025-01-31T12:00:00Z ERROR"):
        log_processing(text=text)
