"""The words in a column's name, and whether they say that it identifies something."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_IDENTIFIERS = {"id", "ids", "uuid", "guid", "key", "ssn", "identifier", "rowid", "index", "nr"}
_PEOPLE = {
    "person", "individual", "patient", "customer", "client", "user", "member", "subject", "respondent", "student",
    "employee", "voter", "household", "participant", "pupil", "worker", "citizen", "pid", "uid", "hhid", "ssn",
}  # fmt: skip


def words(name: str) -> list[str]:
    """The words of a name in lower case: those of ``birthDate``, ``birth_date`` and ``BIRTH.DATE`` are the same.

    >>> words("isHispanic"), words("HOURS.per-week2")
    (['is', 'hispanic'], ['hours', 'per', 'week', '2'])
    """
    return [word.lower() for word in _WORD.findall(name)]


def is_identifier(name: str) -> bool:
    """Whether a column of this name seems to identify something: its last word says so, or its first is "id"."""
    found = words(name)
    return bool(found) and (found[-1] in _IDENTIFIERS or found[0] == "id" or set(found) <= _PEOPLE)


def is_person(name: str) -> bool:
    """Whether a column of this name seems to identify people."""
    found = words(name)
    return is_identifier(name) and (found == ["id"] or not _PEOPLE.isdisjoint(found))
