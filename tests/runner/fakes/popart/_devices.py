"""The release, and the pool of IPUs, of which other users may hold all for a while, and models of
an IPU.
"""

# ruff: noqa: N801, N802, N803, N818 (names and signatures are PopART's)

import os

SDK = os.environ.get("POPART_FAKE_SDK", "3.0")
TRIES = tuple(map(int, SDK.split("."))) >= (3, 0)


class popart_exception(Exception):
    pass


class TensorInfo:
    def __init__(self, dtype, shape):
        self._dtype = dtype
        self._shape = list(shape)

    def data_type_lcase(self):
        return self._dtype

    def shape(self):
        return list(self._shape)


POOL = []
BUSY = [int(os.environ.get("POPART_FAKE_BUSY", "0"))]


class DeviceInfo:
    def __init__(self, kind, tiles, version, index=0):
        self.type = kind
        self.id = index
        self.numIpus = 1
        self.tilesPerIPU = tiles
        self.version = version
        self.isAttached = False
        self.loaded = None  # the session whose program it holds
        self.weights = None  # the session whose weights it holds

    def attach(self):
        if self.isAttached:
            return False
        self.isAttached = True
        return True

    def detach(self):
        self.isAttached = False


TILES = int(os.environ.get("POPART_FAKE_TILES", "1216"))
POOL += [
    DeviceInfo("ipu", TILES, "1.0.49", index)
    for index in range(int(os.environ.get("POPART_FAKE_IPUS", "1")))
]
MODELS = []


def attached():
    """Count the devices that this process holds."""
    return sum(device.isAttached for device in POOL + MODELS)


class DeviceManager:
    def __getattr__(self, name):
        if name == "tryAcquireAvailableDevice" and TRIES:
            return self._free
        raise AttributeError(name)

    def enumerateDevices(self):
        return list(POOL)

    def acquireAvailableDevice(self, numIpus=1, tilesPerIpu=0):
        device = self._free(numIpus, tilesPerIpu)
        if device is None:
            raise popart_exception(f"Failed to acquire device with {numIpus} IPUs")
        return device

    def createIpuModelDevice(self, options):
        unknown = set(options) - {"numIPUs", "tilesPerIPU", "compileIPUCode", "ipuVersion"}
        if unknown:
            raise popart_exception(
                f"Invalid option {unknown} passed to DevicexManager::createHostDevice"
            )
        device = DeviceInfo(
            "ipu-model", int(options.get("tilesPerIPU", 4)), options.get("ipuVersion", "ipu2")
        )
        device.attach()
        MODELS.append(device)
        return device

    def _free(self, numIpus=1, tilesPerIpu=0):
        if numIpus != 1 or tilesPerIpu not in (0, TILES):
            raise popart_exception("the fake has single IPUs only")
        if BUSY[0]:
            BUSY[0] -= 1
            return None
        return next((device for device in POOL if device.attach()), None)
