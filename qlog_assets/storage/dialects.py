"""Every difference between DuckDB's SQL, in which `sql/` is written, and Spark's: each has one name, and is here.

A statement is read as DuckDB's, its differences are rewritten, and what is left is written as Spark's. What has no
counterpart raises an error that names the engine and the construct. Needs sqlglot, and neither engine.

Where the best statement is DuckDB's alone, `sql/<name>.spark.sql` says the same in another way. It is written in
DuckDB's dialect, too, and translated like all others: DuckDB can run it, and a test compares.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, UnsupportedError

from qlog_assets.errors import QlogError
from qlog_assets.settings import shipped_file
from qlog_assets.storage.statements import statement

Tables = Callable[[str], Mapping[str, str]]
"""From a table's name to its columns with their types, as DuckDB calls them."""
LOW_64 = str(2**64 - 1)
"""What an md5 is masked with to get its lower half."""
NUMBERING = (exp.RowNumber, exp.DenseRank, exp.Rank)
"""Window functions that are BIGINT in DuckDB and INT in Spark."""
WIDE_TYPES = {"INT128": "DECIMAL(38, 0)", "UINT128": "DECIMAL(38, 0)", "UBIGINT": "DECIMAL(20, 0)"}
"""Integers that Spark does not have."""
FUNCTIONS = {
    "array_sort",
    "conv",
    "make_dt_interval",
    "octet_length",
    "try_element_at",
    "unix_micros",
}
"""Spark's functions that the rewriting brings in and sqlglot does not know by name."""


REFUSED = {"studies/raw_log_with_other_people": "UNION BY NAME"}
"""Statements that Spark cannot run, and the construct that it lacks. No stage, check or draw of a release is here."""
NOTHING = exp.Literal.string("")


class UntranslatableError(QlogError):
    """A statement that an engine cannot run."""


def spark_source(name: str) -> str:
    """The statement as Spark gets it before it is translated: the second file, where there is one."""
    return statement(f"{name}.spark" if shipped_file("sql", f"{name}.spark.sql").is_file() else name)


def to_spark(
    name: str,
    tables: Tables,
    *,
    events: str | None = None,
    macros: Collection[str] = (),
    times: Collection[str] = (),
) -> str:
    """`sql/<name>.sql` in Spark's SQL. `times` are the parameters that are points in time."""
    text = spark_source(name)
    if events is not None:
        text = f"WITH events AS ({spark_source(events)})\n{text}"
    tree = parse(name, text)
    if not isinstance(tree, exp.Query):
        raise refusal(name, f"a statement that is no SELECT ({tree.key.upper()})")
    tree = inline_macros(tree, [parse_macro(macro) for macro in macros])
    rewriting = Rewriting(name, tables, times)
    try:
        tree = rewriting.rewrite(tree)
        return tree.sql("spark", unsupported_level=ErrorLevel.RAISE, comments=False)
    except UnsupportedError as error:
        raise refusal(name, str(error).splitlines()[0]) from None


def refusal(name: str, construct: str) -> UntranslatableError:
    return UntranslatableError(f"sql/{name}.sql: spark: has no counterpart of {construct}")


@cache
def _parsed(text: str) -> exp.Expression:
    return sqlglot.parse_one(text, read="duckdb")


def parse(name: str, text: str) -> exp.Expression:
    try:
        return _parsed(text).copy()
    except ParseError as error:
        raise refusal(name, f"what sqlglot cannot read ({error.errors[0]['description']})") from None


# Macros -------------------------------------------------------------------------------------------------------------


def parse_macro(name: str) -> exp.Create:
    tree = parse(name, spark_source(name))
    if not isinstance(tree, exp.Create) or tree.kind != "MACRO":
        raise refusal(name, "a macro that is none")
    return tree


