"""The page "Heap against wheel": who may use it, what it refuses, and that its bars show what was measured."""

import re

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import translation

from jobs import benchmarking
from jobs.admin.benchmark import charts_of
from scheduling.comparison import Comparison, Figures

pytestmark = pytest.mark.django_db

BOUNDS = "Give a whole number of entries, from 1 to 100,000."


@pytest.fixture
def page() -> str:
    """Return the address of the page."""
    return reverse("admin:dilamme_benchmark")


def _content(answer) -> str:
    """Return the page's own part, without the admin's frame around it."""
    return answer.text.partition('id="content"')[2].partition("</main>")[0]


def test_the_list_of_jobs_leads_there(viewer, page):
    """Whoever looks at jobs finds the page; the lists beside it do not offer it."""
    assert f'href="{page}"' in viewer.get(reverse("admin:dilamme_job_changelist")).text
    for other in ("deadletter", "worker"):
        assert page not in viewer.get(reverse(f"admin:dilamme_{other}_changelist")).text


def test_it_opens_with_a_form_and_an_explanation(viewer, page):
    """Nothing is measured before somebody asks for it."""
    answer = viewer.get(page)
    assert answer.status_code == 200
    content = " ".join(_content(answer).split())
    assert 'value="10000"' in content
    assert "So jobs that wait for their time belong in the wheel" in content
    assert "<svg" not in content


@pytest.mark.parametrize("method", ["get", "post"])
def test_who_may_not_see_jobs_may_not_measure(stranger, client, page, method):
    """Staff without the permission is refused, and who is not logged in is asked to log in."""
    assert getattr(stranger, method)(page, {"n": 5, "algorithm": "heap"}).status_code == 403
    answer = getattr(client, method)(page, {"n": 5, "algorithm": "heap"})
    assert answer.status_code == 302
    assert "/login/" in answer["Location"]


def test_a_foreign_site_cannot_start_it(viewer, page):
    """A POST without the form's token is refused."""
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = viewer.cookies
    assert strict.post(page, {"n": 5, "algorithm": "heap"}).status_code == 403
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', _content(strict.get(page))).group(1)
    answer = strict.post(page, {"n": 5, "algorithm": "heap", "csrfmiddlewaretoken": token})
    assert answer.status_code == 200
    assert "dilamme-of-heap" in answer.text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"n": "", "algorithm": "heap"}, BOUNDS),
        ({"n": "0", "algorithm": "heap"}, BOUNDS),
        ({"n": "100001", "algorithm": "heap"}, BOUNDS),
        ({"n": "1.5", "algorithm": "heap"}, BOUNDS),
        ({"n": "<b>", "algorithm": "heap"}, BOUNDS),
        ({"n": "9" * 5000, "algorithm": "heap"}, BOUNDS),
        ({"n": "5", "algorithm": "tree"}, "tree is not one of the available choices"),
        ({}, BOUNDS),
    ],
)
def test_what_cannot_be_measured_is_refused(viewer, page, fields, text):
    """The page says what it would take, and draws nothing."""
    answer = viewer.post(page, fields)
    assert answer.status_code == 200
    assert text in answer.text
    assert "dilamme-line" not in answer.text


@pytest.mark.parametrize(
    ("algorithm", "heads"),
    [("both", ["Heap", "Wheel", "Heap / wheel"]), ("heap", ["Heap"]), ("wheel", ["Wheel"])],
)
def test_what_was_measured_is_drawn_and_written(viewer, page, algorithm, heads):
    """Six measures, a bar and a value for each algorithm, and a table with the same values."""
    text = _content(viewer.post(page, {"n": "1000", "algorithm": algorithm}))
    assert "1,000 entries, medians of 3 runs on this machine." in text
    values = re.findall(r'dilamme-value">([\d.,]+ (?:ms|µs|bytes))<', text)
    cells = re.findall(r"<td>([\d.,]+(?: (?:ms|µs|bytes))?)</td>", text)
    algorithms = 2 if algorithm == "both" else 1
    assert len(re.findall(r'<rect width="[\d.]+%"', text)) == len(values) == 6 * algorithms
    assert [cell for cell in cells if " " in cell] == values
    assert len(cells) == 6 * len(heads)
    assert re.findall(r'<th scope="col">(.+?)</th>', text) == ["Measure", *heads]


def test_nothing_on_the_page_needs_a_lax_policy(viewer, page):
    """No style attribute, no style element, no script or handler inside the page's own part."""
    content = _content(viewer.post(page, {"n": "10", "algorithm": "both"}))
    assert "<rect" in content
    assert not re.search(r"<script|<style|style=|\son\w+=", content)


FOUND = Comparison(
    10, 3, 1, {"heap": Figures(1.0, 4.0, 4.0, 0.5, 0.04, 1500.0), "wheel": Figures(2.0, 8.0, 8.0, 1.0, 2.0, 750.0)}
)


def test_bars_are_as_long_as_what_they_stand_for():
    """In each chart the longest has the full width, and the others their share of it."""
    charts = charts_of(FOUND)
    assert [chart.title for chart in charts] == ["All entries", "One tick", "Memory"]
    insert, retrieve, drain, cancel = ([bar.width for bar in row.bars] for row in charts[0].rows)
    assert (insert, cancel) == (["12.50%", "25.00%"], ["6.25%", "12.50%"])
    assert retrieve == drain == ["50.00%", "100.00%"]
    assert [bar.width for bar in charts[1].rows[0].bars] == ["2.00%", "100.00%"]
    assert [bar.text for bar in charts[2].rows[0].bars] == ["1,500 bytes", "750 bytes"]
    assert [row.ratio for chart in charts for row in chart.rows] == ["0.5", "0.5", "0.5", "0.5", "0.02", "2"]


def test_bars_do_not_depend_on_the_language(viewer, page, settings):
    """Where numbers are written with a comma, the widths of SVG still have a point."""
    settings.LANGUAGE_CODE, settings.USE_THOUSAND_SEPARATOR = "de", True
    with translation.override("de"):
        text = viewer.post(page, {"n": "50", "algorithm": "both"}).text
    widths = re.findall(r'<rect width="([^"]+)"', text)
    assert len(widths) == 12
    assert all(re.fullmatch(r"\d+\.\d\d%", width) for width in widths)


def test_a_second_one_is_refused_in_words(viewer, page):
    """While another benchmark has its turn in this process, the page says so and offers the form again."""
    with benchmarking._turn:
        text = viewer.post(page, {"n": "10", "algorithm": "heap"}).text
    assert "Another benchmark is running here, and two would measure each other: ask again later." in text
    assert "dilamme-line" not in text
    assert "dilamme-line" in viewer.post(page, {"n": "10", "algorithm": "heap"}).text


def test_a_failure_is_told_without_its_reason(viewer, page, monkeypatch):
    """What went wrong is for the log; the page says that something did."""
    monkeypatch.setattr("sys.executable", "/nowhere/python3")
    text = viewer.post(page, {"n": "10", "algorithm": "heap"}).text
    assert "The benchmark failed; the reason has been logged." in text
    assert "nowhere" not in text
