"""Mathematics that browsers draw without any script: formulas in LaTeX as MathML, and the powers and indices of plain
sentences (``2^{k−1}``, ``θ_i``) raised and lowered where they stand."""

from __future__ import annotations

import re

from markupsafe import Markup, escape


def _pairs(words: str) -> dict[str, str]:
    """``"le ≤ ge ≥"`` as a dictionary."""
    parts = words.split()
    return dict(zip(parts[::2], parts[1::2], strict=True))


_SYMBOLS = _pairs(
    "alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ kappa κ lambda λ mu μ nu ν xi ξ pi π rho ρ sigma σ "
    "tau τ phi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Lambda Λ Xi Ξ Sigma Σ Phi Φ Omega Ω ell ℓ infty ∞ top ⊤ partial ∂"
)
_OPERATORS = _pairs(
    "le ≤ ge ≥ ne ≠ in ∈ sim ∼ approx ≈ to → mapsto ↦ equiv ≡ cdot · times × pm ± langle ⟨ rangle ⟩ | ‖ { { } } sum ∑ "
    "prod ∏ nabla ∇ ldots … dots … colon : propto ∝ odot ⊙ leftarrow ← gets ← subset ⊂ mid ∣ perp ⊥ circ ∘"
)
_SPACES = {",": "0.17em", ";": "0.28em", " ": "0.28em"}
_ACCENTS = {"tilde": "~", "hat": "^", "bar": "¯"}
_NAMES = ("log", "exp", "max", "min", "sign", "softmax", "relu", "mod", "arg", "cos", "sin", "ln", "Pr")
_DOUBLE = _pairs("E 𝔼 P ℙ R ℝ Z ℤ N ℕ")
_LIMITS = ("∑", "∏", "max", "min")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:[.,]\d+)*|\s+|.[\u0300-\u036f]*", re.S)

_INDEX = r"_(?:\{(?P<long_index>[^{}]+)\}|(?P<index>[A-Za-z]{1,5}|[α-ω]|\d{1,2})(?![A-Za-z_]))"
_POWER = r"\^(?:\{(?P<long_power>[^{}]+)\}|\((?P<group>[^()]+)\)|(?P<power>[−-]?\d+(?:\.\d+)?|[½⅓¼]|[^\W\d_]))"
_ALONE = r"(?<![A-Za-z0-9_.])"  # a letter or number that is no part of a longer name
_LETTER = rf"(?:{_ALONE}[A-Za-z]|[^\W\d_A-Za-z])[\u0300-\u036f]?"
_BASE = rf"(?P<base>{_LETTER}|{_ALONE}\d+|[)\]⟩‖|²*'′]|{_ALONE}[a-z]+(?=\^))"
_SCRIPTED = re.compile(rf"{_BASE}(?:{_INDEX}(?:{_POWER})?|{_POWER.replace('?P<', '?P<only_')})")


def display(latex: str) -> Markup:
    """A formula on a line of its own. Its parts, with a ``\\quad`` between them, go on the next line where the page is
    narrow."""
    parts = [part.strip() for part in re.split(r"\\q?quad\b", latex) if part.strip()]
    return Markup('<div class="formula">%s</div>') % Markup(
        "".join(f'<math display="block">{formula(part)}</math>' for part in parts)
    )


def marked(text: str) -> Markup:
    """A plain sentence, escaped, with its powers and indices set as such. A name like ``logit_masked`` stays."""
    parts, end = [], 0
    for found in _SCRIPTED.finditer(text):
        parts += [escape(text[end : found.start()]), _scripted(found)]
        end = found.end()
    return Markup("").join([*parts, escape(text[end:])])


def _scripted(found: re.Match[str]) -> Markup:
    def group(*names: str) -> str:
        return next((found[name] for name in names if found[name] is not None), "")

    low = group("long_index", "index")
    high = group("long_power", "power", "only_long_power", "only_power")
    if inside := group("group", "only_group"):
        high = inside if inside.startswith(("−", "-")) else f"({inside})"
    scripts = [Markup("<sub>%s</sub>") % low] * bool(low) + [Markup("<sup>%s</sup>") % high] * bool(high)
    return escape(found["base"]) + Markup("").join(scripts)


