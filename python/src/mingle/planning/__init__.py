"""Plans from Python: `mingle.plan(graph)`, `mingle.compare(graph)` and `mingle.simulate(plan)`.

Everything is computed by the program of this installation, `mingle plan make`, `compare`, `draw` and `mingle simulate`: the numbers are those of
the program. The standard library suffices; `Plan.matrices` needs numpy, and `to_frame` needs pandas.
"""

from mingle.planning.comparison import Comparison, Design, compare
from mingle.planning.forecast import Forecast
from mingle.planning.graphs import Graph
from mingle.planning.plans import Plan, plan
from mingle.planning.simulation import Simulation, simulate

__all__ = ["Comparison", "Design", "Forecast", "Graph", "Plan", "Simulation", "compare", "plan", "simulate"]
