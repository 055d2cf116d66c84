"""Every difference between DuckDB's SQL, in which `sql/` is written, and Spark's: each has one name, and is here.

A statement is read as DuckDB's, its differences are rewritten, and what is left is written as Spark's. What has no
counterpart raises an error that names the engine and the construct. Needs sqlglot, and neither engine.

Where the best statement is DuckDB's alone, `sql/<name>.spark.sql` says the same in another way. It is written in
DuckDB's dialect, too, and translated like all others: DuckDB can run it, and a test compares.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, ParseError, UnsupportedError

from qlog_assets.errors import QlogError
from qlog_assets.settings import shipped_file
from qlog_assets.storage.java_patterns import java_pattern
from qlog_assets.storage.numbering import Numbered, lift_numbering, only_renames
from qlog_assets.storage.selected_columns import Scope, Tables, expand_columns, quoted, spell_joins
from qlog_assets.storage.statements import statement

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


@dataclass(frozen=True)
class Translated:
    """A statement in Spark's SQL, and whether it computes anything."""

    text: str
    only_renames: bool


def to_spark(
    name: str,
    tables: Tables,
    *,
    events: str | None = None,
    macros: Collection[str] = (),
    times: Collection[str] = (),
    number: Numbered | None = None,
) -> Translated:
    """`sql/<name>.sql` in Spark's SQL. `times` are the parameters that are points in time; `number` numbers all rows of
    a query, where Spark's own way would be one task."""
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
        if number is not None:
            tree = lift_numbering(tree, number)
        return Translated(as_text(tree), only_renames(tree))
    except UnsupportedError as error:
        raise refusal(name, str(error).splitlines()[0]) from None


def as_text(tree: exp.Expr) -> str:
    """A rewritten statement as Spark reads it."""
    return tree.sql("spark", unsupported_level=ErrorLevel.RAISE, comments=False)


def refusal(name: str, construct: str) -> UntranslatableError:
    return UntranslatableError(f"sql/{name}.sql: spark: has no counterpart of {construct}")


@cache
def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="duckdb")


def parse(name: str, text: str) -> exp.Expr:
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


def inline_macros(tree: exp.Expr, macros: Sequence[exp.Create]) -> exp.Expr:
    """Put a macro's text where it is called: then no engine needs to know it."""
    for macro in macros:
        named = macro.this.this.name
        (parameter,) = (each.name for each in macro.this.expressions)

        for call in [node for node in tree.find_all(exp.Anonymous) if node.name.lower() == named]:
            (given,) = call.expressions
            body = macro.expression.copy()
            for column in [each for each in body.find_all(exp.Column) if each.name == parameter]:
                column.replace(given.copy())
            call.replace(exp.paren(body, copy=False))
    return tree


# The rewriting ------------------------------------------------------------------------------------------------------