def formula(latex: str) -> str:
    """The inside of a ``math`` element."""
    made, rest = _sequence(_TOKEN.findall(latex))
    if rest:
        raise ValueError(f"a brace closes nothing in {latex}")
    return made


def _sequence(tokens: list[str]) -> tuple[str, list[str]]:
    """All atoms up to a closing brace, each with its index and power."""
    made = []
    while tokens and tokens[0] != "}":
        atom, tokens = _atom(tokens)
        low = high = ""
        while tokens and tokens[0] in ("_", "^"):
            mark = tokens[0]
            script, tokens = _atom(tokens[1:])
            low, high = (script, high) if mark == "_" else (low, script)
        made.append(_with_scripts(atom, low, high))
    return "".join(made), tokens


def _atom(tokens: list[str]) -> tuple[str, list[str]]:
    if not tokens:
        raise ValueError("a formula ends where something must follow")
    token, rest = tokens[0], tokens[1:]
    if token.isspace():
        return _atom(rest) if rest and rest[0] != "}" else ("", rest)
    if token == "{":
        inside, rest = _sequence(rest)
        if not rest:
            raise ValueError("a brace is not closed")
        return f"<mrow>{inside}</mrow>", rest[1:]
    if token == "√":
        return _rooted(rest)
    if not token.startswith("\\"):
        return _leaf(token), rest
    return _command(token[1:], rest)


def _command(name: str, rest: list[str]) -> tuple[str, list[str]]:
    if name in ("left", "right"):
        return _atom(rest)
    if name in ("text", "mathrm", "operatorname"):
        close = rest.index("}")
        words = "".join(rest[1:close]).replace(" ", "\N{NO-BREAK SPACE}")
        return f"<mtext>{escape(words)}</mtext>", rest[close + 1 :]
    if name == "frac":
        above, rest = _atom(rest)
        below, rest = _atom(rest)
        return f"<mfrac>{above}{below}</mfrac>", rest
    if name == "sqrt":
        inside, rest = _atom(rest)
        return f"<msqrt>{inside}</msqrt>", rest
    if name in _ACCENTS:
        below, rest = _atom(rest)
        return f'<mover accent="true">{below}<mo>{_ACCENTS[name]}</mo></mover>', rest
    if name == "mathbb":
        return f"<mi>{_DOUBLE[rest[1]]}</mi>", rest[3:]
    if name in _SPACES:
        return f'<mspace width="{_SPACES[name]}"/>', rest
    if name in _NAMES:
        return f'<mi mathvariant="normal">{name}</mi>', rest
    if name in _SYMBOLS:
        return f"<mi>{_SYMBOLS[name]}</mi>", rest
    if name in _OPERATORS:
        return _leaf(_OPERATORS[name]), rest
    raise ValueError(f"formulas here know no \\{name}")


def _rooted(rest: list[str]) -> tuple[str, list[str]]:
    if rest[:1] == ["("] and ")" in rest:
        close = rest.index(")")
        return f"<msqrt>{formula(''.join(rest[1:close]))}</msqrt>", rest[close + 1 :]
    inside, rest = _atom(rest)
    return f"<msqrt>{inside}</msqrt>", rest


def _leaf(text: str) -> str:
    if text[0].isdigit() or text[0].isalpha():
        kind = "mn" if text[0].isdigit() else "mi"
        return f"<{kind}>{escape(text)}</{kind}>"
    return f'<mo stretchy="false">{escape("−" if text == "-" else text)}</mo>'


def _with_scripts(atom: str, low: str, high: str) -> str:
    # The scripts of a sum stand below and above it.
    over = any(atom.endswith((f">{name}</mo>", f">{name}</mi>")) for name in _LIMITS)
    if low and high:
        kind = "munderover" if over else "msubsup"
        return f"<{kind}>{atom}{low}{high}</{kind}>"
    if low:
        kind = "munder" if over else "msub"
        return f"<{kind}>{atom}{low}</{kind}>"
    return f"<msup>{atom}{high}</msup>" if high else atom
