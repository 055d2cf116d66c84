"""How a release is cited: as a sentence, as BibTeX and as `CITATION.cff`, from the manifest alone.

Datasheet and the release's other public files print the same. What the owner of the data set says (publisher, licence)
is their text: it is made safe for each format here, and nothing else is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from qlog_assets.months import month_name
from qlog_assets.report.datasheet_numbers import numbers_of
from qlog_assets.report.manifest import words_of

LICENCES = {
    "CC0-1.0": "https://creativecommons.org/publicdomain/zero/1.0/",
    "CC-BY-4.0": "https://creativecommons.org/licenses/by/4.0/",
    "CC-BY-SA-4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
    "CC-BY-NC-4.0": "https://creativecommons.org/licenses/by-nc/4.0/",
    "CC-BY-NC-SA-4.0": "https://creativecommons.org/licenses/by-nc-sa/4.0/",
    "CC-BY-ND-4.0": "https://creativecommons.org/licenses/by-nd/4.0/",
    "CC-BY-NC-ND-4.0": "https://creativecommons.org/licenses/by-nc-nd/4.0/",
    "ODbL-1.0": "https://opendatacommons.org/licenses/odbl/1-0/",
    "ODC-By-1.0": "https://opendatacommons.org/licenses/by/1-0/",
    "PDDL-1.0": "https://opendatacommons.org/licenses/pddl/1-0/",
}
"""The SPDX names of licences for data, and where they stand. Fixed here: files that are made again keep their bytes."""
SHORT_LICENCES = {"CC0": "CC0-1.0", "ODBL": "ODbL-1.0", "PDDL": "PDDL-1.0"}
BIBTEX_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\textbraceleft{}", "}": r"\textbraceright{}",
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip


def release_title(manifest: Mapping[str, Any]) -> str:
    """What a release is called wherever it is named in full."""
    return f"Search statistics of {manifest['dataset']}, {month_name(manifest['month'])}"


def release_author(manifest: Mapping[str, Any]) -> str:
    """Who is cited: the publisher as the owner of the data set names them."""
    return one_line(manifest["about"]["publisher"] or "") or f"The publisher of {manifest['dataset']}"


def release_description(manifest: Mapping[str, Any]) -> str:
    """What a release is and what it promises, in two sentences."""
    month = month_name(manifest["month"])
    return (
        f"Statistics of what people searched for in {month}, published with differential privacy: "
        f"{promise_in_short(manifest)}. {manifest['guarantee']['sentence']}"
    )


def promise_in_short(manifest: Mapping[str, Any]) -> str:
    """ε, δ and whose records they protect: `ε = 2, δ = 0.000001 per user`."""
    epsilon, delta = _losses(manifest)
    return f"ε = {epsilon}, δ = {delta} per {manifest['guarantee']['unit']}"


def licence_name(manifest: Mapping[str, Any]) -> str | None:
    """The SPDX name of the release's licence; None where none is stated, or one that is not known by such a name."""
    stated = re.sub(r"\s+", "-", one_line(manifest["about"]["licence"] or "")).upper()
    known = {name.upper(): name for name in LICENCES} | SHORT_LICENCES
    return known.get(stated)


def citation_text(manifest: Mapping[str, Any]) -> str:
    """The release as a list of references names it."""
    author = release_author(manifest).rstrip(".")
    return (
        f"{author} ({_year(manifest)}). {release_title(manifest)} [Data set]. Release {manifest['release_id']}. "
        f"Differentially private: {promise_in_short(manifest)}."
    )


def citation_bibtex(manifest: Mapping[str, Any]) -> str:
    """The release as an entry of a BibTeX file. `@misc`, which every style knows."""
    epsilon, delta = _losses(manifest)
    fields = {
        "author": "{" + _bibtex(release_author(manifest)) + "}",
        "title": "{" + _bibtex(release_title(manifest)) + "}",
        "year": _year(manifest),
        "howpublished": "Data set",
        "note": f"Release {_bibtex(manifest['release_id'])}, $\\varepsilon = {epsilon}$, $\\delta = {delta}$ per "
        f"{_bibtex(manifest['guarantee']['unit'])}",
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@misc{{{manifest['release_id']},", *lines, "}"]) + "\n"


def citation_cff(manifest: Mapping[str, Any]) -> str:
    """The release as a file `CITATION.cff`, version 1.2.0 of the Citation File Format.

    `date-released` is the day of the draw, which the ledger fixes: publishing may follow later and may be repeated, and
    a file that is made again has the same bytes.
    """
    licence, stated = licence_name(manifest), one_line(manifest["about"]["licence"] or "")
    about = release_description(manifest) + (f" Licence: {stated}" if stated else "")
    lines = [
        "cff-version: 1.2.0",
        "message: If you use this data set, please cite it as below.",
        "type: dataset",
        f"title: {_yaml(release_title(manifest))}",
        "authors:",
        f"  - name: {_yaml(release_author(manifest))}",
        f"version: {_yaml(manifest['release_id'])}",
        f"date-released: {_yaml(manifest['drawn_on'])}",
        f"abstract: {_yaml(about)}",
        "keywords:",
        "  - differential privacy",
        "  - query log",
        *([] if licence is None else [f"license: {licence}"]),
    ]
    return "\n".join(lines) + "\n"


def one_line(text: str) -> str:
    """A text from outside on one line: blanks collapsed, and what cannot be seen or turns other text marked."""
    return "".join(
        character if character == " " or unicodedata.category(character)[0] not in "CZ" else "\ufffd"
        for character in re.sub(r"\s+", " ", text).strip()
    )


def _losses(manifest: Mapping[str, Any]) -> tuple[str, str]:
    numbers, guarantee = numbers_of(words_of(manifest)), manifest["guarantee"]
    return numbers.loss(guarantee, "epsilon"), numbers.loss(guarantee, "delta")


def _year(manifest: Mapping[str, Any]) -> str:
    """The year in which it was drawn, which is when it came into being."""
    return str(manifest["drawn_on"])[:4]


def _bibtex(text: str) -> str:
    return "".join(BIBTEX_SPECIAL.get(character, character) for character in text)


def _yaml(text: str) -> str:
    """A text between quotes: what JSON writes is YAML, as long as nothing in it needs an escape beyond the BMP."""
    return json.dumps(one_line(text), ensure_ascii=False)
