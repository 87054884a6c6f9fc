"""An analysis that the tests of it, of its report and of its figures read."""

import pytest

from modeling_triaffine.evaluation.analysis import Analysis


@pytest.fixture(scope="package")
def analysis(encoder) -> Analysis:
    from tests.helpers.analysed import analyse_hostile

    return analyse_hostile(encoder)
