"""An analysis that the tests of it, of its report and of its figures read."""

import pytest


@pytest.fixture(scope="package")
def analysis(encoder):
    from tests.helpers.analysed import analyse_hostile

    return analyse_hostile(encoder)
