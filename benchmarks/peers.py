"""How many queries each library releases from one log at one (ε, δ): ours, OpenDP and PipelineDP, in one run.

All get the same contributions of the first month: at most d distinct queries per user, chosen by our statement,
another key per draw. Ours goes on to a third month, each steered by the month before, and to logs of other laws. Peers
run in an environment of their own (`benchmarks/requirements-peers.txt` in `.cache/peers`), named as missing where there
is none.
Run from the root of the checkout: `python -m benchmarks.peers [--json] [--picture FILE]`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peer_counts import ask_peer, save_counts
from benchmarks.peer_log import OTHER_LAWS, ROWS, USERS, Law
from benchmarks.peer_months import choose_items, draw_months, draw_ours, draw_with_pool, open_month, score
from benchmarks.peer_plots import draw_picture
from benchmarks.peer_scores import DELTA, EPSILON, MIDDLE, SMALL, expected_at, line
from benchmarks.peer_telling import tell, verdicts

DRAWS = 5
PICTURE = Path("docs/pictures/steered-peers.png")
FIRST_MONTH = (
    (SMALL, ("sound", "truncated_geometric", "gaussian_counts")),
    (MIDDLE, ("gaussian_counts",)),
    (200, ("sips",)),
)
"""Items per user, and the methods that are drawn with so many in a first month only."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    parser.add_argument("--task-only", action="store_true", help="leave out the logs of other laws")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--picture", type=Path, help=f"where the picture goes; {PICTURE} if the log is the task's")
    chosen = parser.parse_args()
    task = Law(rows=chosen.rows, users=chosen.users)
    whole = task == Law()
    results = []
    for result in compare(task, () if chosen.task_only else OTHER_LAWS, chosen.draws):
        # A whole run takes a quarter of an hour: who waits sees how far it is.
        print(*(str(result.get(name, "")) for name in ("log", "month", "library", "method")), file=sys.stderr)
        results.append(result)
    picture = chosen.picture or (PICTURE if whole else None)
    if picture is not None:
        draw_picture(results, picture)
    print(json.dumps(results, indent=1) if chosen.json else tell(results))
    if whole and not chosen.json:
        print("", *verdicts(results), sep="\n")


def compare(task: Law, others: Sequence[Law], draws: int) -> Iterator[dict[str, Any]]:
    """One line for each library, method, log and month, with means over the draws.

    Where nothing is asked for, in the logs of other laws, users' items are chosen once for all draws.
    """
    with tempfile.TemporaryDirectory() as folder:
        yield from draw_first_month(task, draws, folder)
        for library in ("opendp", "pipeline_dp"):
            yield from ask_peer(library, folder)
    yield from draw_months(task, draws, choices=draws)
    for law in others:
        yield from draw_months(law, draws, choices=1)


def draw_first_month(task: Law, draws: int, folder: str) -> Iterator[dict[str, Any]]:
    """What is drawn of the first month only. The counts that the peers get are left in the folder."""
    with open_month(task, 1) as engine:
        for per_user, methods in FIRST_MONTH:
            scores: dict[str, list[dict[str, float]]] = {method: [] for method in methods}
            for draw in range(draws):
                chosen = choose_items(engine, per_user, draw)
                if per_user in (SMALL, MIDDLE):
                    save_counts(folder, per_user, draw, chosen.held_by, chosen.true_users)
                for method in methods:
                    scores[method].append(score(draw_ours(method, per_user, chosen), chosen))
            for method, scored in scores.items():
                at = {"threshold": sound_threshold()} if method == "sound" else {}
                more = {**at, "expected": expected_at(folder, **at)} if at else {}
                yield line("qlog", method, per_user, scored, log=task.name, month=1, **more)
        yield draw_with_pool(engine, task, draws)


def sound_threshold() -> int:
    from qlog_assets.mechanisms.register import guarantee
    from qlog_assets.mechanisms.zealous.parameters import ZealousParameters

    chosen = ZealousParameters(items_per_user=SMALL, kinds=("queries",), epsilon=EPSILON, delta=DELTA)
    return guarantee("zealous", "sound", chosen).thresholds["queries"]


if __name__ == "__main__":
    main()
