"""Build by sizes the transformers that measured rows are about and that no command offers.

Each function returns the operators of a batch, one after another. Sizes are those of the papers
and configurations that its docstring names. Weights matter to no time here, so none are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ipu_results.emulator.operators import (
    ConvolutionShape,
    Elementwise,
    Operator,
    Product,
    Program,
    Rearrangement,
    Reduction,
    Tensor,
    make_gemm,
)

CLASSES = 1000  # of ImageNet
RGB = 3
IMAGE_BITS = 16
TOKEN_BITS = 32
Builder = Callable[[int], Program]


@dataclass(frozen=True, slots=True)
class Attention:
    """Self-attention over `sequences` of `tokens`, each of `width` channels in `heads`."""

    sequences: int
    tokens: int
    width: int
    heads: int
    merged: bool = False
    """Whether query, key and value are one product."""
    biased: bool = False
    """Whether a table of positions is added to the scores."""

    @property
    def rows(self) -> int:
        return self.sequences * self.tokens

    @property
    def groups(self) -> int:
        return self.sequences * self.heads


def list_attention(name: str, sizes: Attention) -> Iterator[Operator]:
    """Yield the products of attention and what lies between them."""
    width = sizes.width
    head = width // sizes.heads
    elements = sizes.rows * width
    if sizes.merged:
        yield make_gemm(f"{name}.qkv", 1, sizes.rows, width, 3 * width, bias=True)
    else:
        for role in ("query", "key", "value"):
            yield make_gemm(f"{name}.{role}", 1, sizes.rows, width, width, bias=True)
    yield Rearrangement(f"{name}.heads", "transpose", 3 * elements)
    scores = make_gemm(
        f"{name}.scores", sizes.groups, sizes.tokens, head, sizes.tokens, constant=False
    )
    yield scores
    if sizes.biased:
        yield Elementwise(f"{name}.positions", "add", scores.elements)
    yield Elementwise(f"{name}.softmax", "softmax", scores.elements)
    yield make_gemm(
        f"{name}.values", sizes.groups, sizes.tokens, sizes.tokens, head, constant=False
    )
    yield Rearrangement(f"{name}.join", "transpose", elements)
    yield make_gemm(f"{name}.proj", 1, sizes.rows, width, width, bias=True)


def list_feed(name: str, rows: int, width: int, hidden: int, kind: str) -> Iterator[Operator]:
    """Yield the two products of a layer's second half and the activation between them."""
    yield make_gemm(f"{name}.up", 1, rows, width, hidden, bias=True)
    yield Elementwise(f"{name}.{kind}", kind, rows * hidden)
    yield make_gemm(f"{name}.down", 1, rows, hidden, width, bias=True)


def list_layer(
    name: str, sizes: Attention, hidden: int, kind: str = "gelu", between: Sequence[Operator] = ()
) -> Iterator[Operator]:
    """Yield one layer. `between` stands after the attention, such as windows that are joined."""
    elements = sizes.rows * sizes.width
    yield Elementwise(f"{name}.norm1", "layernorm", elements)
    yield from list_attention(name, sizes)
    yield from between
    yield Elementwise(f"{name}.add1", "add", elements)
    yield Elementwise(f"{name}.norm2", "layernorm", elements)
    yield from list_feed(name, sizes.rows, sizes.width, hidden, kind)
    yield Elementwise(f"{name}.add2", "add", elements)


