"""Google's accountant, which knows nothing of ours: the independent check of exact composition."""

from __future__ import annotations

from collections.abc import Sequence

from qlog_assets.privacy.composition import Noise


def accountant_epsilon(noises: Sequence[Noise], delta: float) -> float:
    """The ε of these noises at δ by `dp-accounting`, whose losses are rounded up to a grid of 1e-4."""
    # Here and not above: it brings a logging handler along that closes whatever standard error it found.
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = None
    for noise in noises:
        if noise.counts:
            one = pld.from_discrete_laplace_mechanism(float(1 / noise.scale), sensitivity=1)
            many = one.self_compose(noise.counts)
            total = many if total is None else total.compose(many)
    return 0.0 if total is None else float(total.get_epsilon_for_delta(delta))
