"""Make a failing case smaller, as long as the same check fails in the same way."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from time import perf_counter
from typing import Any

from tests.fuzz.cases import Case
from tests.fuzz.conditions import Condition
from tests.fuzz.predicates import Predicates, rows
from tests.fuzz.schemas import Attribute
from tests.fuzz.workloads import Marginals, Product, Question, Schema, asked, legal, workload_code

_PLAIN = {
    "rows": 1,
    "replaced": False,
    "people": False,
    "objective": "total",
    "restarts": 0,
    "yaml": False,
    "source": "csv",
    "second": None,
    "records": (),
    "later": (),
}


def shrunk(case: Case, fails: Callable[[Case], bool], seconds: float = 40) -> Case:
    """The smallest failing case that is found in so many seconds."""
    end = perf_counter() + seconds
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(case):
            if perf_counter() > end:
                return case
            if _valid(smaller) and fails(smaller):
                case, progress = smaller, True
                break
    return case


def _valid(case: Case) -> bool:
    """Whether the oracle can make sense of a case that was cut down."""
    try:
        every = (*case.questions, *case.later)
        workload_code(every, case.schema)
        return all(legal(question, case.schema) and _fits(question, case.schema) for question in every)
    except (KeyError, IndexError, ValueError):
        return False


def _fits(question: Question, schema: Schema) -> bool:
    """Whether custom rows, which may have been left from a larger attribute, have an entry for every cell."""
    sizes = {attribute.name: attribute.size for attribute in schema}
    products = asked([question], schema)
    tables = [(sizes[name], rows(given, _of(schema, name))) for p in products for name, given in p.predicates]
    return all(len(row) == size for size, table in tables for row in table)


def _of(schema: Schema, name: str) -> Attribute:
    return next(attribute for attribute in schema if attribute.name == name)


def _with(case: Case, field: str, value: Any) -> Case:
    return replace(case, **{field: value})


def _smaller(case: Case) -> Iterator[Case]:
    for name, plain in _PLAIN.items():
        if getattr(case, name) != plain:
            yield _with(case, name, plain)
    for field in ("questions", "later"):
        given: tuple[Question, ...] = getattr(case, field)
        for place, question in enumerate(given):
            rest = given[:place] + given[place + 1 :]
            if rest or field == "later":
                yield _with(case, field, rest)
            for simpler in _simpler_question(case, question):
                yield _with(case, field, (*given[:place], *simpler, *given[place + 1 :]))
    half = len(case.records) // 2
    if half:
        yield replace(case, records=case.records[:half])
        yield replace(case, records=case.records[half:])
    for place, attribute in enumerate(case.schema):
        others = case.schema[:place] + case.schema[place + 1 :]
        if others:
            yield replace(
                case,
                schema=others,
                questions=tuple(_without(q, attribute.name) for q in case.questions),
                later=tuple(_without(q, attribute.name) for q in case.later),
            )
        for smaller, cut in _simpler_attribute(attribute):
            own = (*case.schema[:place], smaller, *case.schema[place + 1 :])
            yield replace(
                case,
                schema=own,
                questions=tuple(_cut_question(q, attribute.name, cut) for q in case.questions),
                later=tuple(_cut_question(q, attribute.name, cut) for q in case.later),
            )


def _simpler_question(case: Case, question: Question) -> Iterator[tuple[Question, ...]]:
    if question.weight != "1":
        yield (replace(question, weight="1"),)
    if isinstance(question, Marginals):
        yield tuple(replace(p, name=p.name.replace(": ", " ")) for p in asked([question], case.schema))
        return
    if question.statement:
        yield tuple(asked([question], case.schema))
        return
    for where in _simpler_condition(question.where) if question.where else ():
        yield (replace(question, where=where),)
    for place, (name, given) in enumerate(question.predicates):
        before, after = question.predicates[:place], question.predicates[place + 1 :]
        yield (replace(question, predicates=before + after),)
        for simpler in _simpler_predicates(given):
            yield (replace(question, predicates=(*before, (name, simpler), *after)),)


def _simpler_condition(condition: Condition) -> Iterator[Condition | None]:
    yield None
    match condition:
        case ("and" | "or", parts):
            yield from parts
            for place in range(len(parts)):
                if len(parts) > 2:
                    yield (condition[0], parts[:place] + parts[place + 1 :])
                for simpler in _simpler_condition(parts[place]):
                    if simpler is not None:
                        yield (condition[0], (*parts[:place], simpler, *parts[place + 1 :]))
        case ("not", inner):
            yield inner
            yield from (("not", simpler) for simpler in _simpler_condition(inner) if simpler is not None)


def _simpler_predicates(given: Predicates) -> Iterator[Predicates]:
    match given:
        case ("identity", None) | ("total",):
            return
        case ("union", parts):
            yield from parts
            for place in range(len(parts)):
                if len(parts) > 2:
                    yield ("union", parts[:place] + parts[place + 1 :])
                for simpler in _simpler_predicates(parts[place]):
                    yield ("union", (*parts[:place], simpler, *parts[place + 1 :]))
        case ("not", inner):
            yield inner
            yield from (("not", simpler) for simpler in _simpler_predicates(inner))
        case ("permuted", inner, order):
            yield inner
            yield from (("permuted", simpler, order) for simpler in _simpler_predicates(inner))
        case ("custom" | "ranges" | "values", several) if len(several) > 1:
            yield from ((given[0], several[:place] + several[place + 1 :]) for place in range(len(several)))
        case ("identity" | "where" | "level", *_) if given[-1] is not None:
            yield from ((*given[:-1], simpler) for simpler in _simpler_condition(given[-1]) if simpler is not None)
    yield ("identity", None)
    yield ("total",)


def _simpler_attribute(attribute: Attribute) -> Iterator[tuple[Attribute, int]]:
    """Simpler attributes, with the number of cells that are left."""
    plain = Attribute(attribute.name, "integers", ("0", str(attribute.size - 1)))
    if attribute != plain:
        yield plain, attribute.size
    if attribute.levels:
        yield replace(attribute, levels=()), attribute.size
    elif attribute.kind == "integers" and attribute.declared > 1 and attribute.size == attribute.declared:
        yield replace(attribute, values=(attribute.values[0], str(int(attribute.values[1]) - 1))), attribute.size - 1


def _without(question: Question, name: str) -> Question:
    if isinstance(question, Marginals):
        return replace(question, up_to=0, prefix=())
    return replace(question, predicates=tuple((n, given) for n, given in question.predicates if n != name))


def _cut_question(question: Question, name: str, cells: int) -> Question:
    if isinstance(question, Marginals):
        return question
    sets = tuple((n, _cut(given, cells) if n == name else given) for n, given in question.predicates)
    return Product(question.name, sets, question.where, question.weight, question.statement)


def _cut(given: Predicates, cells: int) -> Predicates:
    """The same set on the first so many cells."""
    clipped: Any
    match given:
        case ("custom", table):
            return ("custom", tuple(row[:cells] for row in table))
        case ("ranges", pairs):
            clipped = tuple(tuple(min(end, cells - 1) for end in pair) for pair in pairs)
            return ("ranges", clipped)
        case ("values", values):
            clipped = tuple(min(value, cells - 1) for value in values)
            return ("values", clipped)
        case ("width", width):
            return ("width", min(width, cells))
        case ("not", inner):
            return ("not", _cut(inner, cells))
        case ("union", parts):
            return ("union", tuple(_cut(part, cells) for part in parts))
        case ("permuted", inner, order):
            return ("permuted", _cut(inner, cells), tuple(cell for cell in order if cell < cells))
    return given
