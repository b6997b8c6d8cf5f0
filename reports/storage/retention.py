"""Retention: results are kept for ever, and what good rows have to say beyond their result for some nights."""

from sqlalchemy import and_, delete, exists, func, select

from .database import Database
from .schema import ATTEMPTS, CALLS, DETAILS, RESULTS, RUNS

KEPT_RUNS = 14
"""Runs of the same kind, suite and branch whose good rows keep details and calls: two weeks of nights."""


def prune(database: Database, kept: int = KEPT_RUNS) -> int:
    """Delete details and calls of good rows of runs that are not among the last `kept` of their kind, suite and branch.

    Returns how many rows were deleted.  What failed keeps everything.
    """
    with database.transaction() as connection:
        rank = func.row_number().over(
            partition_by=(RUNS.c.kind, RUNS.c.suite, RUNS.c.branch), order_by=RUNS.c.id.desc()
        )
        ranked = select(RUNS.c.id, rank.label("place")).subquery()
        old = [row.id for row in connection.execute(select(ranked.c.id).where(ranked.c.place > kept))]
        if not old:
            return 0
        deleted = 0
        first, last = min(old), max(old)
        for table in (DETAILS, CALLS):
            same = and_(RESULTS.c.run == table.c.run, RESULTS.c.test == table.c.test, RESULTS.c.col == table.c.col)
            good = exists().where(same, ~RESULTS.c.failing)
            tried = exists().where(
                ATTEMPTS.c.run == table.c.run, ATTEMPTS.c.test == table.c.test, ATTEMPTS.c.col == table.c.col
            )
            among = table.c.run.between(first, last) & table.c.run.in_(select(ranked.c.id).where(ranked.c.place > kept))
            deleted += connection.execute(delete(table).where(among, good, ~tried)).rowcount
        return deleted
