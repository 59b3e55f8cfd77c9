"""What the other modules share: the release, errors, and the type and shape of a tensor."""
# ruff: noqa: N801, N818 (names and signatures are PopART's)

import os

SDK = os.environ.get("POPART_FAKE_SDK", "3.0")
OLD = tuple(map(int, SDK.split("."))) < (1, 2)
TRIES = tuple(map(int, SDK.split("."))) >= (3, 0)


class popart_exception(Exception):
    pass


class TensorInfo:
    def __init__(self, dtype, shape):
        self._dtype, self._shape = dtype, list(shape)

    def data_type_lcase(self):
        return self._dtype

    def shape(self):
        return list(self._shape)
