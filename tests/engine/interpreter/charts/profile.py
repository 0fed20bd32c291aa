"""How long the random runs are. CHARTS_EXAMPLES=n: n times as long; CHARTS_SHRINK=1: a failing example is made small.

Cutting an example down takes minutes; without that, the first one found is shown, as a definition and the calls made.
"""

import os

from hypothesis import Phase, settings

TIMES = int(os.environ.get("CHARTS_EXAMPLES", "1"))
SHRINK = [Phase.shrink] if os.environ.get("CHARTS_SHRINK") else []
RUN = settings(
    max_examples=8 * TIMES,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, *SHRINK],
    report_multiple_bugs=False,
    derandomize=TIMES == 1,  # the same charts in every run of the suite; a longer run looks for new ones
)
