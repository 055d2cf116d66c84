"""Which columns a statement reads and selects: what `COLUMNS(*)`, `* EXCLUDE` and NATURAL stand for, by name.

No engine is asked but for the columns of its tables. `dialects` needs it for engines that lack these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import UnsupportedError

Tables = Callable[[str], Mapping[str, str]]
"""From a table's name to its columns with their types, as DuckDB calls them."""


class Scope:
    """What a SELECT reads: the columns of its tables and subqueries, by the names that it gives them."""

    def __init__(self, tables: Tables, named: Mapping[str, list[str]] | None = None) -> None:
        self.tables = tables
        self.named = dict(named or {})

    def sources(self, select: exp.Select) -> dict[str, list[str]]:
        """The columns of each source of a SELECT, in order."""
        found: dict[str, list[str]] = {}
        from_ = select.args.get("from_")
        joins = [join.this for join in select.args.get("joins") or [] if join.args.get("kind") not in ("SEMI", "ANTI")]
        for number, source in enumerate([*([from_.this] if from_ else []), *joins]):
            if isinstance(source, exp.Table):
                columns = self.named.get(source.name) or list(self.tables(source.name))
            else:
                columns = self.output(source.this if isinstance(source, exp.Subquery) else source)
            found[source.alias_or_name or f"({number})"] = columns
        return found

    def output(self, query: exp.Expr) -> list[str]:
        """The names of the columns that a query selects."""
        query = query.unnest()
        inner = Scope(self.tables, self.named)
        for cte in getattr(query, "ctes", []):
            inner.named[cte.alias] = inner.output(cte.this)
        if isinstance(query, exp.SetOperation):
            return inner.output(query.left)
        assert isinstance(query, exp.Select)
        sources = inner.sources(query) if any(each.is_star for each in query.selects) else {}
        names: list[str] = []
        for each in query.selects:
            names += [column for column, _ in starred(each, sources)] if each.is_star else [each.alias_or_name]
        return names

    @classmethod
    def of(cls, select: exp.Expr, tables: Tables) -> Scope:
        """What a SELECT somewhere in a statement can read: the tables, and those that WITH names before it."""
        scope, around = cls(tables), [select, *ancestors(select)]
        for query in reversed(around):
            for cte in getattr(query, "ctes", []):
                if any(cte is each for each in around):
                    break
                scope.named[cte.alias] = scope.output(cte.this)
        return scope


def starred(star: exp.Expr, sources: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """The columns that `*` or `t.*` stands for, without those it leaves out, each with its source."""
    table = star.table if isinstance(star, exp.Column) else ""
    inner = star.this if isinstance(star, exp.Column) else star
    left_out = {each.name for each in inner.args.get("except_") or []}
    for source, columns in sources.items():
        if table in ("", source):
            yield from ((column, source) for column in columns if column not in left_out)


def column_names(columns: exp.Columns, sources: Mapping[str, list[str]]) -> list[str]:
    """The columns that COLUMNS(...) stands for: all, all but some, or those that a condition on names lets in."""
    if isinstance(columns.this, exp.Lambda):
        condition = columns.this.this
        if not isinstance(condition, exp.NEQ) or not isinstance(condition.expression, exp.Literal):
            raise UnsupportedError("COLUMNS(lambda) with another condition than name <> 'text'")
        return [name for name, _ in starred(exp.Star(), sources) if name != condition.expression.this]
    return [name for name, _ in starred(columns.this, sources)]


def quoted(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


def expand_columns(tree: exp.Expr, tables: Tables) -> None:
    """COLUMNS(...) by the columns of the tables that are read."""
    # From the inside out: what a subquery selects is known when the query around it is looked at.
    for select in reversed(list(tree.find_all(exp.Select))):
        if any(each.find_ancestor(exp.Select) is select for each in select.find_all(exp.Columns)):
            expand_select(select, Scope.of(select, tables).sources(select))


def expand_select(select: exp.Select, sources: Mapping[str, list[str]]) -> None:
    """The same in one SELECT: as arguments, as a condition on each, or as one selected expression for each."""

    def of_select(node: exp.Expr) -> list[exp.Columns]:
        return [each for each in node.find_all(exp.Columns) if each.find_ancestor(exp.Select) is select]

    for columns in [each for each in of_select(select) if each.args.get("unpack")]:
        spread = [quoted(name) for name in column_names(columns, sources)]
        parent = columns.parent
        assert parent is not None
        parent.set(
            "expressions", [part for each in parent.expressions for part in (spread if each is columns else [each])]
        )
    where = select.args.get("where")
    if where is not None:
        select.set("where", exp.Where(this=all_of(where.this, of_select, sources)))
    projected: list[exp.Expr] = []
    for each in select.expressions:
        found = of_select(each)
        if not found:
            projected.append(each)
            continue
        for name in column_names(found[0], sources):
            projected.append(exp.alias_(for_column(each, name), name, quoted=True))
    select.set("expressions", projected)


def spell_joins(tree: exp.Expr, tables: Tables) -> None:
    """NATURAL ANTI JOIN by the columns that both sides have; ANTI and SEMI with their side, or Spark may take the word
    for another name of the table before it."""
    for join in [each for each in tree.find_all(exp.Join) if each.kind in ("ANTI", "SEMI")]:
        join.set("side", "LEFT")
    for join in [each for each in tree.find_all(exp.Join) if each.method == "NATURAL" and each.kind == "ANTI"]:
        select = join.parent
        assert isinstance(select, exp.Select)
        scope = Scope.of(select, tables)
        own = {column for columns in scope.sources(select).values() for column in columns}
        right = join.this
        others = scope.output(right.this) if isinstance(right, exp.Subquery) else tables(right.name)
        join.set("method", None)
        join.set("using", [exp.to_identifier(name, quoted=True) for name in others if name in own])


def for_column(node: exp.Expr, name: str) -> exp.Expr:
    """An expression with one column in place of COLUMNS(...)."""
    return node.copy().transform(lambda part: quoted(name) if isinstance(part, exp.Columns) else part)


def all_of(
    condition: exp.Expr,
    columns_in: Callable[[exp.Expr], list[exp.Columns]],
    sources: Mapping[str, list[str]],
) -> exp.Expr:
    """A condition on COLUMNS(...), which holds where it holds for each of them."""
    if isinstance(condition, exp.And):
        sides = (all_of(side, columns_in, sources) for side in (condition.left, condition.right))
        return exp.and_(*sides)
    found = columns_in(condition)
    if not found:
        return condition
    return exp.and_(*(for_column(condition, name) for name in column_names(found[0], sources)))
