"""The old place of `dragoman.tools.web.links`, until version 0.3."""

from dragoman.base.moved import passing_on

__getattr__ = passing_on(__name__, "dragoman.tools.web.links")
