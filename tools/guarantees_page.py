"""Writes docs/guarantees.md: every mechanism and variant with its guarantee, formula, assumptions, gaps and numbers.

Run `python -m tools.guarantees_page` to write the page, with `--check` to fail when it is out of date. Every number on
it is computed by the mechanisms' own functions when the page is made; here are only words and layout.
"""

from __future__ import annotations

import sys
from fractions import Fraction

from qlog_assets.mechanisms.mechanism import Mechanism
from qlog_assets.mechanisms.register import mechanism as known
from qlog_assets.mechanisms.register import mechanisms
from qlog_assets.privacy.bounds import exp_at_most
from qlog_assets.privacy.composition import Noise, geometric_epsilon, pure_epsilon, pure_rho, zcdp_epsilon
from qlog_assets.privacy.guarantee import Guarantee
from qlog_assets.report.markdown import bound, finite, loss, number, plain, table
from tools.pages import DOCS, main

PAGE = DOCS / "guarantees.md"

INTRODUCTION = """\
# What each mechanism guarantees

This page is generated: `make docs` writes it, and a test fails when it is out of date. All numbers come from the
functions that price a release (`qlog guarantee MECHANISM --variant VARIANT`).

## How to read it

**The guarantee.** A release is (ε, δ)-differentially private if, for any two logs that differ in one user, every
possible result is at most e^ε times as likely with one log as with the other, except for a probability of δ. It holds
against a reader who knows everybody else's searches and keeps every release for ever. The reader's computing power is
bounded: random bits come from AES-256 in counter mode, keyed by the operating system, and manifests commit to the
ledger by salted SHA-256. δ is the chance of an exception, so it must be far below one in the number of users. Every
bound here, in manifests and in datasheets is rounded up.

**The unit is one user id**, with everything that id did in the month of the release; the ledger adds the months up. The
relation is *add or remove one user*, or, where a variant says so, *replace one user*, which costs at most twice as
much ε. A person with several ids has a weaker guarantee (see the last section).

**Claimed and proven.** *Claimed* is what the variant's own theorem says. *Proven* is what holds for the release as a
whole; *none* means that no finite ε covers it. A paper's variant exists to reproduce and compare the paper's numbers:
it runs in studies, and the door never publishes it, whatever is proven of it, because its noise is a floating-point
number. Only variants marked *publishable* become releases, and the ledger is charged with what is proven of them.

**What the guarantee is not.** It does not say that nothing can be learned about a person: a reader may conclude from a
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

CHOOSING = """\
## Choosing parameters

A guarantee holds for parameters that were fixed without looking at the log. `qlog simulate` and `qlog study` draw from
the real month: their results are private, and whoever tries settings there and releases the best lets the log choose.
That choice is printed in the manifest, and no ε here covers it: between two settings it can tell one bit of the log,
among a hundred nearly seven, and that bit may be about one user. It makes no difference whether the month looked at is
the one released or an earlier one: most users are in both.

So choose on data that is not the log: [`qlog plan`](planning.md) tries settings on made-up users and reads no log;
`qlog synth` makes a log of the same shape for everything else. A public constant (the size of the log to one digit, a
limit from the literature) is fine. Simulate a month after its release, to see what the noise did. If settings must be
tuned on real data, tune on data that is never released and whose users are in no release, and say so in the
publication.
"""

PEOPLE = """\
## Several ids of one person

