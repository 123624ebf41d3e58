"""What `import hdmm` offers is one explicit list."""

import inspect

import pytest

import hdmm


def test_the_list_is_sorted_and_holds_nothing_twice():
    assert hdmm.__all__ == sorted(set(hdmm.__all__))


@pytest.mark.parametrize("name", hdmm.__all__)
def test_everything_on_the_list_is_there(name):
    assert hasattr(hdmm, name)


def test_nothing_else_is_public():
    public = {name for name, value in vars(hdmm).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public <= set(hdmm.__all__)


@pytest.mark.parametrize("name", [name for name in hdmm.__all__ if name != "__version__"])
def test_everything_public_says_what_it_is_for(name):
    documented = inspect.getdoc(getattr(hdmm, name)) or ""
    assert documented.split("\n")[0].strip().endswith((".", ":", "…"))


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert version("hdmm") == hdmm.__version__
