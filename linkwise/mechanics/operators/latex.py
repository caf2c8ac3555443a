"""Expressions in LaTeX, with the papers' letters and brackets: [I - H psi K]* D^-1 [I - H psi K] T."""

from __future__ import annotations

from .expression import Bias, Covector, Expression, Factored, Identity, Inverse, Operator, Product, Sum, Vector

GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi psi "
    "omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()
LETTERS = {
    "E_phi": r"\mathcal{E}_\phi",
    "E_psi": r"\mathcal{E}_\psi",
    "tau_bar": r"\bar{\tau}",
    "Kt_Omega": r"(K^{*} \Omega)",
}
PLAIN = {c: rf"\{c}" for c in "_%$#&{}"} | {"\\": r"\backslash ", "^": r"\hat{}", "~": r"\tilde{}"}
HALVES = {"D_half": "D"}  # powers of one half, by base


def latex(expression: Expression) -> str:
    """The expression, without dollar signs around it."""
    match expression:
        case Operator(record=record, link=link, adjoint=adjoint):
            return _operator(record.name.removesuffix("_inv"), link, record.name.endswith("_inv"), adjoint)
        case Identity():
            return "I"
        case Vector(name=name):
            return letter(name)
        case Covector(vector=vector):
            return f"{letter(vector.name)}^{{*}}"
        case Bias(of=of):
            return letter(expression.name) + (rf"({latex(of)})" if of else "")
        case Product(factors=factors):
            return " ".join(_bracketed(f) if isinstance(f, Sum) else latex(f) for f in factors)
        case Sum(terms=terms):
            return _sum(terms)
        case Inverse(of=Operator(record=record, link=link, adjoint=adjoint)):
            return _operator(record.name, link, True, adjoint)
        case Inverse(of=inner) | Factored(of=inner):
            return f"{_bracketed(inner)}^{{-1}}"
    return rf"\mathtt{{{_plain(str(expression))}}}"


def letter(name: str) -> str:
    """A name as a letter with a subscript: "tau_1", "epsilon", "q0"; longer words upright."""
    if name in LETTERS:
        return LETTERS[name]
    stem, _, index = name.partition("_")
    if not index and stem.rstrip("0123456789") != stem:
        bare = stem.rstrip("0123456789")
        stem, index = bare, stem[len(bare) :]
    shown = rf"\{stem}" if stem in GREEK else stem if len(stem) == 1 else rf"\mathrm{{{_plain(stem)}}}"
    if not index:
        return shown
    below = rf"\{index}" if index in GREEK else rf"\mathrm{{{_plain(index)}}}"
    return f"{shown}_{{{below}}}"


def _operator(name: str, link: str, inverted: bool, adjoint: bool) -> str:
    text = letter(HALVES.get(name, name)) + (rf"_{{\mathrm{{{_plain(link)}}}}}" if link else "")
    power = "-" * inverted + ("*" if adjoint else "1" if inverted or name in HALVES else "")
    return text + (f"^{{{power}{'/2' if name in HALVES else ''}}}" if power else "")


def _bracketed(expression: Expression) -> str:
    """A term in brackets; [I - H psi K]* rather than [I - K* psi* H*]."""
    turned = [part.adjoint for part in expression.walk() if isinstance(part, Operator) and not part.record.self_adjoint]
    vectors = any(isinstance(part, (Vector, Covector, Bias, Inverse, Factored)) for part in expression.walk())
    if turned and all(turned) and not vectors and isinstance(expression, Sum):
        return rf"\left[{latex(expression.T)}\right]^{{*}}"
    return rf"\left[{latex(expression)}\right]"


def _sum(terms: tuple[tuple[float, Expression], ...]) -> str:
    text = ""
    for weight, term in terms:
        sign = (" - " if weight < 0 else " + ") if text else ("-" if weight < 0 else "")
        size = "" if abs(weight) == 1.0 else rf"{abs(weight):g}\, "
        text += sign + size + latex(term)
    return text or "0"


def _plain(name: str) -> str:
    """Letters that mean themselves."""
    return "".join(PLAIN.get(c, c) for c in name)
