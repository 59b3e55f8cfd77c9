"""Generate rows like those of the performance page's inference tables, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

COLUMNS = (
    "Model",
    "Variant",
    "Platform",
    "SDK Version",
    "Framework",
    "Dataset",
    "Batch Size",
    "Precision",
    "Throughput (items/sec)",
    "Latency (ms)",
)
# items per second of one chip at batch 1
MODELS = {
    "BERT-Large": 60,
    "BERT-Base": 190,
    "GPT2": 13,
    "ResNet-50 v1.5": 1050,
    "EfficientNet-B0": 1550,
    "EfficientNet-B4": 270,
    "ResNeXt101": 300,
    "Yolo v4": 21,
    "UNet (Medical)": 9,
    "FastSpeech2": 35,
}
CLASSIC = ("IPU-M2000", "IPU-POD16", "IPU-POD64")
BOW = ("Bow-2000", "Bow Pod16", "Bow Pod64")
CHIPS = (4, 16, 64)
BOW_GAIN = 1.33
FRAMEWORKS = ("PopART", "TensorFlow2", "PyTorch")
DATASETS = ("SQuAD", "ImageNet2012", "Wikipedia", "COCO 2017", "LJ Speech")
PRECISIONS = ("16.16", "16.32", "32.32")
LENGTHS = (128, 384, 512)
SDKS = ("SDK 2.4.0", "SDK 2.3.0")
STEPS = (1, 2, 4, 8, 16)
# throughput grows with these powers of batch and chips
BATCH_GAIN = 0.55
CHIP_GAIN = 0.9
IN_FLIGHT = 1.6  # batches at a time, by which latency is more than one batch's
BLANK_SHARE = 0.02

Cells = tuple[str, ...]


def generate_rows(
    count: int, seed: int = 0, platforms: Sequence[str] = CLASSIC, gain: float = 1.0
) -> Iterator[Cells]:
    """Yield curves over the batch size, each of a configuration of its own."""
    random = Random(seed)
    for number in range(count):
        step = STEPS[number % len(STEPS)]
        if step == STEPS[0]:
            size = random.randrange(len(platforms))
            head, precision, speed = _draw_configuration(
                random, number // len(STEPS), platforms[size]
            )
        batch = step * CHIPS[size]
        noise = random.uniform(0.99, 1.01)
        throughput = speed * gain * CHIPS[size] ** CHIP_GAIN * step**BATCH_GAIN * noise
        latency = 1000 * batch / throughput * IN_FLIGHT
        yield (*head, str(batch), precision, f"{throughput:,.1f}", f"{latency:.4f}")


def _draw_configuration(random: Random, number: int, platform: str) -> tuple[Cells, str, float]:
    """Return the cells before the batch, the one after it, and items per second and chip."""
    model = random.choice(list(MODELS))
    variant = f"SL{random.choice(LENGTHS)}, configuration {number}"
    sdk = random.choices(SDKS, (0.95, 0.05))[0]
    dataset = "" if random.random() < BLANK_SHARE else random.choice(DATASETS)
    head = (model, variant, platform, sdk, random.choice(FRAMEWORKS), dataset)
    precision = random.choices(PRECISIONS, (0.8, 0.15, 0.05))[0]
    speed = MODELS[model] * random.uniform(0.8, 1.2)
    return head, precision, speed
