"""docs/api.md is what the docstrings say, and they say it all."""

import inspect
import re

import pytest

import hdmm
from docs.reference import PAGE, entries, function_of, page, parameters

ENTRIES = dict(entries())


def test_the_page_is_written_from_the_docstrings_of_today():
    assert PAGE.read_text(encoding="utf-8") == page(), "write it again: make api"


@pytest.mark.parametrize("name", [name for name in hdmm.__all__ if not name.islower()])
def test_every_public_class_is_on_the_page(name):
    assert name in ENTRIES


@pytest.mark.parametrize("name", ["marginals", "release", "select"])
def test_every_public_function_is_on_the_page(name):
    assert name in ENTRIES


@pytest.mark.parametrize("name", [name for name, value in ENTRIES.items() if len(parameters(name, value)) > 1])
def test_every_argument_is_explained(name):
    text = inspect.getdoc(function_of(ENTRIES[name])) or ""
    explained = set(re.findall(r"(?m)^    (\w+)(?:, (\w+))?: ", text.partition("Arguments:\n")[2]))
    names = {word for pair in explained for word in pair}
    same = re.search(r"rguments are as for", text)
    assert same or set(parameters(name, ENTRIES[name])) <= names
