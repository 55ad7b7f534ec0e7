# Two commands set everything up: `make demo` and `make test`. Each makes its own .venv from the project's own files.
PYTHON ?= python3.11
BIN := .venv/bin
# processes that share the tests; each builds the fixtures it needs, and one that is done takes tests from another
WORKERS ?= 2

.PHONY: demo test lint types contracts docs fuzz model clean

demo: .venv/.installed
	$(BIN)/wingspan demo

test: .venv/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

lint: .venv/.installed-dev
	$(BIN)/ruff check src tests benchmarks models
	$(BIN)/ruff format --check src tests benchmarks models

types: .venv/.installed-dev
	$(BIN)/mypy

contracts: .venv/.installed-dev
	$(BIN)/lint-imports --no-cache

docs: .venv/.installed-dev
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs
	@echo "build/docs/index.html"

# for a nightly run: every reader on 20,000 damaged files, other ones with another SEED
SEED ?= 1
fuzz: .venv/.installed-dev
	$(BIN)/python benchmarks/fuzz.py --seed $(SEED) $(FUZZ_ARGS)

# the installed model, of one that models/train_models.py has trained; its card has the commands
STUDENT ?= runs/bio-small
model: .venv/.installed-dev
	$(BIN)/python models/calibrate_model.py $(STUDENT)
	$(BIN)/python models/build_model.py $(STUDENT)
	$(BIN)/python models/pin.py

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml constraints.txt models/wingspan-bio-small/pyproject.toml | .venv/bin/python
	$(BIN)/pip install --quiet --constraint constraints.txt "torch==2.13.0"
	$(BIN)/pip install --quiet --constraint constraints.txt --editable .
	$(BIN)/pip install --quiet --editable models/wingspan-bio-small
	touch $@

.venv/.installed-dev: .venv/.installed
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev,docs,serve,onnx,scale,ray,spacy,hub,tensorboard,plots,tune,bleu,quantized,gensim]"
	touch $@

clean:
	rm -rf .venv
