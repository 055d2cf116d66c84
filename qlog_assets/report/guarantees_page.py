"""Writes docs/guarantees.md: every mechanism and variant with its promise, formula, assumptions, gaps and numbers.

Run `python -m qlog_assets.report.guarantees_page` to write the page, with `--check` to fail when it is out of date.
Every number on it is computed by `privacy/guarantees` when the page is made; here are only words and layout.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from qlog_assets.errors import QlogError
from qlog_assets.mechanisms.crowd.guarantee import artifact_threshold, user_threshold
from qlog_assets.mechanisms.guarantees import guarantee, mechanisms, parameter_model, variants
from qlog_assets.mechanisms.sanitized.guarantee import largest_output, user_budget
from qlog_assets.privacy.composition import Noise, geometric_epsilon, pure_epsilon, pure_rho, zcdp_epsilon
from qlog_assets.privacy.guarantee import Guarantee, PrivacyLoss
from qlog_assets.privacy.parameters import AOL_USERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guarantees.md"

INTRODUCTION = """\
# What each mechanism promises

This page is generated: `python -m qlog_assets.report.guarantees_page` writes it, and a test fails when it is out of
date. All numbers come from the functions that price a release (`qlog guarantee MECHANISM --variant VARIANT`).

## How to read it

**The promise.** A release is (ε, δ)-differentially private if, for any two logs that differ in one user, every possible
result is at most e^ε times as likely with one log as with the other, except for a probability of δ. It holds against a
reader who knows everybody else's searches, has unlimited computing power, and keeps every release for ever. δ is the
chance of an exception, so it must be far below one in the number of users.

**The unit is one user id**, with everything that id did in the month of the release; the ledger adds the months up. The
relation is *add or remove one user*, or, where a variant says so, *replace one user*, which costs at most twice as
much ε. A person with several ids has a weaker promise (see the last section).

**Claimed and proven.** *Claimed* is what the variant's own theorem says. *Proven* is what holds for the release as a
whole; *none* means that no finite ε covers it. A paper's variant exists to reproduce and compare the paper's numbers:
it runs in studies, and the door never publishes it, whatever is proven of it, because its noise is a floating-point
number. Only variants marked *publishable* become releases, and the ledger is charged with what is proven of them.

**What the promise is not.** It does not say that nothing can be learned about a person: a reader may conclude from a
release that people of some kind search for something. It says that the conclusion would have been about as likely had
this person's searches never been in the log.
"""

ACROSS = """\
## Adding up

**Inside one release** all parameters are fixed before anything is drawn. The sum of the tables' ε is what the ledger is
charged. Where every table is a set of two-sided geometric counts, the law of the privacy loss is known exactly: one
count moved by 1 under noise of scale b has loss +1/b or -1/b (randomised response), and counts add up. The exact ε at
some extra δ is smaller than the sum, and `qlog guarantee` reports it as `accounted`. Thresholds' δ comes on top.
"""

ACROSS_RELEASES = """\
**Across releases** the next one may be chosen after seeing the last, so only rules that survive this are enforced: the
plain sum of ε and δ, or the zCDP filter, which adds ρ and δ and converts once at a δ set aside. Exact laws of single
releases must not be added up there; they are only reported.

Twelve monthly releases at the default Safelog parameters, for a user who is in all twelve months:
"""

PEOPLE = """\
## Several ids of one person

The promise is made to a user id. A person behind g ids has (g·ε, g·e^((g-1)·ε)·δ). An attacker's fake accounts do not
weaken anybody's promise: it already assumes that the reader knows all other records.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or with `--check` compare it: 0 if current, 1 if not, 2 on a wrong argument."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given not in ([], ["--check"]):
        print("usage: python -m qlog_assets.report.guarantees_page [--check]", file=sys.stderr)
        return 2
    text = page()
    if given:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/guarantees.md is out of date: run python -m qlog_assets.report.guarantees_page", file=sys.stderr)
        return 1
    if not PAGE.parent.is_dir():
        raise QlogError("there is no docs directory beside this package: run from a checkout")
    PAGE.write_text(text, encoding="utf-8")
    return 0


