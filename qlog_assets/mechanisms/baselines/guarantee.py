"""What k-anonymity promises: nothing that differential privacy would call a promise. No noise."""

from __future__ import annotations

from collections.abc import Callable

from qlog_assets.mechanisms.baselines.parameters import BaselineParameters
from qlog_assets.privacy.guarantee import Guarantee

PAPER = "k-anonymity as people still use it; compared in Götz et al. (III) and in Feild, Allan and Glatt (5.4)."
GAPS = (
    "k - 1 fake accounts that type a query reveal with certainty whether one more user typed it",
    "counts are exact: two releases that differ in one user differ in the counts of everything that user typed",
)
WHOLE_GAPS = (
    *GAPS,
    "everybody behind a printed item may share a sensitive query: whoever knows another query of one of them learns it "
    "with certainty, though k people stand behind the item",
)


def no_guarantee(variant: str, rule: str, gaps: tuple[str, ...] = GAPS) -> Callable[[BaselineParameters], Guarantee]:
    """The statement of a method that cuts on true counts."""

    def guarantee(parameters: BaselineParameters) -> Guarantee:
        return Guarantee(
            mechanism="baselines",
            variant=variant,
            claimed=None,
            proven=None,
            parts=(),
            assumptions=("nobody else controls accounts, and nobody's guesses matter",),
            gaps=gaps,
            paper=PAPER,
            sentence=f"An item is printed with its exact count once {rule.replace('k', str(parameters.k), 1)}. "
            "Somebody who makes the others up learns for certain whether one person holds it.",
            formula=f"printed iff {rule}",
            label="k-anonymity; not differential privacy",
            thresholds={"items": parameters.k},
        )

    return guarantee


by_users = no_guarantee("users", "k different users hold it")
by_frequency = no_guarantee("frequency", "k events have it, whoever made them")
by_secret_sharing = no_guarantee("secret_sharing", "k different users sent their share of its key")
by_histories = no_guarantee("histories", "k different users have it as their whole set of queries", WHOLE_GAPS)
by_sessions = no_guarantee("sessions", "k different users have it as the queries of a whole session", WHOLE_GAPS)