def inline_macros(tree: exp.Expression, macros: Sequence[exp.Create]) -> exp.Expression:
    """Put a macro's text where it is called: then no engine needs to know it."""
    for macro in macros:
        named = macro.this.this.name
        (parameter,) = (each.name for each in macro.this.expressions)

        def expand(
            node: exp.Expression,
            named: str = named,
            parameter: str = parameter,
            body: exp.Expression = macro.expression,
        ) -> exp.Expression:
            if not isinstance(node, exp.Anonymous) or node.name.lower() != named:
                return node
            (given,) = node.expressions
            return exp.paren(
                body.copy().transform(
                    lambda part: given.copy() if isinstance(part, exp.Column) and part.name == parameter else part
                ),
                copy=False,
            )

        tree = tree.transform(expand)
    return tree


# Columns ------------------------------------------------------------------------------------------------------------


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

    def output(self, query: exp.Expression) -> list[str]:
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
    def of(cls, select: exp.Expression, tables: Tables) -> Scope:
        """What a SELECT somewhere in a statement can read: the tables, and those that WITH names before it."""
        scope, around = cls(tables), [select, *ancestors(select)]
        for query in reversed(around):
            for cte in getattr(query, "ctes", []):
                if any(cte is each for each in around):
                    break
                scope.named[cte.alias] = scope.output(cte.this)
        return scope


