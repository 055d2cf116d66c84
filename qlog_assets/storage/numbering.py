"""Finds where a statement numbers all rows of a query by an order, so that many machines can: no engine is asked here.

`row_number() OVER (ORDER BY x)` is one task's work in Spark, whatever the number of machines. An engine that is many
machines sorts the rows in ranges instead, counts each range, and adds what lies before it: the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlglot import exp

PLACE = "row_place"
"""The column with the number of a row, from 0, in a table that was numbered."""


Numbered = Callable[[exp.Expr], str]
"""Numbers the rows that a query selects in order, and says under which name the table is that has them with their
places."""


def lift_numbering(tree: exp.Expr, number: Numbered) -> exp.Expr:
    """Let somebody number the rows of each SELECT that numbers all of its own, and read them from there."""
    for select in reversed(list(tree.find_all(exp.Select))):
        window = numbering_window(select)
        if window is None:
            continue
        source = select.args["from_"].this
        ordered = exp.select("*").from_(source.copy()).order_by(*(each.copy() for each in window.args["order"]))
        where = select.args.get("where")
        if where is not None:
            ordered.set("where", where.copy())
        named_before = [cte.copy() for cte in visible_ctes(select)]
        if named_before:
            ordered.set("with_", exp.With(expressions=named_before))
        table = exp.to_table(number(ordered))
        alias = source.alias_or_name
        window.replace(exp.paren(exp.Add(this=exp.column(PLACE), expression=exp.Literal.number(1))))
        select.set("expressions", [without_place(each) for each in select.expressions])
        select.set("from_", exp.From(this=exp.alias_(table, alias, table=True) if alias else table))
        select.set("where", None)
    return tree


def numbering_window(select: exp.Select) -> exp.Window | None:
    """The one window of a SELECT, where it numbers all rows of one source and the SELECT does nothing else."""
    if any(select.args.get(part) for part in ("joins", "group", "having", "distinct", "order", "limit", "windows")):
        return None
    found = [each for each in select.find_all(exp.Window) if each.find_ancestor(exp.Select) is select]
    if len(found) != 1 or select.args.get("from_") is None:
        return None
    (window,) = found
    numbers = isinstance(window.this, exp.RowNumber) and window.args.get("order") is not None
    return window if numbers and not window.args.get("partition_by") and not window.args.get("alias") else None


def without_place(selected: exp.Expr) -> exp.Expr:
    """`*` of a table that was numbered is what it was before."""
    if isinstance(selected, exp.Star):
        left_out = [*(selected.args.get("except_") or []), exp.to_identifier(PLACE)]
        return exp.Star(**{**selected.args, "except_": left_out})
    return selected


def visible_ctes(select: exp.Select) -> Iterator[exp.CTE]:
    """What WITH names before a SELECT, and it may read."""
    around: list[exp.Expr] = [select]
    while around[-1].parent is not None:
        around.append(around[-1].parent)
    for query in reversed(around):
        for cte in getattr(query, "ctes", []):
            if any(cte is each for each in around):
                break
            yield cte


def only_renames(tree: exp.Expr) -> bool:
    """Whether a statement selects columns of one table and no more: then there is nothing to compute."""
    return (
        isinstance(tree, exp.Select)
        and tree.args.get("from_") is not None
        and isinstance(tree.args["from_"].this, exp.Table)
        and not any(tree.args.get(part) for part in ("with_", "joins", "where", "group", "distinct", "order", "limit"))
        and not any(tree.find_all(exp.AggFunc, exp.Window, exp.Subquery))
    )
