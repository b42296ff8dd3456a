"""Detection of accelerators from this machine's files, without loading or starting a plugin."""

import glob
import os
import re

from hlofront.base.named_tuple import NamedTuple

# Google's PCI vendor ID; besides TPUs it has other devices, such as network cards.
_GOOGLE = "0x1ae0"
_NVIDIA = "0x10de"
_TPUS = {
    "0x0027": "TPU v2 or v3",
    "0x005e": "TPU v4",
    "0x0062": "TPU v5p",
    "0x0063": "TPU v5e",
    "0x006f": "TPU v6e",
    "0x0076": "TPU 7x",
}


_OTHER_NVIDIA = {
    "/dev/dxg": "the GPU of Windows' subsystem for Linux",
    "/dev/nvhost-gpu": "the GPU of a Jetson",
    "/dev/nvgpu/igpu0": "the GPU of a Jetson",
}


class DeviceVisibility(NamedTuple):
    """Whether devices of a platform are visible on this machine, with the evidence for it."""

    is_visible: bool
    why: str


def device_visibility(platform: str) -> DeviceVisibility | None:
    """Return whether this machine shows a device of a platform; None if that is unknown."""
    look = {"cuda": _nvidia, "rocm": _amd, "tpu": _tpu}.get(platform)
    return None if look is None else look()


def _nvidia() -> DeviceVisibility:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None and chosen.strip() in ("", "-1", "NoDevFiles"):
        return DeviceVisibility(False, f"CUDA_VISIBLE_DEVICES={chosen!r} hides all GPUs")
    # Containers without GPUs still see the driver's files in /proc.
    files = glob.glob("/dev/nvidia[0-9]*")
    if files:
        return DeviceVisibility(True, f"{len(files)} of NVIDIA, {', '.join(sorted(files)[:8])}")
    for path, what in _OTHER_NVIDIA.items():
        if os.path.exists(path):
            return DeviceVisibility(True, f"{path}, {what}")
    return DeviceVisibility(False, "no /dev/nvidia0: no GPU of NVIDIA, or no driver")


def _amd() -> DeviceVisibility:
    if os.environ.get("HIP_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return DeviceVisibility(False, "HIP_VISIBLE_DEVICES hides all GPUs")
    if os.path.exists("/dev/kfd"):
        return DeviceVisibility(True, "/dev/kfd, the driver of AMD's GPUs")
    return DeviceVisibility(False, "no /dev/kfd: no GPU of AMD, or no driver")


def _tpu() -> DeviceVisibility:
    kinds: list[str] = []
    for vendor_file in glob.glob("/sys/bus/pci/devices/*/vendor"):
        folder = os.path.dirname(vendor_file)
        if _first_line(vendor_file) == _GOOGLE:
            kind = _TPUS.get(_first_line(os.path.join(folder, "device")))
            if kind is not None:
                kinds.append(kind)
    if kinds and not (glob.glob("/dev/accel*") or glob.glob("/dev/vfio/[0-9]*")):
        return DeviceVisibility(
            False, f"{kinds[0]} on the PCI bus, but neither /dev/accel0 nor /dev/vfio/0"
        )
    if kinds:
        return DeviceVisibility(True, f"{len(kinds)} chips on the PCI bus: {kinds[0]}")
    return DeviceVisibility(False, "no TPU on the PCI bus")


def _first_line(path: str) -> str:
    try:
        with open(path) as file:
            return file.readline().strip()
    except OSError:
        return ""


def nvidia_driver() -> str | None:
    """Return the version of NVIDIA's driver, such as "580.65.06"; None if it is not loaded."""
    version = re.search(
        r"Kernel Module.*?\s(\d+\.[\d.]+)", _first_line("/proc/driver/nvidia/version")
    )
    return version.group(1) if version else None


def has_nvidia_card() -> bool:
    """Return whether an NVIDIA graphics card is on the PCI bus, with or without a driver."""
    return any(
        _first_line(vendor) == _NVIDIA
        and _first_line(os.path.join(os.path.dirname(vendor), "class")).startswith("0x03")
        for vendor in glob.glob("/sys/bus/pci/devices/*/vendor")
    )
