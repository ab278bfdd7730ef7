import pytest

pytest.importorskip("transformers", reason="the harnesses are tested with models of the extra llm")
