"""What a mechanism is: its parameters, variants, stages and tables, its words, and the attacks it must withstand.

Everything that names mechanisms (policy, jobs, command line, datasheet, audit, pages) reads this type from the
register. Nothing here charges, stores or publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from qlog_assets.attacks.case import Case
from qlog_assets.errors import ParameterError
from qlog_assets.mechanisms.expectations import Expectation, expect_thresholds
from qlog_assets.months import Month
from qlog_assets.pipeline.public_material import PUBLIC_LISTS, PublicLists
from qlog_assets.pipeline.stage import Inputs, Stage
from qlog_assets.pipeline.steering import Steering
from qlog_assets.privacy.guarantee import FIRST_WORDS, WORDS, Guarantee
from qlog_assets.privacy.parameters import Parameters
from qlog_assets.privacy.randomness import RandomSource
from qlog_assets.report.account import Account, general_account
from qlog_assets.report.table_noise import TableNoise
from qlog_assets.report.tables import TableLayout
from qlog_assets.storage.engine import Engine
from qlog_assets.storage.warehouse import Warehouse


@dataclass(frozen=True)
class DrawnTable:
    """A drawn table before publication, in public order: by noisy count and key, so that order tells nothing."""

    rows: pa.Table
    threshold: int | None = None
    """The least noisy count a row may have; None where rows have no counts."""
    threshold_outside_pool: int | None = None
    """The least noisy count of a row whose text is not public, where that is another one."""
    only_public: bool = False
    """Whether every text must have been public before: then no count is high enough for another one."""
    noise: TableNoise | None = None
    """What is publicly known of the noise on the counts, to be published with them: functions of parameters and noisy
    numbers, never of the log. None where rows have no counts, and in draws of versions that did not say."""


@dataclass(frozen=True)
class Drawn:
    """Everything a mechanism drew for one release."""

    tables: dict[str, DrawnTable]
    public_texts: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    """The released texts that were public before anything was drawn: pool queries, listed urls."""


Draw = Callable[..., Drawn]
"""From engine, inputs, variant, parameters and random bits to every table of a release. Where an earlier release may
steer it, the draw takes that as `steering`."""


def refusal(attempt: Callable[[], object]) -> str | None:
    """The words of the ParameterError that an attempt raises; None where it raises none."""
    try:
        attempt()
    except ParameterError as error:
        return str(error)
    return None


@dataclass(frozen=True)
class Promise:
    """What people were told before they gave what a month's releases are made from: the most that they all cost."""

    epsilon: Fraction | None = None
    """None: no number was named."""
    delta: Fraction | None = None


@dataclass(frozen=True)
class Study:
    """How studies draw a variant whose releases are drawn from what no study has, such as people's own reports."""

    draw: Draw
    reads: tuple[str, ...]
    """Of the log and of public lists."""


@dataclass(frozen=True)
class Variant:
    """One way to run a mechanism: what it promises, and how it draws."""

    guarantee: Callable[[Any], Guarantee]
    draw: Draw | None = None
    """None: known by its formula alone."""
    reads: tuple[str, ...] | None = None
    """What the draw reads, where that is not the mechanism's own stages: a paper may cap nobody."""
    study: Study | None = None
    """How studies draw it, where that is another way than a release's. None: as `draw` and `reads` say."""
    as_studied: Callable[[Any, PublicLists], Any] = lambda parameters, lists: parameters
    """Where `reads` is set: the parameters with what it reads of the policy's public lists, such as their size."""
    leaves_out: frozenset[str] = frozenset()
    """The parameters of other variants, which came after this one or which this one never reads: no part of a request
    for it, so that neither their values nor their being there make another request of the same release."""
    steered: Callable[[Any], bool] | None = None
    """Whether, with these parameters, the release of an earlier month steers the draw. None: it never does."""
    ignores: Callable[[Any], Collection[str]] = lambda parameters: ()
    """The parameters that, at these values, neither the guarantee nor the draw reads: a manifest does not print them.
    What is charged stays whole, so that a request which was made before such a rule is still the same request."""
    refuses: Callable[[Any, Mapping[str, int]], str | None] = lambda parameters, list_rows: None
    """Why a draw with these parameters and public lists of so many rows cannot be had; None where it can. Public
    numbers alone: asked before anything is charged, so that no draw fails half-way for a reason known before."""
    expects: Callable[[Any, Mapping[str, int]], Sequence[Expectation]] | None = None
    """What is known in public of a draw with these parameters and public lists of so many rows, those whose size is
    known. None: what the guarantee's thresholds tell."""
    earlier_words: Callable[[Guarantee, Any, int], Guarantee] | None = None
    """From today's guarantee to what a version of the public words before today's said. None: nothing has changed."""

    @property
    def in_study(self) -> Variant:
        """The variant as studies draw it."""
        return self if self.study is None else replace(self, draw=self.study.draw, reads=self.study.reads)


