"""The files that `log_processing` may read: none by default, and none outside the directories allowed."""

import os
from pathlib import Path
from typing import Any

import pytest

from workers.handlers import errors
from workers.handlers.logs import log_processing

NOW = "2025-01-31T12:00:00Z"


@pytest.mark.usefixtures("default_settings")
def test_no_path_may_be_read_by_default(tmp_path: Path) -> None:
    """Without a setting, no file is read at all; the text names the setting."""
    path = tmp_path / "a.log"
    path.write_text(f"{NOW} INFO x")
    with pytest.raises(errors.LogPathForbidden, match=r"allowed: none.*LOG_DIRECTORIES") as caught:
        log_processing(path=str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("path", ["a.log", "logs/../a.log", "logs/link.log", "logs/away/a.log", "logs-2/a"])
def test_no_way_out_of_the_directory(log_dir: Path, path: str) -> None:
    """Neither a path, nor dots, nor a link, nor a like-named directory leads out of what is allowed."""
    outside = log_dir.parent / "a.log"
    outside.write_text(f"{NOW} INFO secret")
    (log_dir / "link.log").symlink_to(outside)
    (log_dir / "away").symlink_to(log_dir.parent)
    (log_dir.parent / "logs-2").mkdir()
    (log_dir.parent / "logs-2" / "a").write_text(f"{NOW} INFO secret")
    with pytest.raises(errors.LogPathForbidden, match=str(log_dir)):
        log_processing(path=str(log_dir.parent / path))


def test_a_forbidden_path_does_not_say_whether_it_exists(log_dir: Path) -> None:
    """A path outside gives the same answer for a file that exists and one that does not."""
    (log_dir.parent / "there").write_text("x")
    texts = []
    for name in ("there", "gone!"):
        with pytest.raises(errors.LogPathForbidden) as caught:
            log_processing(path=str(log_dir.parent / name))
        texts.append(str(caught.value).replace(name, ""))
    assert texts[0] == texts[1]


def test_links_inside_the_directory_work(log_dir: Path) -> None:
    """A link to a log that may be read may be read, as may a log in a directory below."""
    (log_dir / "sub").mkdir()
    (log_dir / "sub" / "a.log").write_text(f"{NOW} INFO x")
    (log_dir / "current").symlink_to(log_dir / "sub" / "a.log")
    assert log_processing(path=str(log_dir / "current"))["total_lines"] == 1


def test_an_allowed_directory_may_itself_be_a_link(log_dir: Path, settings: Any) -> None:
    """The directory in the settings may be a link: it is followed as the path is."""
    (log_dir / "a.log").write_text(f"{NOW} INFO x")
    link = log_dir.parent / "link"
    link.symlink_to(log_dir)
    settings.DILAMME = {**settings.DILAMME, "LOG_DIRECTORIES": (str(link),)}
    assert log_processing(path=str(link / "a.log"))["total_lines"] == 1


def test_a_missing_file(log_dir: Path) -> None:
    """A file that is not there is named, with the reason."""
    with pytest.raises(errors.LogUnreadable, match=r"gone\.log' cannot be read: No such file"):
        log_processing(path=str(log_dir / "gone.log"))


def test_a_directory_is_no_log(log_dir: Path) -> None:
    """A directory is refused as such."""
    with pytest.raises(errors.LogUnreadable, match="is a directory"):
        log_processing(path=str(log_dir))


def test_a_pipe_is_not_waited_for(log_dir: Path) -> None:
    """A named pipe, which would hold the worker until somebody writes, is refused."""
    os.mkfifo(log_dir / "pipe")
    with pytest.raises(errors.LogUnreadable, match="a pipe"):
        log_processing(path=str(log_dir / "pipe"))


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that even root cannot read")
def test_an_unreadable_file(settings: Any) -> None:
    """A file that the system refuses to read is named, with the reason."""
    settings.DILAMME = {**settings.DILAMME, "LOG_DIRECTORIES": ("/proc",)}
    with pytest.raises(errors.LogUnreadable, match=r"/proc/self/mem' cannot be read: .+ Check the path"):
        log_processing(path="/proc/self/mem")


@pytest.mark.parametrize("path", ["a\0b", ""])
def test_a_path_that_is_none(log_dir: Path, path: str) -> None:
    """A path that no system accepts, and an empty one, fail in words."""
    assert log_dir
    with pytest.raises(errors.LogError):
        log_processing(path=path)


def test_a_file_is_read_whatever_its_bytes(log_dir: Path) -> None:
    """A byte order mark and bytes that are no UTF-8 do not stop the reading; a NUL is replaced."""
    path = log_dir / "a.log"
    path.write_bytes(b"\xef\xbb\xbf" + f"{NOW} ERROR ".encode() + b"caf\xe9 \x00\r\n")
    assert log_processing(path=str(path))["top_errors"][0]["message"] == "caf\ufffd \ufffd"
