"""Writes `datasheet.html`: what a release is, what was done to the data, what is promised and how to use it.

One self-contained page made of the manifest and the released tables, both public: no script, nothing fetched, the same
bytes for the same release. Sentences that depend on the mechanism are in `accounts`, pictures in `plots`; here are the
page and the sentences that hold for every release.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from qlog_assets.report.account import Account
from qlog_assets.report.accounts import account
from qlog_assets.report.plots import distribution
from qlog_assets.report.tables import CSV_NOTE, PublishedFile, published

DATASHEET_NAME = "datasheet.html"
EXAMPLE_ROWS = 6
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
# The tables in the order a reader meets them, which is not the alphabet's.
TABLE_TITLES = {
    "keywords": "Words",
    "queries": "Queries",
    "pairs": "Pairs of queries",
    "clicks": "Clicked addresses",
    "transitions": "One query after another",
}
# The page may load nothing at all: a reader can open it anywhere, and it tells nobody that it was opened.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def write_datasheet(manifest: Mapping[str, Any], tables: Mapping[str, pa.Table], directory: Path) -> PublishedFile:
    """Write the datasheet of a release beside its tables."""
    path = directory / DATASHEET_NAME
    path.write_text(render(manifest, tables), encoding="utf-8", newline="\n")
    return published(path)


def render(manifest: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> str:
    """The page as text."""
    manifest = {**manifest, "tables": {name: manifest["tables"][name] for name in _reading_order(manifest)}}
    told = account(manifest)
    title = f"Search statistics of {manifest['dataset']}, {month_name(manifest['month'])}"
    sections = (
        ("What this is", _what(manifest)),
        ("Who made it, and about whom it is", _who(manifest)),
        ("What was done to the data", _list(told.steps, ordered=True)),
        ("What is promised", _promise(manifest)),
        ("What is not promised", _list(_limits(manifest))),
        ("How to use it", _noise(manifest, told) + _list(_cautions(told))),
        ("The tables", "".join(_table(name, manifest, tables[name]) for name in manifest["tables"])),
        ("Files and checksums", _files(manifest)),
        ("Particulars", _particulars(manifest)),
    )
    body = "".join(f"<section><h2>{escape(heading)}</h2>{content}</section>" for heading, content in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_style()}</style>\n</head>\n<body>\n<main>\n"
        f'<header><p class="kind">Datasheet of a differentially private release</p><h1>{escape(title)}</h1>'
        f'<p class="id">Release {_code(manifest["release_id"])}, drawn on {escape(manifest["drawn_on"])}</p>'
        f"{_figures(manifest)}</header>\n{body}\n</main>\n</body>\n</html>\n"
    )


def month_name(month: str) -> str:
    """`2006-03` as March 2006."""
    return f"{MONTHS[int(month[5:]) - 1]} {month[:4]}"


def plain_number(value: float) -> str:
    """A loss as people write it: 1, 0.05, 0.000001."""
    if 0 < value < 1e-12:
        return f"{value:.3g}"
    return f"{Decimal(f'{value:.6g}').normalize():f}"


def odds(value: float) -> str:
    """A small probability as one in so many."""
    return f"one in {round(1 / value):,}"


def _figures(manifest: Mapping[str, Any]) -> str:
    guarantee = manifest["guarantee"]
    figures = [
        (plain_number(guarantee["epsilon"]), "ε, the privacy loss"),
        (plain_number(guarantee["delta"]), "δ, what ε leaves out"),
        *((f"{table['rows']:,}", f"rows of {name.replace('_', ' ')}") for name, table in manifest["tables"].items()),
    ]
    cards = "".join(
        f"<div><strong>{escape(value)}</strong><span>{escape(label)}</span></div>" for value, label in figures
    )
    return f'<div class="figures">{cards}</div>'


def _what(manifest: Mapping[str, Any]) -> str:
    names = [name.replace("_", " ") for name in manifest["tables"]]
    tables = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    again = ""
    if manifest["draw_number"] > 1:
        again = (
            f"<p>This is draw number {manifest['draw_number']} for this month. Each draw was charged by itself, and "
            "whoever holds several of them holds the sum of their losses.</p>"
        )
    return (
        f"<p>Statistics of what people searched for in {escape(month_name(manifest['month']))}, computed from a query "
        f"log and protected by differential privacy: {escape(tables)}, each with the noisy number of "
        "users behind it. It is not a sample of the log and holds no record of any person: no user identifier, no "
        "time, no sequence of one user's searches.</p>"
        "<p>It is meant for research and engineering that needs to know what many people search for: retrieval, "
        f"query suggestion, spelling, mining of interests. It cannot answer what a particular person did.</p>{again}"
    )


def _who(manifest: Mapping[str, Any]) -> str:
    about = manifest["about"]
    rows = [
        ("Data set", manifest["dataset"]),
        ("Publisher", about["publisher"] or "not stated by the owner of the data set"),
        (
            "Population",
            about["population"] or f"the users whose searches the log of {month_name(manifest['month'])} holds",
        ),
        ("Month", month_name(manifest["month"])),
        ("Contact", about["contact"] or "not stated"),
        ("Licence", about["licence"] or "not stated: ask the publisher before you pass it on"),
    ]
    pools = "".join(
        f"<li><strong>{_text(pool['name'])}</strong>: {pool['rows']:,} entries"
        + (f". {_text(pool['description'])}" if pool.get("description") else "")
        + (f" Licence: {_text(pool['licence'])}." if pool.get("licence") else "")
        + "</li>"
        for pool in manifest["pools"]
    )
    public = f"<p>Lists that were used and were public before anything was drawn:</p><ul>{pools}</ul>" if pools else ""
    return _facts(rows) + public


def _promise(manifest: Mapping[str, Any]) -> str:
    guarantee = manifest["guarantee"]
    epsilon, delta = guarantee["epsilon"], guarantee["delta"]
    sure = 100 * math.exp(epsilon) / (1 + math.exp(epsilon)) if epsilon < 700 else 100.0
    exception = (
        "This holds without exception: δ is zero."
        if delta == 0
        else f"Every probability in this statement may in addition be off by δ, which is {odds(delta)}."
    )
    rows = [
        (part["name"].replace("_", " "), plain_number(part["epsilon"]), plain_number(part["delta"]), part["sentence"])
        for part in guarantee["parts"]
    ]
    rows.append(("all of it", plain_number(epsilon), plain_number(delta), "What the publisher's ledger was charged."))
    unit = {"add-or-remove-one-user": "all records of one user, present or absent"}.get(
        guarantee["relation"], guarantee["relation"].replace("-", " ")
    )
    return (
        f"<blockquote>{escape(guarantee['sentence'])}</blockquote>"
        f"<p>An example. Somebody finds it as likely as not that a certain user is in the log. Having read every table "
        f"of this release, and knowing everything about all other users, they can be at most "
        f"<strong>{_percent(sure)} sure</strong>. {escape(exception)}</p>"
        f"<p>What is protected: {escape(unit)}. Its parts, and all of it together:</p>"
        + _grid(("Table", "ε", "δ", "Why"), rows, numbers=(1, 2), labels=(0,))
        + ("<p>What the promise rests on:</p>" + _list(guarantee["assumptions"]) if guarantee["assumptions"] else "")
        + ("<p>Known gaps:</p>" + _list(guarantee["gaps"]) if guarantee["gaps"] else "")
    )


def _limits(manifest: Mapping[str, Any]) -> Iterable[str]:
    epsilon, delta = manifest["guarantee"]["epsilon"], manifest["guarantee"]["delta"]
    yield (
        "Months add up. Who searched in twelve months is in twelve releases: at this month's setting a loss of "
        f"ε = {plain_number(12 * epsilon)} in a year. The publisher's ledger keeps the sum and refuses a release that "
        "would pass the budget."
    )
    # Group privacy: two identifiers have (2ε, 2·e^ε·δ), PRIVACY 1.6.
    doubled = f"ε = {plain_number(2 * epsilon)}"
    if delta > 0:
        doubled += f" and δ = {plain_number(min(1.0, 2 * math.exp(min(epsilon, 700)) * delta))}"
    yield (
        f"The promise is made to a user identifier. For a person with two accounts it holds with {doubled}; people "
        "who share one account are protected together, as one."
    )
    yield (
        "What is true of people in general can still be learnt, and can be applied to a person who never searched. "
        "The promise is that taking part makes little difference, not that nothing can be inferred."
    )
    yield "Nothing is said about the log itself, or about other releases, made elsewhere, from the same users' data."
    yield (
        "The promise does not vouch for the texts. That a query is printed does not mean that it is true, lawful or "
        "fit for children."
    )


def _noise(manifest: Mapping[str, Any], told: Account) -> str:
    """What the noise does to each table, in numbers."""
    if not told.noise_scales:
        return ""
    rows = [
        (
            name.replace("_", " "),
            f"±{_about(scale * math.log(2))}",
            f"±{_about(scale * math.log(20))}",
            f"{manifest['tables'][name]['threshold']:,}",
            _invented(told.expected_inventions.get(name, 0.0)),
        )
        for name, scale in told.noise_scales.items()
    ]
    headings = ("Table", "Half of all noise within", "19 of 20 within", "Least printed count", "Rows from noise alone")
    return _grid(headings, rows, numbers=(1, 2, 3, 4)) + (
        "<p>Rows from noise alone stand for something nobody did: items of a public list, or pairs of released "
        "queries, that noise lifted over the threshold. The table gives at most how many are expected. They cannot "
        "be told from the others, and that is part of the protection.</p>"
    )


def _cautions(told: Account) -> Iterable[str]:
    if told.counts_were_tested:
        yield (
            "Near the threshold, counts are too high on average: a row is printed only where its noisy count reaches "
            "the threshold, so those that noise pushed down are not there to balance those it pushed up."
        )
        yield "A row that is missing does not mean zero: it means a noisy count below the threshold."
    else:
        yield "A row that is missing does not mean zero: it means that the item was not among the chosen."
    yield from told.cautions
    yield CSV_NOTE


def _table(name: str, manifest: Mapping[str, Any], table: pa.Table) -> str:
    facts = manifest["tables"][name]
    title = TABLE_TITLES.get(name, name.replace("_", " ").capitalize())
    columns = _grid(
        ("Column", "Type", "What it holds"),
        [(column["name"], column["type"], column["description"]) for column in facts["columns"]],
        labels=(0, 1),
    )
    if table.num_rows == 0:
        rows = '<p class="empty">The table is empty: nothing reached its threshold. That is a valid result.</p>'
    else:
        headings = [column["name"] for column in facts["columns"]]
        numbers = [place for place, column in enumerate(facts["columns"]) if column["type"] == "integer"]
        first = table.slice(0, EXAMPLE_ROWS).to_pydict()
        cells = list(zip(*([_cell(value) for value in first[heading]] for heading in headings), strict=True))
        examples = _grid(headings, cells, numbers=numbers)
        counts = [heading for place, heading in enumerate(headings) if place in numbers]
        picture = "".join(
            distribution(
                table.column(count).to_numpy(), facts["threshold"], title=f"Rows by noisy count of {count}", unit=count
            )
            for count in counts
        )
        rows = (
            f'<div class="pair"><div><p class="caption">The first {min(EXAMPLE_ROWS, table.num_rows)} of '
            f"{table.num_rows:,} rows, by noisy count</p>{examples}</div><div>{picture}</div></div>"
        )
    outside = facts["threshold_outside_pool"]
    threshold = f"Least printed count: {facts['threshold']:,}"
    if outside is not None and outside != facts["threshold"]:
        threshold += f"; {outside:,} for texts that no public list holds"
    return f'<article><h3>{escape(title)}</h3><p class="caption">{threshold}.</p>{columns}{rows}</article>'


def _files(manifest: Mapping[str, Any]) -> str:
    files = [file for table in manifest["tables"].values() for file in table["files"].values()]
    rows = [(file["path"], f"{file['bytes']:,}", file["sha256"]) for file in files]
    identifier = manifest["release_id"]
    return (
        _grid(("File", "Bytes", "SHA-256"), rows, numbers=(1,), labels=(0,), codes=(2,))
        + "<p>To verify a file, compare its checksum (<code>sha256sum FILE</code>) with this table and with "
        "<code>manifest.json</code>, which holds the same facts for machines and the checksum of this page. Who has "
        f"access to the publisher's warehouse runs <code>qlog audit {escape(identifier)}</code>: it recomputes the "
        "checksums and the guarantee, and holds the manifest against the ledger, whose state the manifest commits to."
        "</p>"
    )


def _particulars(manifest: Mapping[str, Any]) -> str:
    parameters = [
        (key, "off" if value is None else str(value)) for key, value in sorted(manifest["parameters"].items())
    ]
    software = ", ".join(f"{name} {version}" for name, version in sorted(manifest["software"].items()))
    return _facts(
        [
            (
                "Mechanism",
                f"{manifest['mechanism']}, variant {manifest['variant']}, version {manifest['mechanism_version']}",
            ),
            ("Guarantee", manifest["guarantee"]["label"]),
            ("Formula", manifest["guarantee"]["formula"]),
            ("Parameters", "; ".join(f"{key} = {value}" for key, value in parameters)),
            ("Software", software),
        ]
    )


# Pieces of the page -------------------------------------------------------------------------------------------------


def _list(items: Iterable[str], *, ordered: bool = False) -> str:
    tag = "ol" if ordered else "ul"
    return f"<{tag}>{''.join(f'<li>{_text(item)}</li>' for item in items)}</{tag}>"


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{_text(value)}</dd>" for name, value in rows) + "</dl>"


def _grid(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    labels: Sequence[int] = (),
    codes: Sequence[int] = (),
) -> str:
    """A table; `numbers`, `labels` and `codes` are the places of columns that are set as such."""
    classes = {**dict.fromkeys(labels, ' class="label"'), **dict.fromkeys(numbers, ' class="number"')}

    def cells(tag: str, values: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{classes.get(place, '')}>{_code(value) if tag == 'td' and place in codes else _text(value)}</{tag}>"
            for place, value in enumerate(values)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{cells("th", headings)}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _text(value: str) -> str:
    """A text that came from outside: nothing in it is markup, invisible, or able to turn the text around it."""
    shown = "".join(
        character if character == " " or unicodedata.category(character)[0] not in "CZ" else "\ufffd"
        for character in value
    )
    return f"<bdi>{escape(shown)}</bdi>" if not shown.isascii() else escape(shown)


def _code(value: str) -> str:
    return f"<code>{_text(value)}</code>"


def _reading_order(manifest: Mapping[str, Any]) -> list[str]:
    known = list(TABLE_TITLES)
    return sorted(manifest["tables"], key=lambda name: (known.index(name) if name in known else len(known), name))


def _invented(expected: float) -> str:
    return "none" if expected == 0 else f"{expected:.1f}" if expected >= 0.05 else "below 0.1"


def _about(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{round(value):,}"


def _percent(value: float) -> str:
    return f"{value:.0f} %" if value < 99 else f"{min(value, 99.999):.3f} %"


def _style() -> str:
    return Path(__file__).with_name("datasheet.css").read_text(encoding="utf-8")
