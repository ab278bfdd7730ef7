import pytest

pytest.importorskip("transformers", reason="programs over documents need the extra llm")
