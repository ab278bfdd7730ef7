"""What a proxy is told, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from assay.methods._checks import check_fields, limits


@dataclass(frozen=True)
class Settings:
    """``upstream`` is the address that clients would use without a proxy. A prompt of more than ``threshold`` tokens
    (twice ``keep`` by default) is shortened; of what may be shortened ``keep`` tokens stay. A last user turn or a plain
    prompt of up to ``whole_turn`` tokens is kept whole; of a longer one the first ``before`` and the last ``question``
    tokens are.

    Limits: ``largest`` bytes of a body, ``queue`` requests that wait for the filter, ``filter_seconds`` of waiting and
    filtering, ``connect_seconds`` until the upstream takes a connection, ``read_seconds`` between two pieces of its
    answer."""

    upstream: str
    keep: int = field(default=1024, metadata=limits(least=64))
    threshold: int | None = field(default=None, metadata=limits(least=1))
    whole_turn: int = field(default=512, metadata=limits(least=1))
    before: int = field(default=64, metadata=limits(least=0))
    question: int = field(default=256, metadata=limits(least=32))
    largest: int = field(default=32 * 2**20, metadata=limits(least=1))
    queue: int = field(default=64, metadata=limits(least=1))
    filter_seconds: float = field(default=600.0, metadata=limits(above=0))
    connect_seconds: float = field(default=10.0, metadata=limits(above=0))
    read_seconds: float = field(default=600.0, metadata=limits(above=0))

    def __post_init__(self) -> None:
        check_fields(self)
        parts = urlsplit(self.upstream)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"--upstream takes an address such as http://127.0.0.1:8000/v1, not '{self.upstream}'")

        if self.whole_turn < self.least_turn:
            raise ValueError(f"whole_turn must be at least {self.least_turn}, not {self.whole_turn}")

    @property
    def least_turn(self) -> int:
        """Tokens of a last turn that always stay: its beginning and its end."""
        return self.before + self.question

    @property
    def long(self) -> int:
        """Prompts of more tokens are shortened."""
        return 2 * self.keep if self.threshold is None else self.threshold

    def address(self, path: str) -> str:
        """Where a request goes on. Clients say /v1/..., and so may the upstream's own address."""
        base = self.upstream.rstrip("/")
        path = path.lstrip("/")
        if base.endswith("/v1") and (path == "v1" or path.startswith("v1/")):
            path = path[2:].lstrip("/")
        return f"{base}/{path}" if path else base