class Rewriting:
    """One statement's way from DuckDB's dialect to Spark's."""

    def __init__(self, name: str, tables: Tables, times: Collection[str]) -> None:
        self.name, self.tables, self.times = name, tables, times

    def rewrite(self, tree: exp.Expr) -> exp.Expr:
        tree = everywhere(tree, self.name_columns)
        expand_columns(tree, self.tables)
        spell_joins(tree, self.tables)
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

    def name_columns(self, node: exp.Expr) -> exp.Expr:
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

    def lift_qualify(self, tree: exp.Expr) -> exp.Expr:
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

    def filter_in_window(self, node: exp.Expr) -> exp.Expr:
        """FILTER on a window function: only `count(*)` has it."""
        if isinstance(node, exp.Window) and isinstance(node.this, exp.Filter):
            counted = node.this.this
            if not isinstance(counted, exp.Count) or not isinstance(counted.this, exp.Star):
                raise UnsupportedError("FILTER on another window function than count(*)")
            condition = node.this.expression.this
            node.set("this", exp.Count(this=exp.Case().when(condition, exp.Literal.number(1))))
        return node

    def ordered_list(self, node: exp.Expr) -> exp.Expr:
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
        rows: exp.Expr = exp.ArrayAgg(this=exp.Struct(expressions=parts))
        if isinstance(node, exp.Filter):
            rows = exp.Filter(this=rows, expression=node.expression.copy())
        taken = exp.Lambda(
            this=exp.Dot(this=exp.to_identifier("one"), expression=exp.to_identifier("taken")),
            expressions=[exp.to_identifier("one")],
        )
        return exp.Transform(this=exp.Anonymous(this="array_sort", expressions=[rows]), expression=taken)

    def compare_rows(self, node: exp.Expr) -> exp.Expr:
        """`(a, b) IS DISTINCT FROM (c, d)`, one by one: Spark compares names of fields as well."""
        if isinstance(node, exp.NullSafeNEQ) and isinstance(node.this, exp.Tuple):
            pairs = zip(node.this.expressions, node.expression.expressions, strict=True)
            return exp.paren(
                exp.or_(*(exp.NullSafeNEQ(this=one.copy(), expression=other.copy()) for one, other in pairs))
            )
        return node

    def cast(self, node: exp.Expr) -> exp.Expr:
        """Integers of more than 64 bits, and `('0x' || x)::BIGINT`: hexadecimal digits as a number."""
        if isinstance(node, exp.Cast) and node.to.this.name in WIDE_TYPES:
            halved = is_half(node.this)
            if halved:
                node.set(
                    "this", exp.Anonymous(this="conv", expressions=[node.this, *map(exp.Literal.number, (16, 10))])
                )
            node.set("to", exp.DataType.build(WIDE_TYPES[node.to.this.name]))
        digits = node.this.unnest() if isinstance(node, exp.Cast) else None
        if isinstance(digits, exp.DPipe) and digits.this.is_string and digits.this.name == "0x":
            node.set(
                "this",
                exp.Anonymous(this="conv", expressions=[digits.expression.copy(), *map(exp.Literal.number, (16, 10))]),
            )
        return node

    def half_of_md5(self, node: exp.Expr) -> exp.Expr:
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

    def function(self, node: exp.Expr) -> exp.Expr:
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

    def index(self, node: exp.Expr) -> exp.Expr:
        """`list[n]`: from 1, and NULL where the list is shorter."""
        if not isinstance(node, exp.Bracket):
            return node
        (place,) = node.expressions
        if not isinstance(place, exp.Column):
            raise UnsupportedError("a place in a list that is no column")
        return exp.Anonymous(this="try_element_at", expressions=[node.this.copy(), exp.cast(place.copy(), "INT")])

    def number(self, node: exp.Expr) -> exp.Expr:
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

    def pattern(self, node: exp.Expr) -> exp.Expr:
        """Patterns: Java's `$` also stands before a last line's end, its `.` knows more ends of lines, and it may take
        the square of a text's length for `x+$`."""
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

    def time(self, node: exp.Expr) -> exp.Expr:
        """Points in time come as texts: a driver in another time zone gives the same."""
        if isinstance(node, exp.Placeholder) and node.name in self.times and not isinstance(node.parent, exp.Cast):
            return exp.cast(node.copy(), exp.DataType.build("TIMESTAMPNTZ"))
        return node

    def refuse_unknown(self, tree: exp.Expr) -> None:
        """What only DuckDB has, by name."""
        for node in tree.find_all(exp.Anonymous):
            if node.name.lower() not in FUNCTIONS:
                raise UnsupportedError(f"the function {node.name.lower()}")
        if any(union.args.get("by_name") for union in tree.find_all(exp.SetOperation)):
            raise UnsupportedError("UNION BY NAME")
        if any(star.args.get("replace") for star in tree.find_all(exp.Star)):
            raise UnsupportedError("* REPLACE")
        if any(column.name.lower() == "rowid" for column in tree.find_all(exp.Column)):
            raise UnsupportedError("rowid")


def everywhere(tree: exp.Expr, rule: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Apply a rule to every part of a statement, to the smallest first."""
    for node in reversed(list(tree.walk())):
        changed = rule(node)
        if node is tree:
            tree = changed
        elif changed is not node:
            node.replace(changed)
    return tree


def is_half(node: exp.Expr) -> bool:
    """Whether an expression is one half of an md5 as a number."""
    node = node.unnest()
    if isinstance(node, exp.BitwiseRightShift):
        return node.expression.name == "64"
    return isinstance(node, exp.BitwiseAnd) and node.expression.name == LOW_64
