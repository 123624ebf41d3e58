"""A draft as YAML with comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import Any

from hdmm.proposal.attribute import Attribute, LeftOut
from hdmm.proposal.draft import Draft, PrivacyUnit, Question
from hdmm.proposal.flow import flow, scalar

_WIDTH = 120
_NOISES = {
    "laplace": "Laplace noise: the budget is ε alone. It suits a few tables.",
    "gaussian": "Gaussian noise: the budget is ε with a small δ, such as 1e-6, or ρ. With many tables it is smaller.",
}


def render(draft: Draft) -> str:
    """The text of a spec."""
    lines = [line for sentence in draft.origin for line in _comment(sentence, "")]
    lines += ["", "schema:"]
    for attribute in draft.attributes:
        lines += [*(line for note in attribute.notes for line in _comment(note, "  ")), *_attribute(attribute)]
    lines += _left_out(draft.left_out)
    lines += ["", "workload:"]
    for question in draft.questions:
        lines += [*_comment(question.comment, "  "), *_entry(question)]
    lines += ["", "privacy:", *_comment(_NOISES[draft.noise], "  "), f"  noise: {draft.noise}", *_unit(draft.unit)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _attribute(attribute: Attribute) -> list[str]:
    name, domain = scalar(attribute.name), dict(attribute.domain)
    if domain == {"boolean": True}:
        return [f"  {name}: boolean"]
    if set(domain) == {"values"} and len(flow(domain["values"])) + len(name) < _WIDTH - 4:
        return [f"  {name}: {flow(domain['values'])}"]
    line = f"  {name}: {flow(domain)}"
    if len(line) <= _WIDTH:
        return [line]
    lines = [f"  {name}:"]
    for key, value in domain.items():
        if key == "levels":
            lines.append("    levels:")
            for level, groups in value.items():
                lines.append(f"      {scalar(level)}:")
                for group, members in groups.items():
                    lines += _wrapped(f"        {scalar(group)}: ", members)
        else:
            lines += _wrapped(f"    {key}: ", value)
    return lines


def _wrapped(start: str, value: Any) -> list[str]:
    """A list or a mapping on as many lines as it takes."""
    line = start + flow(value)
    if len(line) <= _WIDTH or not isinstance(value, (list, Mapping)):
        return [line]
    brackets = "[]" if isinstance(value, list) else "{}"
    items = (
        [flow(item) for item in value]
        if isinstance(value, list)
        else [f"{scalar(k)}: {flow(v)}" for k, v in value.items()]
    )
    indent = " " * (len(start) - len(start.lstrip()) + 2)
    lines = [start + brackets[0]]
    for item in items:
        if len(lines) == 1 or len(lines[-1]) + len(item) + 2 > _WIDTH:
            lines.append(f"{indent}{item},")
        else:
            lines[-1] += f" {item},"
    lines[-1] = lines[-1].removesuffix(",") + brackets[1]
    return lines


def _entry(question: Question) -> list[str]:
    line = f"  - {flow(question.entry)}"
    if len(line) <= _WIDTH:
        return [line]
    keys = [f"{scalar(key)}: {flow(value)}" for key, value in question.entry.items()]
    return [f"  - {keys[0]}", *(f"    {key}" for key in keys[1:])]


def _left_out(columns: Sequence[LeftOut]) -> list[str]:
    if not columns:
        return []
    lines = [
        "",
        *_comment("Columns that are left out. To use one, add a line such as the example, without the #.", "  "),
    ]
    for column in columns:
        lines += _comment(f"{_shown(column.name)}: {column.reason}.", "  ")
        if column.example and _can_be_named(column.name):
            lines.append(f"  #   {scalar(column.name)}: {column.example}")
    return lines


def _unit(unit: PrivacyUnit) -> list[str]:
    if unit.id is not None:
        rows = "one row counts" if unit.rows == 1 else f"{unit.rows} rows count"
        sentence = f"All rows with the same {_shown(unit.id)} are protected together. Of these, {rows}."
        return [*_comment(sentence, "  "), f"  unit: {{rows: {unit.rows}, id: {scalar(unit.id)}}}"]
    if unit.rows > 1:
        sentence = f"Any {unit.rows} rows are protected: enough for people who have no more than that."
        return [*_comment(sentence, "  "), f"  unit: {{rows: {unit.rows}}}"]
    example = scalar(unit.candidates[0]) if unit.candidates else "patient"
    sentence = (
        "One row is protected. If a person can have several rows, name the column that identifies people and the "
        f"number of their rows that count: unit: {{rows: 3, id: {example}}}"
    )
    return [*_comment(sentence, "  "), "  unit: {rows: 1}"]


def _comment(sentence: str, indent: str) -> list[str]:
    printable = "".join(mark if mark.isprintable() else " " for mark in sentence)
    return [f"{indent}# {line}" for line in wrap(printable, _WIDTH - len(indent) - 2, break_on_hyphens=False)]


def _shown(name: str) -> str:
    return scalar(name) if name else "a column without a name"


def _can_be_named(name: str) -> bool:
    return bool(name) and name.isprintable() and '"' not in name
