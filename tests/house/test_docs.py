"""What is said twice is pinned: the documentation against the code."""

import dataclasses
import re
from pathlib import Path

from jobs.conf import Settings
from jobs.states import Phase, Status, diagram

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"


def test_every_setting_is_documented_with_its_default():
    """`docs/settings.md` has exactly the settings of `jobs/conf.py`, and plain defaults read the same."""
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| `(.+?)` \|", (DOCS / "settings.md").read_text(), re.MULTILINE))
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    assert rows.keys() == fields.keys()
    plain = {name: f.default for name, f in fields.items() if f.default is not dataclasses.MISSING}
    assert {name: eval(rows[name]) for name in plain} == plain


def test_the_state_diagram_is_made_from_the_table():
    """`docs/states.md` shows the diagram of `states.TRANSITIONS`, every status and every phase."""
    text = (DOCS / "states.md").read_text()
    assert diagram() in text
    for word in {*Status.values, *Phase.values}:
        assert f"| `{word}` |" in text


def test_the_readme_names_what_exists():
    """Links of the documents lead somewhere, and the commands of the README are targets of the Makefile."""
    makefile = (ROOT / "Makefile").read_text()
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")]:
        text = page.read_text()
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
        for command in re.findall(r"^    make (\w+)", text, re.MULTILINE):
            assert re.search(rf"^{command}:", makefile, re.MULTILINE), f"{page.name}: make {command}"


def test_every_route_and_permission_is_documented():
    """The operating page names each permission; the README the path of the API."""
    from jobs.models import Job

    text = (DOCS / "operating.md").read_text()
    for codename, _ in Job._meta.permissions:
        assert f"dilamme.{codename}" in text
    assert "/api/v1/jobs" in (ROOT / "README.md").read_text()


def test_every_route_is_documented():
    """`docs/rest.md` has a line for each route of the API, and for no other."""
    from jobs.api.routes import api

    known = {f"{method.upper()} {path}" for path, item in api.get_openapi_schema()["paths"].items() for method in item}
    rows = re.findall(r"^\| `([A-Z]+ /api/v1[^`]*)` \|", (DOCS / "rest.md").read_text(), re.MULTILINE)
    assert set(rows) == known


def test_the_options_of_runworker_in_the_documents_exist():
    """Each `--option` shown for runworker is one the command knows."""
    from workers.management.commands.runworker import Command

    parser = Command().create_parser("manage.py", "runworker")
    known = {option for action in parser._actions for option in action.option_strings}
    pages = (ROOT / "README.md").read_text() + (DOCS / "operating.md").read_text()
    for line in re.findall(r"manage\.py runworker(.*)", pages):
        assert set(re.findall(r"--[a-z]+", line)) <= known
