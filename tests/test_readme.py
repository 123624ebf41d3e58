"""The examples of the README run: those of a language in order, in a directory with nothing but a copy of `examples/`.

Python blocks share a namespace; those with `>>>` prompts are compared with the output they show. Of shell blocks the
`hdmm` commands run and must succeed. Neither language needs what the other has made. A comment on the line before a
block says what cannot be guessed: `<!-- file: spec.yaml -->` writes the block to that file, `<!-- not run -->` passes
over it.
"""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LANGUAGES = {"python": {"python"}, "shell": {"sh", "bash", "console"}}
BLOCK = re.compile(r"(?:^<!-- (?P<note>[^\n]*) -->\n+)?^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)


def run_python(text: str, line: int, namespace: dict[str, Any]) -> None:
    if ">>> " not in text:
        exec(compile("\n" * line + text, "README.md", "exec", dont_inherit=True), namespace)
        return
    example = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", line)
    example.globs = namespace
    report: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    result = doctest.DocTestRunner(optionflags=flags).run(example, out=report.append, clear_globs=False)
    assert result.failed == 0, "".join(report)


def run_shell(text: str, line: int) -> None:
    lines = text.replace("\\\n", " ").splitlines()
    prompted = [entry[2:] for entry in lines if entry.startswith("$ ")]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in prompted or lines:
        if command.startswith("hdmm "):
            done = subprocess.run(command, shell=True, env=environment, check=False, capture_output=True, text=True)
            assert done.returncode == 0, f"README.md, block at line {line}: {command}\n{done.stdout}{done.stderr}"


def run_examples(markdown: str, languages: set[str]) -> int:
    """Run every example in some languages in the current directory and return how many there were."""
    namespace: dict[str, Any] = {"__name__": "readme"}
    examples = 0
    for block in BLOCK.finditer(markdown):
        note, language, text = block["note"] or "", block["language"], block["text"]
        line = markdown.count("\n", 0, block.start("text"))
        if note.startswith("file: "):
            Path(note.removeprefix("file: ")).write_text(text, encoding="utf-8")
        elif note != "not run" and language in languages:
            if language in LANGUAGES["python"]:
                run_python(text, line, namespace)
            else:
                run_shell(text, line)
            examples += 1
    return examples


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if (ROOT / "examples").exists():
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("languages", LANGUAGES.values(), ids=LANGUAGES)
def test_examples_of_the_readme_run(languages: set[str]):
    assert run_examples((ROOT / "README.md").read_text(encoding="utf-8"), languages) > 0


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize(
    "block",
    [
        "```python\n1 / 0\n```",
        "```python\n>>> 1 + 1\n3\n\n```",
        "```sh\nhdmm no-such-command\n```",
        "```console\n$ hdmm no-such-command\nand what it prints\n```",
        "<!-- file: fault.py -->\n```python\n1 / 0\n```\n\n```python\nimport runpy\nrunpy.run_path('fault.py')\n```",
    ],
)
def test_a_broken_example_is_noticed(block: str):
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run_examples(block, set.union(*LANGUAGES.values()))
