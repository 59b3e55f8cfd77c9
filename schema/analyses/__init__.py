"""The views behind the analyses. None mixes MLPerf with other figures, or what is flagged or emulated with the rest."""

from schema.analyses.generations import GENERATIONS
from schema.analyses.latency import LATENCY
from schema.analyses.machines import MACHINES
from schema.analyses.resnext101 import RESNEXT101
from schema.analyses.software import SOFTWARE

ANALYSES = (*LATENCY, *GENERATIONS, *SOFTWARE, *MACHINES, *RESNEXT101)
