# Everything a checkout can do. Needs Python 3.11 or newer and make; the rest is installed into .venv.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint format picture lock clean

demo: .venv/demo
	$(BIN)/python manage.py demo

test: .venv/dev
	$(BIN)/python -m pytest -n 2 $(ARGS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	DATABASE_URL=postgres:///unused $(BIN)/mypy
	$(BIN)/djlint --lint --check templates
	$(BIN)/python manage.py check --fail-level ERROR
	$(BIN)/python manage.py makemigrations --check --dry-run

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/djlint --reformat templates

picture: .venv/dev
	$(BIN)/python docs/picture.py

# Pins again what requirements/*.in ask for; needs uv.
lock:
	for name in demo dev; do \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate \
	    --upgrade requirements/$$name.in -o requirements/$$name.txt || exit 1; \
	done

clean:
	rm -rf .venv .dilamme

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Dilamme needs Python 3.11 or newer; set PYTHON=..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/demo: .venv/bin/python requirements/demo.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/demo.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv/dev: .venv/demo requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	touch $@
