"""Estimate how long replicas take to sum their gradients, over the links of a machine, of a pod and between pods."""

from __future__ import annotations

from dataclasses import dataclass

from ipu_results.emulator.codelets import ceil_div
from ipu_results.emulator.target import Target


@dataclass(frozen=True, slots=True)
class ReplicaLayout:
    """Where the replicas are: how many share a machine, how many groups of machines a pod has, and how many pods.

    Replicas fill a machine before the next one begins. A group is as many machines as a replica needs.
    """

    in_machine: int
    groups: int
    pods: int


def arrange_replicas(replicas: int, chips_each: int, target: Target) -> ReplicaLayout:
    """Place replicas of `chips_each` chips on machines and pods of the target."""
    in_machine = min(replicas, max(1, target.chips // chips_each))
    machines_each = max(1, ceil_div(chips_each, target.chips))  # of a group
    groups = ceil_div(replicas, in_machine)
    pods = ceil_div(groups * machines_each, int(target["pod.machines"]))
    return ReplicaLayout(in_machine, ceil_div(groups, pods), pods)


def estimate_all_reduce(gradients: float, replicas: int, chips_each: int, target: Target) -> float:
    """Return the seconds in which all replicas sum `gradients` bytes of each chip, and all get the sum.

    A ring of n parts sends 2 · (n − 1) / n of the data over each of its links. Rings are one inside another: chips of
    a machine first, then machines of a pod with what each chip has left, then pods. Thakur et al. 2005.
    """
    layout = arrange_replicas(replicas, chips_each, target)
    sharing = target.chips if chips_each * layout.in_machine >= target.chips else chips_each * layout.in_machine
    of_machine = gradients * sharing / layout.in_machine  # after the scatter within the machine, on all of its chips
    rings = (
        (layout.in_machine, gradients, target["link.chip"]),
        (layout.groups, of_machine, target["link.machine"]),
        (layout.pods, of_machine / layout.groups, target["link.pod"]),
    )
    return sum(_time_ring(parts, size, rate, target["link.start"]) for parts, size, rate in rings)


def _time_ring(parts: int, size: float, rate: float, start: float) -> float:
    return 2 * (parts - 1) * (size / (parts * rate) + start)
