"""Checks of what is published: answers, their standard errors, files, and answers to new questions."""

import hdmm
from tests.fuzz.oracle import BUDGETS, HUGE, REFERENCE, Run
from tests.fuzz.records import column_names, source_code
from tests.fuzz.session import Limit, Session
from tests.fuzz.workloads import Product, asked, named, queries, workload_code


def release(run: Run) -> None:
    """Answers at a huge budget are the true counts, and their standard errors are those of least squares."""
    for source in {run.case.source, run.case.second or run.case.source}:
        _release(run, source)


def released(run: Run, session: Session, source: str) -> None:
    """Release the records from a source."""
    some = tuple(a for a in run.case.schema if a.name in run.read or run.case.seed % 2)  # the others need not exist
    names = column_names(some or run.case.schema, run.case.people)
    session.run(f"records = {list(run.case.records)!r}", f"columns = {names!r}")
    session.run(*source_code(source, run.case.schema, run.case.people, f"{session.check}-{source}"))
    session.run(
        f"budget = {HUGE[run.case.noise][run.case.seed % 3]}",
        "release = hdmm.release(plan, source, budget, ledger=None)",
    )


def _release(run: Run, source: str) -> None:
    session = run.session.fork("release")
    released(run, session, source)
    session.run(f"truths = {{{', '.join(f'{p.name!r}: ({run.truth(p)!r}, {run.scale(p)!r})' for p in run.products)}}}")
    session.run(
        "def wrong(release):",
        "    tables = {name: release.table(name) for name in truths}",
        "    columns = {n: (t['answer'].to_pylist(), t['stderr'].to_pylist()) for n, t in tables.items()}",
        "    return {(n, place) for n, (a, s) in columns.items()",
        "            for place in off(a, truths[n][0], [8 * e + 1e-6 * truths[n][1] for e in s])}",
    )
    session.expect(_always("wrong"), "wrong answers", "wrong(release)")
    session.run(*_usual(run))
    for product in run.products:
        table = f"release.table({product.name!r})"
        nobody = [place for place, row in enumerate(queries(product, run.case.schema)) if not any(row)]
        if nobody:
            session.expect(
                f"all({table}[column][place].as_py() == 0 for column in ('answer', 'stderr') for place in {nobody!r})",
                "nobody is counted, but not as exactly 0",
                f"{table}.to_pylist()",
            )
        _stderrs(run, session, product, f"usual.table({product.name!r})", "standard errors of a table")


def _always(places: str) -> str:
    """That no answer is off in a release and in three more: rare noise is large, but not always in the same place."""
    again = f"{places}(hdmm.release(plan, source, budget, ledger=None))"
    return f"not {places}(release) or not {places}(release).intersection(*({again} for _ in range(3)))"


def _usual(run: Run) -> tuple[str, ...]:
    """Lines that make the release one of a usual budget: standard errors do not depend on what was measured."""
    return (f"usual = hdmm.Release(plan, {REFERENCE[run.case.noise]}, release.measurements)",)


def _stderrs(run: Run, session: Session, product: Product, table: str, kind: str) -> None:
    stderrs = run.stderrs(product, session["usual"].budget)
    if stderrs is not None and not run.plan.mechanism.estimator.bounded:
        tolerances = [1e-6 * stderr + 1e-9 * max(stderrs) for stderr in stderrs]
        found = f"{table}['stderr'].to_pylist()"
        session.expect(f"near({found}, {stderrs!r}, {tolerances!r})", kind, f"({found}, {stderrs!r})")


def estimators(run: Run) -> None:
    """Other estimators agree with the truth where there is hardly any noise."""
    session = run.session.fork("estimators")
    released(run, session, "csv")
    worst = "max(max(release.table(p.name)['stderr'].to_pylist()) for p in w.products)"
    session.run(f"worst = {worst}")
    for product in run.products:
        for estimator in ("local", "nonnegative"):
            local = estimator == "local"
            if local and not run.from_one_block(product):
                continue
            table = f"release.table({product.name!r}, estimator={estimator!r})"
            session.run(f"found = {table}")
            each = "found['stderr'].to_pylist()" if local else f"[50 * worst] * {len(run.truth(product))}"
            least = (1e-6 if local else 1e-2) * run.scale(product)
            session.expect(
                "worst > 1e-4 or "
                f"near(found['answer'].to_pylist(), {run.truth(product)!r}, [8 * s + {least!r} for s in {each}])",
                f"wrong answers by {estimator}",
                f"(found['answer'].to_pylist(), {run.truth(product)!r}, worst)",
            )


def files(run: Run) -> None:
    """Plans, releases and specs read back are the same."""
    if run.case.seed % 2:
        raise Limit("files are written in every other case")
    session = run.session.fork("files")
    session.run(f"budget = {BUDGETS[run.case.noise][0]}", "plan.save(folder / 'a.plan')")
    session.run("again = hdmm.Plan.load(folder / 'a.plan')")
    session.expect("again.workload == plan.workload", "workload of a loaded plan")
    session.expect("again.errors(budget).equals(plan.errors(budget))", "errors of a loaded plan")
    session.expect(
        "again.rmse(budget) == plan.rmse(budget)", "rmse of a loaded plan", "(again.rmse(budget), plan.rmse(budget))"
    )
    session.run("hdmm.Spec(schema, w).save(folder / 'again.yaml')")
    session.expect("hdmm.Spec.load(folder / 'again.yaml').workload == w", "workload of a saved spec")
    released(run, session, "csv")
    session.run("release.save(folder / 'out')", "loaded = hdmm.Release.load(folder / 'out')")
    session.expect(
        "all(loaded.table(name).equals(table) for name, table in release.tables())", "tables of a loaded release"
    )


def answers(run: Run) -> None:
    """New questions are answered where the measurements determine them, and refused elsewhere."""
    session = run.session.fork("answers")
    released(run, session, "csv")
    for question in run.case.later:
        own = session.fork("answers")
        own.run(*workload_code([question], run.case.schema, "later"))
        for product in asked([question], run.case.schema):
            every = queries(product, run.case.schema)
            one = f"hdmm.Workload(schema, [later.product({product.name!r})])"
            read = named(product, run.case.schema) <= run.read or not any(map(any, every))  # nobody is 0 anyway
            if not read or not all(run.dense.told(row) for row in every):
                own.run(
                    f"try: found = release.answer({one})",
                    "except hdmm.errors.WorkloadError: found = None",
                )
                own.expect("found is None", "answered, but not told", "found")
                continue
            try:
                own.run(f"found = release.answer({one})[{product.name!r}]", refusals=(hdmm.errors.WorkloadError,))
            except hdmm.errors.WorkloadError as error:
                if run.plan.mechanism.estimator.bounded:
                    continue
                raise own.finding("refused, but told", str(error)) from None
            own.run(
                "def wrong(release):",
                f"    found = release.answer({one})[{product.name!r}]",
                f"    margins = [8 * e + {1e-6 * run.scale(product)!r} for e in found['stderr'].to_pylist()]",
                f"    return off(found['answer'].to_pylist(), {run.truth(product)!r}, margins)",
            )
            own.expect(
                _always("wrong"),
                "wrong answers to a new question",
                f"(found['answer'].to_pylist(), {run.truth(product)!r})",
            )
            own.run(*_usual(run))
            table = f"usual.answer({one})[{product.name!r}]"
            _stderrs(run, own, product, table, "standard errors of a new question")
