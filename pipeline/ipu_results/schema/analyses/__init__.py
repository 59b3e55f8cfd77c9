"""The views behind the analyses. None mixes MLPerf with other figures, or what is flagged or emulated with the rest."""

from ipu_results.schema.analyses.generations import GENERATIONS
from ipu_results.schema.analyses.latency import LATENCY
from ipu_results.schema.analyses.machines import MACHINES
from ipu_results.schema.analyses.resnext101 import RESNEXT101
from ipu_results.schema.analyses.software import SOFTWARE

ANALYSES = (*LATENCY, *GENERATIONS, *SOFTWARE, *MACHINES, *RESNEXT101)
