"""The benchmark's machinery on a tiny model. What it measures is reported, never asserted here."""

import pytest

from assay.benchmarks import index_memory as bench
from assay.lab.errors import UserError

pytest.importorskip("transformers", reason="the benchmark needs the extra llm")


@pytest.fixture
def tiny(tmp_path):
    """A random model of three layers in a folder, as a user would have one."""
    from assay.studies.gemfilter.choice.learners import tiny_model

    made = tiny_model("cpu")
    made.model.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


def test_a_row_per_length_from_a_process_of_its_own(tiny):
    result = bench.run("cpu", lengths=(3000, 6000), model=tiny)
    small, large = result["rows"]
    assert (small["tokens"], large["tokens"]) == (3000, 6000)
    assert large["chunks"] > small["chunks"]
    assert min(small["peak GiB"], small["second question to reading"]) > 0


def test_a_peak_of_a_process_is_no_peak_of_a_gpu():
    with pytest.raises(UserError, match="--device cpu only"):
        bench.run("cuda")
