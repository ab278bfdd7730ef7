"""What tests of methods, harnesses, the command line and studies share."""

import os
import re
import shutil
import signal

import pytest
import torch

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what it puts into the background deaf to Ctrl-C, and so are its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)

TEXT = " ".join(f"This is sentence number {i} of a long and quiet story." for i in range(60))


@pytest.fixture(autouse=True)
def _no_width_of_a_terminal(monkeypatch):
    """Whoever started the tests may have said how wide their terminal is; what is piped does not depend on it."""
    monkeypatch.delenv("COLUMNS", raising=False)
    os.unsetenv("COLUMNS")  # readline sets it behind Python's back, and processes that a test starts inherit it


@pytest.fixture(scope="session")
def chromium():
    """Debian's browser, driven by Playwright; tests that look at pages skip where one of the two is absent."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: it is in the extra dev")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Open an address as a person would; at the end of the test no page may have complained."""
    contexts, errors = [], []

    def opened(address, *, width=1300, theme="light", offline=True):
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, offline=offline)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A model folder: a tiny random Llama and a word-level tokenizer."""
    import transformers
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    from assay.evaluation.needle_kinds import PLACES, THINGS

    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n|\.| ?[^\s.]+| "), "isolated")
    words.decoder = decoders.Fuse()
    extra = [
        f"{TEXT} The secret ingredient of the soup served in {place} is {thing}. What is\n served in {place}?"
        for place in PLACES
        for thing in THINGS
    ]
    extra.append("Read this long text and answer the question at its end from what it says.\n\nQuestion: \nAnswer:")
    words.train_from_iterator(extra, trainers.WordLevelTrainer(special_tokens=["<unk>", "<bos>", "<eos>"]))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="<unk>", eos_token="<eos>")
    place = tmp_path_factory.mktemp("model")
    tokenizer.save_pretrained(place)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(place)
    (place / "text.txt").write_text(TEXT)
    return place


FAMILIES = {
    "Llama": {},
    "Mistral": {"head_dim": 12, "sliding_window": None},
    "Qwen2": {},
    "Qwen3": {"head_dim": 16},
    "Phi3": {"partial_rotary_factor": 0.5},
}


def tiny_model(family: str = "Llama", attention: str = "sdpa", seed: int = 0, **changes: object):
    """A random decoder of five layers with grouped heads; large weights, so that attention is not flat."""
    transformers = pytest.importorskip("transformers", reason="language models need the extra llm")
    torch.manual_seed(seed)
    sizes = dict(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=5,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=512,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        initializer_range=0.15,
    )
    config = getattr(transformers, f"{family}Config")(**{**sizes, **FAMILIES[family], **changes})
    config._attn_implementation = attention
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    model.generation_config.eos_token_id = None
    return model


@pytest.fixture
def make_model():
    return tiny_model


@pytest.fixture(params=[(family, attention) for family in FAMILIES for attention in ("eager", "sdpa")], ids="-".join)
def any_model(request):
    return tiny_model(*request.param)


@pytest.fixture
def llama():
    return tiny_model()


@pytest.fixture
def ids():
    return torch.randint(3, 97, (1, 60), generator=torch.Generator().manual_seed(5))


class Letters:
    """A tokenizer that needs no file: one token per word, with its blank, and per line break or full stop."""

    chat_template = None
    name_or_path = "letters"

    def __init__(self, size: int = 97) -> None:
        self.words: list[str] = []
        self.size = size

    def __len__(self) -> int:
        return 10**9

    def __call__(self, text, add_special_tokens=True, **_):
        pieces = re.findall(r"\n|\.| ?[^\s.]+| ", text)
        return {"input_ids": [self.number(piece) for piece in pieces]}

    def number(self, word: str) -> int:
        if word not in self.words:
            self.words.append(word)
        return 3 + self.words.index(word)  # 0 to 2 are the models' special tokens

    def decode(self, tokens, **_):
        known = dict(enumerate(self.words, start=3))
        return "".join(known.get(int(token), f" <{int(token)}>") for token in tokens)

    def apply_chat_template(self, turns, add_generation_prompt, tokenize):
        return f"<user>{turns[0]['content']}</user><model>"


@pytest.fixture
def tokenizer():
    return Letters()
