"""A node with the shapes and types of the tensors that it reads and makes: what lowerings receive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnx import helper

from ipu_results.emulator.model import Node
from ipu_results.emulator.shapes import TensorInfo, TensorInfos
from ipu_results.errors import UnsupportedOperatorError


@dataclass(frozen=True, slots=True)
class TypedNode:
    """A node with the tensors that it reads and makes."""

    node: Node
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    attributes: Mapping[str, Any]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def kind(self) -> str:
        return self.node.kind

    def unsupported(self, what: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(f"{what} is not supported", place=self.node.place)


def attach_types(node: Node, tensors: TensorInfos) -> TypedNode:
    inputs, outputs = (tuple(tensors[name] for name in names) for names in (node.inputs, node.outputs))
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.proto.attribute}
    return TypedNode(node, inputs, outputs, attributes)


def read_text(typed: TypedNode, name: str, default: str) -> str:
    """Return an attribute of text."""
    value = typed.attributes.get(name, default)
    return value.decode() if isinstance(value, bytes) else value


def to_pair(sizes: Sequence[int], missing: int) -> tuple[int, int]:
    """Return height and width. A single dimension is the width."""
    return (missing, sizes[0]) if len(sizes) == 1 else (sizes[0], sizes[1])


def read_pair(typed: TypedNode, name: str, default: int) -> tuple[int, int]:
    return to_pair(typed.attributes.get(name) or [default] * (len(typed.inputs[0].shape) - 2), default)