def page() -> str:
    """The whole page as Markdown."""
    sections = [INTRODUCTION, factors(), summary()]
    sections += [mechanism_section(mechanism) for mechanism in mechanisms()]
    sections += [
        ACROSS + "\n" + accounting_table(),
        ACROSS_RELEASES + "\n" + year_table(),
        PEOPLE + "\n" + people_table(),
    ]
    return "\n".join(section.rstrip() + "\n" for section in sections)


def factors() -> str:
    """What ε means as a factor and as a bound on a guess."""
    rows = [
        (
            number(epsilon),
            number(math.exp(epsilon)),
            f"{100 / (1 + math.exp(-epsilon)):.4g} %",
        )
        for epsilon in (0.1, 0.5, 1, 2, 4, 8, 16)
    ]
    words = "What ε means to somebody who would otherwise toss a coin about whether a person is in the log:\n\n"
    return words + table(("ε", "factor e^ε", "at best right in"), rows)


def summary() -> str:
    """All mechanisms and variants at their default parameters."""
    rows = []
    for mechanism in mechanisms():
        for variant in variants(mechanism):
            promise = promised(mechanism, variant)
            rows.append(
                (
                    mechanism,
                    variant,
                    "yes" if promise.publishable else "no",
                    loss(promise.claimed),
                    loss(promise.proven),
                    promise.label,
                )
            )
    return "## At a glance, with default parameters\n\n" + table(
        ("mechanism", "variant", "publishable", "claimed (ε, δ)", "proven (ε, δ)", "kind of promise"), rows
    )


def mechanism_section(mechanism: str) -> str:
    """One mechanism: what its paper claims, each variant, examples, and its parameters."""
    promises = [promised(mechanism, variant) for variant in variants(mechanism)]
    lines = [f"## {mechanism}", "", f"**The paper.** {promises[0].paper}", ""]
    for promise in promises:
        lines += variant_section(promise)
    lines += [EXAMPLES[mechanism](), "", f"**Parameters of {mechanism}** and their symbols:", ""]
    fields = parameter_model(mechanism).model_fields
    released = parameter_model(mechanism)().as_public()
    rows = [
        (f"`{name}`", plain(released[name]), " ".join((field.description or "").split()))
        for name, field in fields.items()
    ]
    return "\n".join(lines) + "\n" + table(("name", "default", "meaning"), rows)


def variant_section(promise: Guarantee) -> list[str]:
    """One variant in words, formula, parts, assumptions and gaps."""
    lines = [f"### {promise.mechanism}, {promise.variant}", "", promise.sentence, "", f"    {promise.formula}", ""]
    rows = [(part.name, loss(part.claimed), loss(part.proven), part.sentence) for part in promise.parts]
    if rows:
        lines += [table(("part", "claimed", "proven", "why"), rows), ""]
    if promise.thresholds:
        thresholds = ", ".join(f"{name.replace('_', ' ')} {least}" for name, least in promise.thresholds.items())
        lines += [f"Thresholds: {thresholds}.", ""]
    accounted = promise.accounted()
    if accounted is not None:
        lines += [f"By exact accounting of its noise the same release is {loss(accounted)}.", ""]
    lines += [f"Neighbouring logs: {promise.relation}. It assumes that", ""]
    lines += [f"- {assumption};" for assumption in promise.assumptions[:-1]] + [f"- {promise.assumptions[-1]}.", ""]
    if promise.gaps:
        lines += ["Known gaps:", "", *(f"- {gap.rstrip('.')}." for gap in promise.gaps), ""]
    return lines


# Examples -------------------------------------------------------------------------------------------------------------


