import pytest

pytest.importorskip("transformers", reason="GemFilter needs the extra llm")
