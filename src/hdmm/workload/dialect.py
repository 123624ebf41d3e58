"""The SQL that hdmm reads: standard SQL as sqlglot parses it, with ``//`` and names in backticks."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from hdmm.errors import TooLargeError, WorkloadError
from hdmm.numbers import shown

if TYPE_CHECKING:
    from sqlglot import exp

MAX_CHARACTERS = 1 << 20
"""Characters of a condition or an expression."""
_MAX_SHOWN = 80
"""Characters of a statement that a message repeats."""
CONDITIONS = "use comparisons, IN, BETWEEN, LIKE, IS NULL, AND, OR, NOT and parentheses"
"""What a condition is made of."""


def parse(text: str) -> list[Any]:
    """The statements of a text, None for empty ones. What sqlglot raises is not caught."""
    import sqlglot

    return sqlglot.parse(text, dialect=_dialect())


def sql(node: Any) -> str:
    """A part of a statement as text, which parses to the same part."""
    from sqlglot import ErrorLevel

    return str(node.sql(dialect=_dialect(), comments=False, unsupported_level=ErrorLevel.IGNORE))


def brief(node: Any) -> str:
    """A part of a statement as a message repeats it."""
    text = sql(node)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def parse_condition(condition: str) -> exp.Expression:
    """The tree of one condition."""
    _check_length("condition", condition)
    return _parsed_condition(condition)


def parse_expression(expression: str) -> exp.Expression:
    """The tree of one expression, such as ``age / 10``."""
    _check_length("expression", expression)
    return _parsed_expression(expression)


@lru_cache(maxsize=1024)
def _parsed_condition(condition: str) -> exp.Expression:
    clauses = _clauses("condition", condition, f"SELECT 1 WHERE {condition}", CONDITIONS)
    where = clauses.get("where")
    if where is None or any(value for key, value in clauses.items() if key not in ("expressions", "where", "kind")):
        raise WorkloadError(f"condition {shown(condition)} is not one condition; {CONDITIONS}")
    return where.this


@lru_cache(maxsize=1024)
def _parsed_expression(expression: str) -> exp.Expression:
    from sqlglot import exp

    remedy = "write for example age / 10"
    clauses = _clauses("expression", expression, f"SELECT {expression}", remedy)
    parts = clauses.get("expressions") or []
    others = any(value for key, value in clauses.items() if key not in ("expressions", "kind"))
    if others or len(parts) != 1 or isinstance(parts[0], exp.Alias):
        raise WorkloadError(f"expression {shown(expression)} is not one expression; {remedy}")
    return parts[0]


def _clauses(kind: str, text: str, statement: str, remedy: str) -> dict[str, Any]:
    """The clauses of a statement made of a user's text; none if the text makes several statements of it."""
    from sqlglot.errors import SqlglotError

    try:
        statements = parse(statement)
    except (SqlglotError, RecursionError):
        raise WorkloadError(f"{kind} {shown(text)} is not valid SQL; {remedy}") from None
    return statements[0].args if len(statements) == 1 and statements[0] is not None else {}


def _check_length(kind: str, text: str) -> None:
    if len(text) > MAX_CHARACTERS:
        raise TooLargeError(
            f"{kind} {shown(text)}: at most {MAX_CHARACTERS:,} characters are read; use ranges, levels or IN in place "
            "of long chains, or ask for its parts as products of their own"
        )


@cache
def _dialect() -> Any:
    from sqlglot import Dialect, TokenType, exp, generator, parser, tokens

    def remainder(self: Any, node: Any) -> str:
        """``a % b``, in parentheses within other arithmetic: MOD(a, b) is read without them."""
        text = str(self.binary(node, "%"))
        arithmetic = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg)
        return f"({text})" if isinstance(node.parent, arithmetic) else text

    def negation(self: Any, node: Any) -> str:
        """``age IS NOT NULL`` and ``sex NOT IN ('F')``, as people write them."""
        inner = node.this
        left = self.sql(inner, "this")
        match inner:
            case exp.Is():
                return f"{left} IS NOT {self.sql(inner, 'expression')}"
            case exp.In() if inner.expressions:
                return f"{left} NOT IN ({self.expressions(inner, flat=True)})"
            case exp.Between() if not inner.args.get("symmetric"):
                return f"{left} NOT BETWEEN {self.sql(inner, 'low')} AND {self.sql(inner, 'high')}"
        return str(self.not_sql(node))

    def cast(self: Any, node: Any) -> str:
        """``DATE '2021-03-01'``, as people write it."""
        kind = node.to.this.name
        if kind in ("DATE", "TIME", "TIMESTAMP") and isinstance(node.this, exp.Literal) and node.this.is_string:
            return f"{kind} {self.sql(node, 'this')}"
        return str(self.cast_sql(node))

    def column(self: Any, node: Any) -> str:
        """A column without its table: there is only one."""
        return str(self.sql(node, "this"))

    terms = dict(parser.Parser.TERM)
    del terms[TokenType.MOD]

    class Hdmm(Dialect):
        class Tokenizer(tokens.Tokenizer):
            IDENTIFIERS: ClassVar = ['"', "`"]
            KEYWORDS: ClassVar = {**tokens.Tokenizer.KEYWORDS, "//": TokenType.DIV}

        class Parser(parser.Parser):
            TERM: ClassVar = terms  # "%" binds like "*", not like "+"
            FACTOR: ClassVar = {**parser.Parser.FACTOR, TokenType.MOD: exp.Mod}

        class Generator(generator.Generator):
            TRANSFORMS: ClassVar = {
                **generator.Generator.TRANSFORMS,
                exp.IntDiv: lambda self, node: self.binary(node, "//"),
                exp.Mod: remainder,
                exp.Not: negation,
                exp.Cast: cast,
                exp.Column: column,
            }

    return Hdmm