def safelog_examples() -> str:
    """Table 3 of the paper beside what its parameters cost once the algorithm is repaired."""
    setting = {"threshold": 10, "selection_scale": 10, "query_scale": 10, "click_scale": 10}
    rows = []
    for limit, printed in ((10, 4.27), (50, 21.36), (100, 42.73), (150, 64.09), (200, 85.45)):
        setting |= {"queries_per_user": limit, "clicks_per_user": limit}
        claim = promised("safelog", "paper", transition_scale=None, **setting)
        sound = promised("safelog", "sound", transition_scale=None, **setting)
        complete = promised("safelog", "sound", transition_scale=10, **setting)
        tight = claim.figures["epsilon_with_tight_alpha"]
        row = [str(limit), f"{printed:.2f}", f"{finite(claim.claimed).epsilon:.2f}", f"{tight:.2f}"]
        row += [number(finite(release.proven).epsilon) for release in (sound, complete)]
        rows.append([*row, loss(complete.accounted())])
    heads = ("q_f = c_f", "printed ε", "Theorem 1", "with tight α", "sound", "and transitions", "accounted (ε, δ)")
    turning = promised("safelog", "paper", threshold=100).figures["turning_point_scale"]
    return (
        "**Examples.** Table 3 of the paper (K = b = b_q = b_c = 10, transitions left out); the same formula with a "
        "tight bound; and the sound release at these scales with δ = 1e-6, which needs one noise a query, not two:\n\n"
        + table(heads, rows)
        + f"\n\nThe paper advises to set b near the turning point of its ε (K = 100: b = {turning:.2f}). That is "
        "an artefact of a loose bound: with tight α selection costs q_f/b, and more noise is always more private."
    )


def zealous_examples() -> str:
    """Thresholds of the theorem and of the stability histogram at the same budget."""
    rows = []
    for items, epsilon in ((1, "2.3"), (5, "2.3"), (10, "10"), (20, "10")):
        setting = {"items_per_user": items, "epsilon": epsilon, "kinds": ("queries",)}
        paper, sound = promised("zealous", "paper", **setting), promised("zealous", "sound", **setting)
        row = [str(items), epsilon, number(paper.figures["noise_scale"]), str(paper.thresholds["before_noise"])]
        row += [f"{paper.figures['noisy_threshold']:.1f}", number(sound.figures["noise_scale"])]
        rows.append([*row, str(sound.thresholds["queries"])])
    heads = ("m", "ε", "paper λ", "paper τ", "paper τ′", "sound scale", "sound T")
    return f"**Examples.** One kind of items, δ = 1e-6, U = {AOL_USERS:,}:\n\n" + table(heads, rows)


def session_examples() -> str:
    """Table 4 of the paper, the sum with clicks, and one noise instead of two."""
    printed = [(1, 10, 1, 3), (1, 20, 1, 3), (1, 30, 1, 3), (3, 20, 1, 3), (3, 30, 1, 3), (1, 20, 1, 4)]
    printed += [(2, 30, 1, 4), (1, 20, 2, 3), (2, 30, 2, 3)]
    rows = []
    for scale, threshold, sessions, queries in printed:
        setting = {"session_scale": scale, "click_scale": scale, "threshold": threshold}
        setting |= {"sessions_per_user": sessions, "queries_per_session": queries}
        both, sound = promised("sessions", "paper", **setting), promised("sessions", "sound", **setting)
        row = [f"{scale}, {threshold}, {sessions}, {queries}", f"{both.figures['subsequences_per_user']:.0f}"]
        rows.append([*row, loss(both.parts[0].claimed), loss(both.proven), loss(sound.proven)])
    heads = ("b, K, l_s, l_q", "Δ", "A_Session as printed", "with clicks (l = 4)", "sound, both")
    return "**Examples.** The rows of the paper's Table 4:\n\n" + table(heads, rows)


def crowd_examples() -> str:
    """How many artifacts each threshold allows."""
    epsilon, delta = math.log(10), 1 / (AOL_USERS + 1)
    least = [
        (str(d), f"{artifact_threshold(d, epsilon, delta):.2f}", f"{user_threshold(d, epsilon, delta):.2f}")
        for d in (1, 2, 3, 5, 10, 20)
    ]
    allowed = []
    for threshold in (5, 6, 7, 13, 20, 50, 100, 200):
        figures = [promised("crowd", variant, threshold=threshold).figures for variant in ("dp_a", "dp_u")]
        allowed.append((str(threshold), *(f"{found['artifacts_allowed']:.0f}" for found in figures)))
    return (
        f"**Examples.** ε = ln 10, δ = 1/(n+1), n = {AOL_USERS:,}. Least thresholds for d artifacts a user:\n\n"
        + table(("d", "k_a", "k_u"), least)
        + "\n\nand the largest d that a threshold k allows (the paper says one for k up to 7):\n\n"
        + table(("k", "DP_a", "DP_u"), allowed)
    )