The guarantee is made to a user id. A person behind g ids has (g·ε, g·e^((g-1)·ε)·δ). An attacker's fake accounts do not
weaken anybody's guarantee: it already assumes that the reader knows all other records.
"""


def page() -> str:
    """The whole page as Markdown."""
    sections = [INTRODUCTION, factors(), summary()]
    sections += [mechanism_section(mechanism) for mechanism in mechanisms()]
    sections += [
        ACROSS + "\n" + accounting_table(),
        ACROSS_RELEASES + "\n" + year_table(),
        PEOPLE + "\n" + people_table(),
        CHOOSING,
    ]
    return "\n".join(section.rstrip() + "\n" for section in sections)


def factors() -> str:
    """What ε means as a factor and as a bound on a guess."""
    rows = [
        (
            number(epsilon),
            bound(exp_at_most(epsilon)),
            f"{bound(100 * exp_at_most(epsilon) / (1 + exp_at_most(epsilon)), 6 if epsilon > 8 else 4)} %",
        )
        for epsilon in (0.1, 0.5, 1, 2, 4, 8, 16)
    ]
    words = "What ε means to somebody who would otherwise toss a coin about whether a person is in the log:\n\n"
    return words + table(("ε", "factor e^ε", "at best right in"), rows)


def summary() -> str:
    """All mechanisms and variants at their default parameters."""
    rows = []
    for mechanism in mechanisms():
        for variant in mechanism.variants:
            guarantee = guaranteed(mechanism, variant)
            rows.append(
                (
                    mechanism.name,
                    variant,
                    "yes" if guarantee.publishable else "no",
                    loss(guarantee.claimed),
                    loss(guarantee.proven),
                    guarantee.label,
                )
            )
    return "## At a glance, with default parameters\n\n" + table(
        ("mechanism", "variant", "publishable", "claimed (ε, δ)", "proven (ε, δ)", "kind of guarantee"), rows
    )


def mechanism_section(mechanism: Mechanism) -> str:
    """One mechanism: what its paper claims, each variant, examples, and its parameters."""
    guarantees = [guaranteed(mechanism, variant) for variant in mechanism.variants]
    lines = [f"## {mechanism.name}", "", mechanism.summary, "", f"**The paper.** {guarantees[0].paper}", ""]
    for guarantee in guarantees:
        lines += variant_section(guarantee)
    if mechanism.examples is not None:
        lines += [mechanism.examples(), ""]
    lines += [f"**Parameters of {mechanism.name}** and their symbols:", ""]
    fields = mechanism.parameters.model_fields
    released = mechanism.parameters().as_public()
    rows = [
        (f"`{name}`", plain(released[name]), " ".join((field.description or "").split()))
        for name, field in fields.items()
    ]
    return "\n".join(lines) + "\n" + table(("name", "default", "meaning"), rows)


def variant_section(guarantee: Guarantee) -> list[str]:
    """One variant in words, formula, parts, assumptions and gaps."""
    lines = [f"### {guarantee.mechanism}, {guarantee.variant}", "", guarantee.sentence, ""]
    lines += [f"    {guarantee.formula}", ""]
    rows = [(part.name, loss(part.claimed), loss(part.proven), part.sentence) for part in guarantee.parts]
    if rows:
        lines += [table(("part", "claimed", "proven", "why"), rows), ""]
    if guarantee.thresholds:
        thresholds = ", ".join(f"{name.replace('_', ' ')} {least}" for name, least in guarantee.thresholds.items())
        lines += [f"Thresholds: {thresholds}.", ""]
    accounted = guarantee.accounted()
    if accounted is not None:
        lines += [f"By exact accounting of its noise the same release is {loss(accounted)}.", ""]
    lines += [f"Neighbouring logs: {guarantee.relation}. It assumes that", ""]
    *assumptions, last = guarantee.assumptions
    lines += [*(f"- {assumption};" for assumption in assumptions), f"- {last}.", ""]
    if guarantee.gaps:
        lines += ["Known gaps:", "", *(f"- {gap.rstrip('.')}." for gap in guarantee.gaps), ""]
    return lines


# Adding up ----------------------------------------------------------------------------------------------------------


def accounting_table() -> str:
    """The sum, the exact ε and the zCDP ε of counts at scale 10."""
    rows = []
    for counts in (10, 30, 150, 600):
        noises = [Noise(counts, Fraction(10))]
        rho = counts * pure_rho(Fraction(1, 10))
        exact, converted = geometric_epsilon(noises, 1e-6), zcdp_epsilon(rho, 1e-6)
        rows.append((str(counts), bound(pure_epsilon(noises)), bound(exact), bound(converted)))
    return table(("counts per user, b = 10", "sum of ε", "exact ε at 1e-6", "by zCDP at 1e-6"), rows)


def year_table() -> str:
    """Twelve default Safelog releases by the sum and by the zCDP filter."""
    month = finite(guaranteed(known("safelog"), "sound").proven)
    rho = 12 * Fraction(month.rho or 0)
    rows = [
        ("sum", bound(12 * month.epsilon), bound(12 * month.delta)),
        (
            "zCDP filter, converted at 1e-6",
            bound(zcdp_epsilon(rho, 1e-6)),
            bound(12 * month.delta + Fraction(1, 10**6)),
        ),
    ]
    return table(("rule", "ε", "δ"), rows)


def people_table() -> str:
    """The guarantee to a person with several ids."""
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    rows = [
        (str(ids), bound(ids * epsilon), bound(ids * exp_at_most((ids - 1) * epsilon) * delta)) for ids in (1, 2, 3, 5)
    ]
    return "At (1, 1e-6):\n\n" + table(("ids", "ε", "δ"), rows)


# Pieces --------------------------------------------------------------------------------------------------------------


def guaranteed(mechanism: Mechanism, variant: str) -> Guarantee:
    """A variant at its default parameters."""
    return mechanism.guarantee(variant, mechanism.parameters())


if __name__ == "__main__":
    sys.exit(main(PAGE, page, "python -m tools.guarantees_page"))