WHOEVER_RUNS_IT = (
    "Whoever runs qlog holds the whole log: trust them to keep it, to draw the noise once and to publish only what was "
    "drawn. Readers of a release need not be trusted."
)


@dataclass(frozen=True)
class Mechanism:
    """One published system as implemented here."""

    name: str
    title: str
    summary: str
    """What it releases, in a line."""
    version: int
    """Raised by hand whenever the law of the output changes; a test pins it to the sources that decide it."""
    parameters: type[Parameters]
    """What decides a release: goes into ledger and manifest."""
    variants: Mapping[str, Variant]
    """The first one is what a release uses unless the policy says otherwise."""
    stages: tuple[Stage, ...] = ()
    """From the cleaned log, or an origin of their own, to what is drawn from; in order."""
    tables: tuple[TableLayout, ...] = ()
    """What is published. Without tables the mechanism can be studied and not released."""
    trust: str = WHOEVER_RUNS_IT
    """Whom people must trust who are in the log, in a sentence or two."""
    account: Callable[[Mapping[str, Any]], Account] = general_account
    """From a manifest to what the datasheet says of it."""
    attacks: Callable[[], Sequence[Case]] = tuple
    """The cases that hold its variants to their claims."""
    examples: Callable[[], str] | None = None
    """Worked numbers for the page of guarantees, as Markdown."""
    section: type[Parameters] | None = None
    """The policy's section, where it holds more than the parameters, such as the choice of a variant."""
    resolve: Callable[[Any, PublicLists], Any] = lambda section, lists: section
    """From the policy's section and public lists to the parameters of a release. Parts that cannot hold a row, by what
    the policy says, are off in them: nothing is paid for such a part."""
    as_variant: Callable[[Any, str], Any] = lambda section, variant: section
    """The policy's section for somebody who tries a variant that it does not choose, where defaults hang on that."""
    switched_off: Callable[[Any, PublicLists], Sequence[str]] = lambda section, lists: ()
    """The parts that `resolve` switches off, each with the reason, as sentences."""
    at_cost: Callable[[Any, Fraction, Fraction], Any] = lambda section, epsilon, delta: section.with_changes(
        epsilon=epsilon, delta=delta
    )
    """The policy's section with a release that costs at most this ε and δ, its parts in the same proportion."""
    promised: Callable[[Warehouse, Month], Promise] = lambda warehouse, month: Promise()
    """What people were promised of a month, where they were asked for it: the door keeps all draws of the month
    within it together, whatever the budget allows. Public facts alone."""
    stands_for: frozenset[int] = frozenset()
    """Earlier versions whose releases are served as they are: they promise the same at the same price, and only what
    is done with noisy counts was changed since. A month of any other version is refused, as another request."""
    draw_asset: str = ""
    """The asset that asks the door to draw. Empty: `<name>_selected`."""
    released_prefix: str = ""
    """What the names of public tables' assets begin with. Empty: `released_<name>_`."""

    def __post_init__(self) -> None:
        if not self.draw_asset:
            object.__setattr__(self, "draw_asset", f"{self.name}_selected")
        if not self.released_prefix:
            object.__setattr__(self, "released_prefix", f"released_{self.name}_")
        if self.tables:
            self._refuse_unlimited_stages()

    def _refuse_unlimited_stages(self) -> None:
        """What the door relies on: one inspected stage bounds a user; all others follow from it and public lists."""
        limiting = [stage for stage in self.stages if stage.limits_users]
        if len(limiting) != 1 or limiting[0].inspect is None:
            raise ValueError(f"{self.name}: exactly one inspected stage bounds what one user adds to a release")
        known = {limiting[0].name, *PUBLIC_LISTS}
        for stage in self.stages:
            if stage is not limiting[0] and (stage.origin is not None or not set(stage.reads) <= known):
                raise ValueError(f"{self.name}: {stage.name} reads more than {limiting[0].name} and public lists")
            known.add(stage.name)

    @property
    def is_releasable(self) -> bool:
        return bool(self.tables)

    @property
    def is_simulated(self) -> bool:
        """Whether any of its variants can be drawn."""
        return any(variant.draw is not None for variant in self.variants.values())

    def version_asked(self, drawn: int | None) -> int:
        """The version that a request names, where the month has a draw by this one already; None: it has no draw."""
        return drawn if drawn is not None and drawn in self.stands_for else self.version

    @property
    def policy_section(self) -> type[Parameters]:
        return self.section or self.parameters

    @property
    def limited_stage(self) -> Stage:
        """The stage that bounds what one user adds: what limits are counted on before every draw."""
        return next(stage for stage in self.stages if stage.limits_users)

    @property
    def reads_log(self) -> bool:
        """Whether its releases are made from the month's log, and not from something that was collected elsewhere."""
        return any("cleaned_log" in stage.reads for stage in self.stages)

    def was_collected(self, warehouse: Warehouse, month: Month) -> bool:
        """Whether there is anything of a month where it reads no log."""
        return any(stage.origin is not None and bool(stage.origin(warehouse, month)) for stage in self.stages)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The stages that the draw reads."""
        return tuple(stage.name for stage in self.stages)

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The public lists that the stages read."""
        return tuple(name for name in PUBLIC_LISTS if any(name in stage.reads for stage in self.stages))

    @property
    def released_assets(self) -> dict[str, str]:
        """The public tables' assets, by table."""
        return {layout.name: f"{self.released_prefix}{layout.name}" for layout in self.tables}

    @property
    def titles(self) -> dict[str, str]:
        """What the datasheet calls the tables, in the order a reader meets them."""
        return {layout.name: layout.title for layout in self.tables}

    def variant(self, name: str) -> Variant:
        if name not in self.variants:
            raise ParameterError(f"{self.name} has no variant {name!r}: choose one of {', '.join(self.variants)}")
        return self.variants[name]

    def chosen_variant(self, section: Parameters) -> str:
        """The variant that the policy's section chose."""
        return str(getattr(section, "variant", None) or next(iter(self.variants)))

    def chosen_parameters(self, section: Parameters, lists: PublicLists) -> Parameters:
        """The parameters of a release, from the policy's section and what its public lists decide."""
        return self.plain_parameters(self.resolve(section, lists))

    def parameters_of(self, variant: str, section: Parameters, lists: PublicLists) -> Parameters:
        """The parameters of a variant: what public lists decide is decided for a release, and a paper is studied with
        the parameters as they were set."""
        chosen = self.variant(variant)
        if chosen.reads is None:
            return self.chosen_parameters(section, lists)
        studied: Parameters = chosen.as_studied(self.plain_parameters(section), lists)
        return studied

    def charged_parameters(self, variant: str, parameters: Parameters) -> dict[str, Any]:
        """What a request for a variant says of the parameters: what decides the release."""
        left_out = self.variant(variant).leaves_out
        return {name: value for name, value in parameters.as_released().items() if name not in left_out}

    @property
    def may_be_steered(self) -> bool:
        """Whether a month's release may be steered by that of the month before."""
        return any(each.steered is not None for each in self.variants.values())

    def is_steered(self, variant: str, parameters: Parameters) -> bool:
        """Whether a draw of a variant with these parameters looks at the release of an earlier month."""
        steered = self.variant(variant).steered
        return steered is not None and steered(parameters)

    def plain_parameters(self, section: Parameters) -> Parameters:
        """The parameters in a section of the policy, as they stand there."""
        return self.parameters(**{name: getattr(section, name) for name in self.parameters.model_fields})

    def guarantee(self, variant: str, parameters: Parameters, words: int = WORDS) -> Guarantee:
        """What a variant promises with these parameters: before anything is drawn or spent.

        `words` is the version of the public words: a stored draw is told in those that it was made with.
        """
        chosen = self.variant(variant)
        if not isinstance(parameters, self.parameters):
            raise ParameterError(f"{self.name} takes {self.parameters.__name__}, not {type(parameters).__name__}")
        if not FIRST_WORDS <= words <= WORDS:
            raise ParameterError(f"the public words have versions {FIRST_WORDS} to {WORDS}, not {words}")
        found = chosen.guarantee(parameters)
        if (found.mechanism, found.variant) != (self.name, variant):
            raise ParameterError(f"{self.name} {variant} states the guarantee of {found.mechanism} {found.variant}")
        if words < WORDS and chosen.earlier_words is not None:
            return chosen.earlier_words(found, parameters, words)
        return found

    def refuse_unusable(self, variant: str, parameters: Parameters, list_rows: Mapping[str, int] | None = None) -> None:
        """Refuse a request that this variant cannot keep or draw, in one line; `list_rows` are public lists' sizes."""
        reason = self.variant(variant).refuses(parameters, list_rows or {})
        if reason is not None:
            raise ParameterError(f"{self.name} {variant}: {reason}")

    def expectations(
        self, variant: str, parameters: Parameters, list_rows: Mapping[str, int] | None = None
    ) -> tuple[Expectation, ...]:
        """What is known in public of a release before it is drawn; `list_rows` are public lists' sizes."""
        expects = self.variant(variant).expects
        if expects is None:
            return expect_thresholds(self.guarantee(variant, parameters))
        return tuple(expects(parameters, list_rows or {}))

    def printed_parameters(self, variant: str, charged: Mapping[str, Any], words: int = WORDS) -> dict[str, Any]:
        """Of the parameters that were charged for, those that the variant read: what a manifest of these words prints.

        The first words printed them all.
        """
        unread = () if words == FIRST_WORDS else self.variant(variant).ignores(self.parameters(**charged))
        return {name: value for name, value in charged.items() if name not in unread}

    def draw(
        self,
        engine: Engine,
        inputs: Inputs,
        variant: str,
        parameters: Parameters,
        source: RandomSource,
        steering: Steering | None = None,
        *,
        in_study: bool = False,
    ) -> Drawn:
        """Every table of one release, drawn by a variant; `steering` is the earlier release that steers it.

        `in_study`: from what studies read, where that is something else.
        """
        chosen = self.variant(variant).in_study if in_study else self.variant(variant)
        if chosen.draw is None:
            raise ParameterError(f"{self.name} {variant} is known by its formula alone: nothing draws it")
        if self.is_steered(variant, parameters):
            return chosen.draw(engine, inputs, variant, parameters, source, steering=steering)
        if steering is not None:
            raise ParameterError(f"{self.name} {variant} is not steered by an earlier release")
        return chosen.draw(engine, inputs, variant, parameters, source)