def sanitized_examples() -> str:
    """The paper's output sizes beside what its constraints allow."""
    rows = [
        (
            number(ratio),
            number(delta),
            number(user_budget(math.log(ratio), delta)),
            number(largest_output(1980, math.log(ratio), delta)),
            f"{size:,}",
        )
        for ratio, delta, size in (
            (1.001, 1e-4, 3759),
            (1.01, 1e-2, 4879),
            (1.1, 0.1, 8382),
            (1.4, 0.5, 11419),
            (2.0, 0.5, 13088),
            (2.3, 0.8, 13901),
        )
    ]
    heads = ("e^ε", "δ", "B", "most tuples, n·B", "printed in Table 4")
    return "**Examples.** The paper's log has n = 1,980 users:\n\n" + table(heads, rows)


EXAMPLES = {
    "safelog": safelog_examples,
    "zealous": zealous_examples,
    "sessions": session_examples,
    "crowd": crowd_examples,
    "sanitized": sanitized_examples,
}


def accounting_table() -> str:
    """The sum, the exact ε and the zCDP ε of counts at scale 10."""
    rows = []
    for counts in (10, 30, 150, 600):
        noises = [Noise(counts, Fraction(10))]
        rho = counts * pure_rho(Fraction(1, 10))
        exact, converted = geometric_epsilon(noises, 1e-6), zcdp_epsilon(rho, 1e-6)
        rows.append((str(counts), number(pure_epsilon(noises)), f"{exact:.2f}", f"{converted:.2f}"))
    return table(("counts a user, b = 10", "sum of ε", "exact ε at 1e-6", "by zCDP at 1e-6"), rows)


def year_table() -> str:
    """Twelve default Safelog releases by the sum and by the zCDP filter."""
    month = finite(promised("safelog", "sound").proven)
    rho = 12 * Fraction(month.rho or 0)
    rows = [
        ("sum", number(12 * month.epsilon), number(12 * month.delta)),
        (
            "zCDP filter, converted at 1e-6",
            f"{zcdp_epsilon(rho, 1e-6):.2f}",
            number(12 * month.delta + Fraction(1, 10**6)),
        ),
    ]
    return table(("rule", "ε", "δ"), rows)


def people_table() -> str:
    """The promise to a person with several ids."""
    epsilon, delta = 1.0, 1e-6
    rows = [
        (str(ids), number(ids * epsilon), number(ids * math.exp((ids - 1) * epsilon) * delta)) for ids in (1, 2, 3, 5)
    ]
    return "At (1, 1e-6):\n\n" + table(("ids", "ε", "δ"), rows)


# Layout ---------------------------------------------------------------------------------------------------------------


def promised(mechanism: str, variant: str, **changes: Any) -> Guarantee:
    """A variant at its default parameters, but for some changes."""
    return guarantee(mechanism, variant, parameter_model(mechanism)(**changes))


def finite(found: PrivacyLoss | None) -> PrivacyLoss:
    """A loss that an example relies on."""
    if found is None:
        raise QlogError("an example on the page has no finite loss")
    return found


def loss(found: PrivacyLoss | None) -> str:
    """(ε, δ) in print, or `none`."""
    return "none" if found is None else f"({number(found.epsilon)}, {number(found.delta)})"


def number(value: Fraction | float) -> str:
    """Four significant digits, without an exponent where that is readable."""
    return f"{float(value):.4g}".replace("e-0", "e-").replace("e+0", "e")


def plain(value: object) -> str:
    """A default in print."""
    if value is None:
        return "off or derived"
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a bar inside a cell is escaped."""
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
