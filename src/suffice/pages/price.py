"""What pages say of a release's loss: its price, and what nobody can tell about one unit."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from suffice.pages.drawing import number
from suffice.pages.rendering import escape, markup
from suffice.pipeline.terms.declaration.loss_in_words import factor_of_rho, guessing_text

if TYPE_CHECKING:
    from markupsafe import Markup

    from suffice.pipeline.terms.declaration.privacy_loss import PrivacyLoss

MOST_READABLE = 10.0
"""The largest epsilon whose factor anybody can read something from."""


_PAIR = re.compile(r"\([0-9.]+, 1e-[0-9]+\)")


def kept_together(text: str) -> Markup:
    """Return a text as HTML whose pairs of epsilon and delta no line breaks.

    Of text a page would write the code of a space that is not the plain one.
    """
    return markup(
        _PAIR.sub(
            lambda pair: pair[0].replace(" ", "\N{NO-BREAK SPACE}").replace("-", "\N{NON-BREAKING HYPHEN}"),
            escape(text),
        )
    )


def price(loss: PrivacyLoss, protected: str) -> str:
    """Say what the loss of a release means, in a sentence."""
    if loss.rho is not None:
        return f"Rho is the price in privacy: with or without any one {protected}, {factor_of_rho(loss.rho)}"
    epsilon = float(loss.amount)
    factor = f" = {number(math.exp(epsilon), 3)}" if epsilon <= MOST_READABLE else ""
    return (
        f"Epsilon is the price in privacy: with or without any one {protected}, no possible release is more "
        f"than e to the {loss.text}{factor} times as likely"
    )


def guarantee_of(loss: PrivacyLoss, unit: str, added: str) -> str:
    """Say what nobody can tell about one unit."""
    if loss.rho is None:
        return (
            f"Nothing here tells much about any one {unit}: with or without it ({added}), every possible "
            f"release is about as likely, within a factor of e to the {loss.text}. That is the whole "
            "guarantee; it is no promise about groups, or about what others know from elsewhere."
        )
    return (
        f"Nothing here tells much about any one {unit}: somebody who knows all else, and holds it for as "
        f"likely to be there as not ({added}), is right about it with a chance of at most "
        f"{guessing_text(loss.rho)}. With or without it, {factor_of_rho(loss.rho)}. That is the whole "
        "guarantee; it is no promise about groups, or about what others know from elsewhere."
    )
