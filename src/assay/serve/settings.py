"""How a server was started: where its runs lie, which address it has, and who may talk to it."""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from dataclasses import dataclass, field
from pathlib import Path

from assay.lab import UserError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_SHORTEST = 12  # characters of a token that somebody chose


@dataclass(frozen=True)
class Settings:
    """``token`` is empty where none is asked for, which is allowed on the loopback address alone; ``indexes`` is a
    folder whose indexes of documents may be asked about."""

    runs: Path
    studies: str | None = None
    host: str = "127.0.0.1"
    port: int = 8765
    token: str = field(default="", repr=False)
    model: str = "smollm2"
    indexes: Path | None = None

    def __post_init__(self) -> None:
        if self.indexes is not None and not self.indexes.is_dir():
            raise UserError(f"--indexes {self.indexes} is no folder")
        if not 0 <= self.port <= 65535:
            raise UserError(f"--port {self.port} is no port: it lies between 0 and 65535")
        if self.token and len(self.token) < _SHORTEST:
            raise UserError(f"the token is too short to keep anybody out: {_SHORTEST} characters at least")
        if self.token and not (self.token.isascii() and self.token.isprintable() and " " not in self.token):
            raise UserError("a token has letters, digits and signs of ASCII, and no blank")
        if not self.local and not self.token:
            raise UserError(f"--host {self.host} lets other machines in, so a token is needed: --token WORD")

    @property
    def local(self) -> bool:
        return self.host in LOOPBACK

    @property
    def address(self) -> str:
        """What a person opens in a browser."""
        shown = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        named = f"[{shown}]" if ":" in shown else shown
        return f"http://{named}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    def answers_to(self, host: str) -> bool:
        """Whether a request's Host header names this server. A page that had its name point here (DNS rebinding) sends
        a name of its own."""
        name = _name(host)
        if name in LOOPBACK or name == self.host.lower():
            return True
        if self.local:
            return False
        return _is_address(name) or name in {each.lower() for each in (socket.gethostname(), socket.getfqdn())}


def fresh_token() -> str:
    return secrets.token_urlsafe(24)


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:\[\]]+))(?::\d{1,5})?")


def _name(host: str) -> str:
    """The name in a Host header, without its port and without the brackets of an IPv6 address."""
    found = _HOST.fullmatch(host.strip().lower())
    return (found[1] or found[2]) if found else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
