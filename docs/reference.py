"""Write docs/api.md, the reference of everything that `import hdmm` offers, from its docstrings: ``make api``."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hdmm

PAGE = Path(__file__).parent / "api.md"


def _is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, hdmm.HdmmError) and value is not hdmm.HdmmError


SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "Schema": {
        "Schema": ("sizes", "cells"),
        **dict.fromkeys(("Integers", "Listed", "Boolean", "Bins", "Dates", "Times", "Merged"), ()),
    },
    "Workload": {
        "Workload": ("add", "add_sql", "product", "query_count"),
        "marginals": (),
        "Product": (),
        **dict.fromkeys(("Identity", "Total", "Prefix", "AllRange", "Width", "Ranges", "Values", "Where", "Level"), ()),
        **dict.fromkeys(("By", "Permuted", "Custom", "Target"), ()),
        "Spec": ("load", "save"),
    },
    "Check": {"check": (), "CheckReport": ("clean",)},
    "Selection": {
        "select": (),
        "Plan": (
            *("rmse", "worst", "errors", "accuracy", "bound", "certificate", "candidates", "describe"),
            *("least_budget", "target_margins", "save", "load"),
        ),
        "Accuracy": (),
        "Progress": (),
    },
    "Operators and baselines": dict.fromkeys(
        [f"operators.{name}" for name in hdmm.operators.__all__]
        + [f"baselines.{name}" for name in hdmm.baselines.__all__],
        (),
    ),
    "Privacy": {
        "Budget": (),
        "Unit": (),
        "Ledger": (
            *("create", "open", "entries", "spent", "left", "leaked", "verify"),
            *("grant", "grants", "abandon", "describe"),
        ),
        **dict.fromkeys(("Entry", "Grant", "Amount", "Leak", "Verified", "AlreadyPublished"), ()),
    },
    "Release": {
        "release": (),
        "DatabaseTable": (),
        "Release": (
            *("table", "tables", "answer", "share", "shares", "ratio", "quantile"),
            *("synthesize", "save", "save_tables", "load"),
        ),
        "Ratio": (),
        "Quantile": (),
        **dict.fromkeys([f"estimators.{name}" for name in hdmm.estimators.__all__], ()),
    },
    "Errors": {
        "HdmmError": (),
        **dict.fromkeys([f"errors.{name}" for name, value in vars(hdmm.errors).items() if _is_error(value)], ()),
    },
}
"""What a user calls: names, and for classes their methods and properties."""

RESULTS = (
    "Plan",
    "Accuracy",
    "Progress",
    "Ledger",
    "Entry",
    "Grant",
    "Amount",
    "Leak",
    "Verified",
    "Release",
    "Ratio",
    "Quantile",
)
"""Classes whose objects a user gets and does not build."""

WIDTH = 100
"""The longest call that stays on one line."""


def entries() -> Iterator[tuple[str, Any]]:
    """Every documented name with its object, methods after their class."""
    for names in SECTIONS.values():
        for name, members in names.items():
            top = hdmm
            for part in name.split("."):
                top = getattr(top, part)
            yield name, top
            for member in members:
                yield f"{name}.{member}", inspect.getattr_static(top, member)


def page() -> str:
    """The text of docs/api.md."""
    documented = dict(entries())
    text = [
        "# Reference",
        "Everything that `import hdmm` offers, written by `make api` from the docstrings.",
        "\n".join(f"- [{title}](#{title.lower().replace(' ', '-')})" for title in SECTIONS),
    ]
    for title, names in SECTIONS.items():
        text.append(f"## {title}")
        for name, members in names.items():
            text += [f"### {name}", *_described(name, documented[name])]
            for member in members:
                text += [f"#### {name}.{member}", *_described(f"{name}.{member}", documented[f"{name}.{member}"])]
    return "\n\n".join(text) + "\n"


def parameters(name: str, value: Any) -> list[str]:
    """The names of what a callable takes, without self; none for what cannot be called or has no signature."""
    function = function_of(value)
    if not callable(function) or name in RESULTS or (inspect.isclass(function) and issubclass(function, Exception)):
        return []
    return [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]


def function_of(value: Any) -> Any:
    """What is called: a method without its binding."""
    return value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


def _described(name: str, value: Any) -> Iterator[str]:
    function = function_of(value)
    if parameters(name, value):
        yield f"```python\n{_signature(name, function)}\n```"
    yield _markdown(inspect.getdoc(function) or "")
    if inspect.isclass(function) and (name in RESULTS or not parameters(name, value)):
        fields = "\n".join(f"- `{field}`: {text}" for field, text in _fields(function))
        if fields:
            yield fields


def _signature(name: str, function: Any) -> str:
    """The call, one argument on a line if it is long."""
    signature = inspect.signature(function)
    arguments = [argument for argument in _arguments(signature) if argument not in ("self", "cls")]
    returned = "" if inspect.isclass(function) else f" -> {signature.return_annotation}"
    call = f"{name}({', '.join(arguments)}){returned}"
    if len(call) <= WIDTH:
        return call
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return f"{name}(\n{lines}){returned}"


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    """Each parameter as it is written, with the marks / and * between them."""
    previous: object = None
    stars: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    for parameter in signature.parameters.values():
        kind, default = parameter.kind, parameter.default
        if previous is inspect.Parameter.POSITIONAL_ONLY is not kind:
            yield "/"
        if kind is inspect.Parameter.KEYWORD_ONLY and previous not in (kind, inspect.Parameter.VAR_POSITIONAL):
            yield "*"
        text = f"{stars.get(kind, '')}{parameter.name}"
        if parameter.annotation is not inspect.Parameter.empty:
            text += f": {parameter.annotation}"
        if default is not inspect.Parameter.empty:
            text += " = …" if repr(default).startswith("<") else f" = {default!r}"
        yield text
        previous = kind


def _markdown(docstring: str) -> str:
    """A docstring as Markdown: arguments become a list, doctests and indented lines code."""
    docstring = re.sub(r":\w+:`([^`]*)`", r"`\1`", docstring.replace("``", "`"))
    text, _, arguments = docstring.partition("\nArguments:\n")
    paragraphs = [
        f"```python\n{paragraph}\n```" if paragraph.startswith(">>>") else paragraph
        for paragraph in text.strip().split("\n\n")
    ]
    if arguments:
        paragraphs.append(re.sub(r"(?m)^(\w+): ", r"- `\1`: ", textwrap.dedent(arguments)).rstrip())
    return "\n\n".join(paragraphs)


def _fields(cls: type) -> Iterator[tuple[str, str]]:
    """The fields of a class: their types, and the strings below them."""
    initialiser = vars(cls).get("__init__")
    if not inspect.isfunction(initialiser):
        return
    source = Path(initialiser.__globals__["__file__"])  # `__module__` is hdmm, which does not hold the source
    for body in (node for node in ast.parse(source.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)):
        if body.name == cls.__name__:
            yield from _documented(body)


def _documented(body: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id[0] != "_":
            text = ast.unparse(field.annotation)
            match below:
                case ast.Expr(ast.Constant(str() as explained)):
                    text += ". " + re.sub(r"\s+", " ", explained).replace("``", "`")
            yield field.target.id, text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