def chain(name: str, operators: Sequence[Operator], source: Sequence[int], bits: int) -> Program:
    """Return a program in which each operator reads the one before."""
    sources = tuple((at - 1,) for at in range(len(operators)))
    last = operators[-1]
    inputs = Tensor("input", tuple(source), bits)
    outputs = Tensor("output", (source[0], last.elements // source[0]), IMAGE_BITS)
    return Program(name, tuple(operators), sources, (inputs,), (outputs,), (len(operators) - 1,), 0)


def build_siglip(batch: int) -> Program:
    """Build the model of osmarks/ipu-stack: 27 layers, Q, K and V in one product, no pooling."""
    sizes = Attention(batch, 729, 1152, 16, merged=True)
    operators: list[Operator] = [list_patches(batch, 384, 14, sizes.width)]
    for at in range(27):
        operators += list_layer(f"layer{at}", sizes, 4304)
    return chain("siglip", operators, (batch, RGB, 384, 384), IMAGE_BITS)


def list_patches(batch: int, size: int, patch: int, width: int) -> Product:
    side = size // patch
    shape = ConvolutionShape(batch, 1, RGB, width, side, side, patch, patch, patch, size, size)
    return Product("patches", "convolution", shape)


def build_clip(batch: int) -> Program:
    """Build CLIP with ViT-B/32 and 100 fixed texts, as graphcore/PopRT exports it.

    Sizes: arXiv:2103.00020, table 20. Its activation costs as much as swish.
    """
    image = Attention(batch, 50, 768, 12, merged=True)
    text = Attention(100, 77, 512, 8, merged=True, biased=True)
    operators: list[Operator] = [list_patches(batch, 224, 32, image.width)]
    for at in range(12):
        operators += list_layer(f"image{at}", image, 4 * image.width, "swish")
    operators.append(Rearrangement("text", "gather", text.rows * text.width))
    for at in range(12):
        operators += list_layer(f"text{at}", text, 4 * text.width, "swish")
    operators.append(make_gemm("logits", 1, batch, 512, text.sequences))
    return chain("clip", operators, (batch, RGB, 224, 224), IMAGE_BITS)


def build_clip_text(batch: int) -> Program:
    """Build the text encoder of Stable Diffusion: that of CLIP ViT-L/14, 12 layers of 768."""
    sizes = Attention(batch, 77, 768, 12, biased=True)
    operators: list[Operator] = [Rearrangement("words", "gather", sizes.rows * sizes.width)]
    for at in range(12):
        operators += list_layer(f"layer{at}", sizes, 4 * sizes.width, "swish")
    return chain("clip-text", operators, (batch, 77), TOKEN_BITS)


def build_roformer_v2(batch: int) -> Program:
    """Build junnyu/roformer_v2_chinese_char_small at 128 tokens: 6 layers of 384, 6 heads.

    Query and key are turned by their positions: two products by element and a sum, each.
    """
    sizes = Attention(batch, 128, 384, 6, biased=True)
    turned = 2 * sizes.rows * sizes.width
    kinds = ("mul", "mul", "add")
    turn = [Elementwise(f"turn.{at}", kind, turned) for at, kind in enumerate(kinds)]
    operators: list[Operator] = [Rearrangement("words", "gather", sizes.rows * sizes.width)]
    for at in range(6):
        operators += list_layer(f"layer{at}", sizes, 1536, between=turn)
    return chain("roformer-v2-small", operators, (batch, 128), TOKEN_BITS)


def build_deberta(batch: int) -> Program:
    """Build DeBERTa-v2 of base size at 128 tokens: 12 layers of 768 and 512 relative positions.

    Attention between content and position adds two products to each layer (arXiv:2006.03654,
    section 3.1). The configuration of the measured model is not in the record: that it is of base
    size is an assumption from its name, 97M.
    """
    sizes = Attention(batch, 128, 768, 12, biased=True)
    positions = 512
    head = sizes.width // sizes.heads
    operators: list[Operator] = [Rearrangement("words", "gather", sizes.rows * sizes.width)]
    for at in range(12):
        name = f"layer{at}.positions"
        product = make_gemm(
            f"{name}.scores", sizes.groups, sizes.tokens, head, positions, constant=False
        )
        both: list[Operator] = []
        for role in ("content", "position"):
            both += [
                make_gemm(f"{name}.{role}", 1, positions, sizes.width, sizes.width),
                product,
                Rearrangement(f"{name}.{role}.picked", "gather", sizes.groups * sizes.tokens**2),
                Elementwise(f"{name}.{role}.add", "add", sizes.groups * sizes.tokens**2),
            ]
        operators += list_layer(f"layer{at}", sizes, 3072, between=both)
    return chain("deberta-v2-base", operators, (batch, 128), TOKEN_BITS)


@dataclass(frozen=True, slots=True)
class Swin:
    """A transformer over windows, after Liu et al. 2021 (arXiv:2103.14030, section 3.3)."""

    name: str
    resolution: int
    width: int
    window: int
    depths: tuple[int, ...]
    heads: tuple[int, ...]

    def __call__(self, batch: int) -> Program:
        side = self.resolution // 4
        width = self.width
        operators: list[Operator] = [list_patches(batch, self.resolution, 4, width)]
        for stage, (depth, heads) in enumerate(zip(self.depths, self.heads, strict=True)):
            if stage:
                side //= 2
                width *= 2
                operators += self._merge(f"stage{stage}", batch * side**2, width)
            windows = batch * (side // self.window) ** 2
            sizes = Attention(windows, self.window**2, width, heads, biased=True)
            moved = Rearrangement(f"stage{stage}.windows", "transpose", sizes.rows * width)
            for at in range(depth):
                operators.append(moved)
                operators += list_layer(f"stage{stage}.{at}", sizes, 4 * width, between=[moved])
        rows = batch * side**2
        operators += [
            Elementwise("norm", "layernorm", rows * width),
            Reduction("pool", "global pool", rows * width, batch * width),
            make_gemm("classes", 1, batch, width, CLASSES, bias=True),
        ]
        return chain(self.name, operators, (batch, RGB, self.resolution, self.resolution), 16)

    def _merge(self, name: str, rows: int, width: int) -> list[Operator]:
        """Join four neighbours, which halves the sides and doubles the width."""
        joined = rows * 2 * width
        return [
            Rearrangement(f"{name}.neighbours", "transpose", joined),
            Elementwise(f"{name}.merge.norm", "layernorm", joined),
            make_gemm(f"{name}.merge", 1, rows, 2 * width, width),
        ]


BUILDERS: dict[str, Builder] = {
    "swin-tiny": Swin("swin-tiny", 224, 96, 7, (2, 2, 6, 2), (3, 6, 12, 24)),
    "swin-large-384": Swin("swin-large-384", 384, 192, 12, (2, 2, 18, 2), (6, 12, 24, 48)),
    "clip": build_clip,
    "clip-text": build_clip_text,
    "roformer-v2-small": build_roformer_v2,
    "deberta-v2-base": build_deberta,
    "siglip": build_siglip,
}
