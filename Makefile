# Every target sets itself up: a virtual environment in .venv from the hashed requirement files.
# Nothing else is needed than Python >= 3.12, make and git.
.DEFAULT_GOAL := help
.PHONY: help demo serve test test-services coverage check openapi format lock clean

PYTHON ?= $(shell for p in python3.13 python3.14 python3.12 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null && echo "$$p" && break; done)
BIN := .venv/bin
LOCAL := $(BIN)/python -m kernelbot_site.local
PYTEST := $(BIN)/python -m pytest
# Tells which branches were run of the files in tests/riskiest.toml.
BRANCHES := $(BIN)/coverage run --rcfile=tests/riskiest.toml -m pytest
# What `manage.py check --deploy` sees: settings as production has them.
PRODUCTION := env SECRET_KEY=check-only-$$($(BIN)/python -c 'import secrets; print(secrets.token_hex(32))') \
	PUBLIC_URL=https://kernelbot.example ALLOWED_HOSTS=kernelbot.example \
	DATABASE_URL=postgres://kernelbot@db.example/kernelbot CACHE_URL=redis://cache.example/0 \
	GPU_TYPES='{"CPU": {"runner": "local"}}'

help:  ## say what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python >= 3.12 is needed; set PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv .venv

.venv/base.done: requirements/base.txt | .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

.venv/dev.done: requirements/dev.txt .venv/base.done
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

demo: .venv/base.done  ## profile the example submission and show what came back
	@$(LOCAL) demo

PORT ?= 8000
serve: .venv/base.done  ## run the service on this machine until Ctrl-C; PORT=8900 for another port
	@$(LOCAL) serve --port $(PORT)

test: .venv/dev.done  ## all tests that need no service
	$(PYTEST) -n 3 --dist loadgroup

test-services: .venv/dev.done  ## the tests against PostgreSQL and in chromium, and all branches of the riskiest files; needs TEST_DATABASE_URL
	@test -n "$(TEST_DATABASE_URL)" || { echo "set TEST_DATABASE_URL=postgres://…" >&2; exit 1; }
	DATABASE_URL=$(TEST_DATABASE_URL) FAIL_ON_SKIP=1 $(PYTEST) -n 3 --dist loadgroup -m "services or browser"
	rm -f var/coverage/branches*
	DATABASE_URL=$(TEST_DATABASE_URL) $(BRANCHES) -n 3 --dist loadgroup \
		tests/runners tests/contract tests/leaderboards tests/profiling tests/server/submissions/test_shapes.py \
		tests/server/test_bad_input.py tests/upgrades tests/reports/test_archives.py tests/gpu/test_envelope.py \
		tests/modal/test_hostile_results.py tests/modal/test_results.py tests/modal/test_outages.py
	$(BRANCHES) tests/runners/test_claims.py  # SQLite's turn at what each database does in its own way
	$(BIN)/coverage combine --quiet --rcfile=tests/riskiest.toml
	$(BIN)/coverage report --rcfile=tests/riskiest.toml

# COVERAGE_BASE=origin/main for another commit to compare with.
coverage: .venv/dev.done  ## make test, and a table of the lines that it ran, per file and of what changed
	rm -rf var/coverage
	$(MAKE) --no-print-directory test PYTEST="$(BIN)/coverage run -m pytest"
	$(BIN)/coverage combine --quiet
	$(BIN)/python -m tests.coverage_table $(COVERAGE_BASE)

check: .venv/dev.done  ## lint, format, types, import contracts, deployment and migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PRODUCTION) $(BIN)/mypy .
	$(BIN)/lint-imports --no-cache
	$(PRODUCTION) $(BIN)/python manage.py check --deploy --fail-level WARNING
	$(PRODUCTION) DATABASE_URL=sqlite://:memory: $(BIN)/python manage.py makemigrations --check --dry-run

openapi: .venv/dev.done  ## write docs/openapi.yaml, the schema of the HTTP API
	$(PRODUCTION) DATABASE_URL=sqlite://:memory: $(BIN)/python manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml

format: .venv/dev.done  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: .venv/dev.done  ## compile the requirement files from pyproject.toml
	$(BIN)/python -m venv .venv/lock && .venv/lock/bin/pip install --quiet uv
	.venv/lock/bin/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links pyproject.toml -o requirements/base.txt
	.venv/lock/bin/uv pip compile --quiet --universal --python-version 3.12 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links -c requirements/base.txt --group dev \
		pyproject.toml -o requirements/dev.txt

clean:  ## remove the virtual environment and all local data
	rm -rf .venv var