def starred(star: exp.Expression, sources: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
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


# The rewriting ------------------------------------------------------------------------------------------------------


class Rewriting:
    """One statement's way from DuckDB's dialect to Spark's."""

    def __init__(self, name: str, tables: Tables, times: Collection[str]) -> None:
        self.name, self.tables, self.times = name, tables, times

    def rewrite(self, tree: exp.Expression) -> exp.Expression:
        tree = everywhere(tree, self.name_columns)
        self.expand(tree)
        self.spell_natural_joins(tree)
        tree = self.lift_qualify(tree)
        for difference in (
            self.filter_in_window,
            self.ordered_list,
            self.compare_rows,
            self.cast,
            self.half_of_md5,
            self.function,
            self.index,
            self.number,
            self.pattern,
            self.time,
        ):
            tree = everywhere(tree, difference)
        self.refuse_unknown(tree)
        return tree

    def name_columns(self, node: exp.Expression) -> exp.Expression:
        """`duckdb_columns()` in the checks: the columns of one table and their types, as a text."""
        if not isinstance(node, exp.Subquery) or not isinstance(node.this, exp.Select):
            return node
        source = node.this.args.get("from_")
        if source is None or "duckdb_columns" not in source.this.sql("duckdb").lower():
            return node
        asked = node.this.find(exp.EQ)
        if asked is None or not isinstance(asked.expression, exp.Literal):
            raise UnsupportedError("duckdb_columns() of anything but one table")
        columns = self.tables(asked.expression.this)
        return exp.Literal.string(", ".join(f"{name} {kind}" for name, kind in columns.items()))

    def expand(self, tree: exp.Expression) -> None:
        """COLUMNS(...) by the columns of the tables that are read."""
        # From the inside out: what a subquery selects is known when the query around it is looked at.
        for select in reversed(list(tree.find_all(exp.Select))):
            if any(each.find_ancestor(exp.Select) is select for each in select.find_all(exp.Columns)):
                self.expand_select(select, Scope.of(select, self.tables).sources(select))

    def expand_select(self, select: exp.Select, sources: Mapping[str, list[str]]) -> None:
        def of_select(node: exp.Expression) -> list[exp.Columns]:
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
        projected: list[exp.Expression] = []
        for each in select.expressions:
            found = of_select(each)
            if not found:
                projected.append(each)
                continue
            for name in column_names(found[0], sources):
                projected.append(exp.alias_(for_column(each, name), name, quoted=True))
        select.set("expressions", projected)

    def spell_natural_joins(self, tree: exp.Expression) -> None:
        """NATURAL ANTI JOIN by the columns that both sides have."""
        for join in [each for each in tree.find_all(exp.Join) if each.method == "NATURAL" and each.kind == "ANTI"]:
            select = join.parent
            assert isinstance(select, exp.Select)
            scope = Scope.of(select, self.tables)
            own = {column for columns in scope.sources(select).values() for column in columns}
            others = (
                scope.output(join.this.this) if isinstance(join.this, exp.Subquery) else self.tables(join.this.name)
            )
            join.set("method", None)
            join.set("using", [exp.to_identifier(name, quoted=True) for name in others if name in own])

    def lift_qualify(self, tree: exp.Expression) -> exp.Expression:
        """QUALIFY as a condition on a subquery, whose columns are those that were selected."""
        for select in reversed([node for node in tree.find_all(exp.Select) if node.args.get("qualify")]):
            if select.args.get("order") or select.args.get("limit"):
                raise UnsupportedError("QUALIFY beside ORDER BY or LIMIT")
            names = Scope.of(select, self.tables).output(select)
            inner = select.copy()
            condition = inner.args["qualify"].this
            inner.set("qualify", None)
            with_ = inner.args.get("with_")
            inner.set("with_", None)
            inner.set("expressions", [*inner.expressions, exp.alias_(condition, "is_qualified")])
            outer = exp.select(*(quoted(name) for name in names)).from_(inner.subquery("qualifying"))
            outer = outer.where(exp.column("is_qualified"))
            if with_ is not None:
                outer.set("with_", with_)
            if select is tree:
                tree = outer
            else:
                select.replace(outer)
        return tree

    def filter_in_window(self, node: exp.Expression) -> exp.Expression:
        """FILTER on a window function: only `count(*)` has it."""
        if isinstance(node, exp.Window) and isinstance(node.this, exp.Filter):
            counted = node.this.this
            if not isinstance(counted, exp.Count) or not isinstance(counted.this, exp.Star):
                raise UnsupportedError("FILTER on another window function than count(*)")
            condition = node.this.expression.this
            node.set("this", exp.Count(this=exp.Case().when(condition, exp.Literal.number(1))))
        return node

    def ordered_list(self, node: exp.Expression) -> exp.Expression:
        """`list(x ORDER BY y, z)`: a list of rows, sorted, of which x is taken."""
        gathered = node.this if isinstance(node, exp.Filter) else node
        if not isinstance(gathered, exp.ArrayAgg) or not isinstance(gathered.this, exp.Order):
            return node
        if isinstance(node.parent, exp.Filter):
            return node  # with its filter, when that one's turn comes
        order = gathered.this
        if any(each.args.get("desc") for each in order.expressions):
            raise UnsupportedError("list(... ORDER BY ... DESC)")
        parts = [exp.alias_(each.this.copy(), f"key_{number}") for number, each in enumerate(order.expressions)]
        parts.append(exp.alias_(order.this.copy(), "taken"))
        rows: exp.Expression = exp.ArrayAgg(this=exp.Struct(expressions=parts))
        if isinstance(node, exp.Filter):
            rows = exp.Filter(this=rows, expression=node.expression.copy())
        taken = exp.Lambda(
            this=exp.Dot(this=exp.to_identifier("one"), expression=exp.to_identifier("taken")),
            expressions=[exp.to_identifier("one")],
        )
        return exp.Transform(this=exp.Anonymous(this="array_sort", expressions=[rows]), expression=taken)

    def compare_rows(self, node: exp.Expression) -> exp.Expression:
        """`(a, b) IS DISTINCT FROM (c, d)`, one by one: Spark compares names of fields as well."""
        if isinstance(node, exp.NullSafeNEQ) and isinstance(node.this, exp.Tuple):
            pairs = zip(node.this.expressions, node.expression.expressions, strict=True)
            return exp.paren(
                exp.or_(*(exp.NullSafeNEQ(this=one.copy(), expression=other.copy()) for one, other in pairs))
            )
        return node

    def cast(self, node: exp.Expression) -> exp.Expression:
        """Integers of more than 64 bits."""
        if isinstance(node, exp.Cast) and node.to.this.name in WIDE_TYPES:
            halved = is_half(node.this)
            if halved:
                node.set(
                    "this", exp.Anonymous(this="conv", expressions=[node.this, *map(exp.Literal.number, (16, 10))])
                )
            node.set("to", exp.DataType.build(WIDE_TYPES[node.to.this.name]))
        return node

    def half_of_md5(self, node: exp.Expression) -> exp.Expression:
        """`md5_number`: DuckDB's number has the first byte of the md5 as its lowest. Here it is 32 hexadecimal digits,
        the highest first, whose order is that of the numbers; each half has 16 of them."""
        if isinstance(node, exp.Anonymous) and node.name.lower() == "md5_number":
            digits = exp.func("REVERSE", exp.MD5(this=node.expressions[0].copy()))
            # Reversed digit by digit; the two of a byte change places again.
            return exp.RegexpReplace(
                this=digits, expression=exp.Literal.string("(.)(.)"), replacement=exp.Literal.string("$2$1")
            )
        if is_half(node) and not isinstance(node, exp.Paren):
            upper = isinstance(node, exp.BitwiseRightShift)
            first = exp.Literal.number(1 if upper else 17)
            return exp.Substring(this=node.this.copy(), start=first, length=exp.Literal.number(16))
        return node

    def function(self, node: exp.Expression) -> exp.Expression:
        """Functions with another name, another kind of NULL or another kind of argument."""
        if isinstance(node, exp.Concat):
            # Spark joins texts alone, and `concat` with a NULL is NULL.
            between, *parts = node.expressions if isinstance(node, exp.ConcatWs) else [NOTHING, *node.expressions]
            texts = [part.copy() if part.is_string else exp.cast(part.copy(), "TEXT") for part in parts]
            return exp.ConcatWs(expressions=[between.copy(), *texts], safe=True, coalesce=True)
        if isinstance(node, exp.BitwiseLeftShift):
            node.set("expression", exp.cast(node.expression.copy(), "INT"))
        if not isinstance(node, exp.Anonymous):
            return node
        called, given = node.name.lower(), [each.copy() for each in node.expressions]
        if called == "strlen":
            return exp.Anonymous(this="octet_length", expressions=given)
        if called == "to_minutes":
            zero = exp.Literal.number(0)
            return exp.Anonymous(this="make_dt_interval", expressions=[zero, zero.copy(), *given])
        if called == "epoch_us":
            return exp.Anonymous(this="unix_micros", expressions=[exp.cast(given[0], "TIMESTAMPLTZ")])
        return node

    def index(self, node: exp.Expression) -> exp.Expression:
        """`list[n]`: from 1, and NULL where the list is shorter."""
        if not isinstance(node, exp.Bracket):
            return node
        (place,) = node.expressions
        if not isinstance(place, exp.Column):
            raise UnsupportedError("a place in a list that is no column")
        return exp.Anonymous(this="try_element_at", expressions=[node.this.copy(), exp.cast(place.copy(), "INT")])

    def number(self, node: exp.Expression) -> exp.Expression:
        """Numbers of rows are BIGINT. A window's name before a minus sign is in parentheses, or they would be one."""
        if isinstance(node, exp.Window) and node.args.get("alias") and isinstance(node.parent, exp.Binary):
            return exp.paren(node.copy())
        # A comparison needs none, and without it Spark sees that it can stop after the first rows.
        if (
            isinstance(node, exp.Window)
            and isinstance(node.this, NUMBERING)
            and not isinstance(node.parent, exp.Cast | exp.LTE)
        ):
            return exp.cast(node.copy(), "BIGINT")
        return node

    def pattern(self, node: exp.Expression) -> exp.Expression:
        """Patterns: Java's `$` also stands before a last line's end, and its `.` knows more ends of lines."""
        if isinstance(node, exp.RegexpFullMatch):
            whole = exp.Literal.string(rf"\A(?:{node.expression.name})\z")
            node = exp.RegexpLike(this=node.this.copy(), expression=whole)
        if isinstance(node, exp.RegexpLike | exp.RegexpReplace | exp.RegexpExtract):
            if not isinstance(node.expression, exp.Literal):
                raise UnsupportedError("a pattern that is no literal")
            node.set("expression", exp.Literal.string(java_pattern(node.expression.this)))
        if isinstance(node, exp.RegexpReplace):
            modifiers = node.args.get("modifiers")
            if node.args.get("single_replace") and (modifiers is None or modifiers.name != "g"):
                raise UnsupportedError("regexp_replace without 'g'")
            node.set("modifiers", None)
        if isinstance(node, exp.RegexpExtract) and node.args.get("group") is None:
            node.set("group", exp.Literal.number(0))
        return node

    def time(self, node: exp.Expression) -> exp.Expression:
        """Points in time come as texts: a driver in another time zone gives the same."""
        if isinstance(node, exp.Placeholder) and node.name in self.times and not isinstance(node.parent, exp.Cast):
            return exp.cast(node.copy(), exp.DataType.build("TIMESTAMPNTZ"))
        return node

    def refuse_unknown(self, tree: exp.Expression) -> None:
        """What only DuckDB has, by name."""
        for node in tree.find_all(exp.Anonymous):
            if node.name.lower() not in FUNCTIONS:
                raise UnsupportedError(f"the function {node.name.lower()}")
        for node in tree.find_all(exp.SetOperation):
            if node.args.get("by_name"):
                raise UnsupportedError("UNION BY NAME")
        for node in tree.find_all(exp.Star):
            if node.args.get("replace"):
                raise UnsupportedError("* REPLACE")
        for node in tree.find_all(exp.Column):
            if node.name.lower() == "rowid":
                raise UnsupportedError("rowid")


def everywhere(tree: exp.Expression, rule: Callable[[exp.Expression], exp.Expression]) -> exp.Expression:
    """Apply a rule to every part of a statement, to the smallest first."""
    for node in reversed(list(tree.walk())):
        changed = rule(node)
        if node is tree:
            tree = changed
        elif changed is not node:
            node.replace(changed)
    return tree


def ancestors(node: exp.Expression) -> Iterator[exp.Expression]:
    while node.parent is not None:
        node = node.parent
        yield node


def is_half(node: exp.Expression) -> bool:
    """Whether an expression is one half of an md5 as a number."""
    node = node.unnest()
    if isinstance(node, exp.BitwiseRightShift):
        return node.expression.name == "64"
    return isinstance(node, exp.BitwiseAnd) and node.expression.name == LOW_64


def for_column(node: exp.Expression, name: str) -> exp.Expression:
    """An expression with one column in place of COLUMNS(...)."""
    return node.copy().transform(lambda part: quoted(name) if isinstance(part, exp.Columns) else part)


def all_of(
    condition: exp.Expression,
    columns_in: Callable[[exp.Expression], list[exp.Columns]],
    sources: Mapping[str, list[str]],
) -> exp.Expression:
    """A condition on COLUMNS(...), which holds where it holds for each of them."""
    if isinstance(condition, exp.And):
        sides = (all_of(side, columns_in, sources) for side in (condition.left, condition.right))
        return exp.and_(*sides)
    found = columns_in(condition)
    if not found:
        return condition
    return exp.and_(*(for_column(condition, name) for name in column_names(found[0], sources)))


def java_pattern(pattern: str) -> str:
    """A pattern of RE2 for Java: `$` is the very end, and `.` is anything but a line feed."""
    written, escaped, in_class = "", False, False
    for sign in pattern:
        if not escaped and not in_class and sign == "$":
            written += r"\z"
        else:
            written += sign
        in_class = not escaped and (sign == "[" or (in_class and sign != "]")) if not escaped else in_class
        escaped = sign == "\\" and not escaped
    return f"(?d){written}"
