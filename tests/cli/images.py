"""File systems of a test's own, each in an image, and how much of one is used."""

import hashlib
import json
import os
import random
import struct
import subprocess
import tempfile
import threading

import support

MAKE = {
    "btrfs": ["mkfs.btrfs", "-q"],
    "ext4": ["mkfs.ext4", "-q", "-m", "0"],
    "xfs": ["mkfs.xfs", "-q"],
}
UNIT, MIB = 64 << 10, 1 << 20


def write_shards(folder, size, count, tensors=4, seed=1):
    """A set of `count` files with about `size` bytes of noise; their paths."""
    noise, each, paths = random.Random(seed), size // count // tensors, []
    for i in range(count):
        header = {"l%02d.t%d" % (i, t): {"dtype": "U8", "shape": [each], "data_offsets": [t * each, (t + 1) * each]}
                  for t in range(tensors)}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        paths.append(os.path.join(folder, "model-%05d-of-%05d.safetensors" % (i + 1, count)))
        with open(paths[-1], "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text)
            for at in range(0, each * tensors, MIB):
                f.write(noise.randbytes(min(MIB, each * tensors - at)))
    return paths


def digest_of(file):
    return hashlib.file_digest(file, "blake2b").hexdigest() if hasattr(hashlib, "file_digest") else \
        hashlib.blake2b(file.read()).hexdigest()


def digest(path):
    with open(path, "rb") as f:
        return digest_of(f)


def used(folder):
    space = os.statvfs(folder)
    return (space.f_blocks - space.f_bfree) * space.f_frsize


def free(folder):
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


class Gauge(threading.Thread):
    """The most that is used of a file system meanwhile: a lower bound, since it only looks again and again."""

    def __init__(self, folder):
        super().__init__()
        self.folder, self.top, self.stop = folder, used(folder), threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.join()

    def run(self):
        while not self.stop.wait(0.002):
            self.top = max(self.top, used(self.folder))


class Case(support.Case):
    def mounted(self, kind, size=400 << 20, make=(), options="loop"):
        """A new file system of this kind; its folder. Its image is mostly holes."""
        place = tempfile.TemporaryDirectory(prefix="decant-image-")
        self.addCleanup(place.cleanup)
        image, folder = os.path.join(place.name, "image"), os.path.join(place.name, "folder")
        os.mkdir(folder)
        with open(image, "wb") as f:
            f.truncate(size)
        try:
            if kind == "tmpfs":
                subprocess.run(["mount", "-t", kind, "-o", "size=%d" % size, "none", folder], check=True, capture_output=True)
            else:
                subprocess.run([*MAKE[kind], *make, image], check=True, capture_output=True)
                subprocess.run(["mount", "-o", options, image, folder], check=True, capture_output=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as why:
            self.skipTest("no %s can be mounted here: %s" % (kind, why))
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def leave_free(self, folder, size, slack=UNIT):
        """Fills a file system, or takes from what fills it, until `size` bytes are free, and at most `slack` more or less."""
        for i in range(400):
            subprocess.run(["sync", "-f", folder], check=True)
            more = free(folder) - size
            if abs(more) <= slack:
                return
            if more > 0:
                with open(os.path.join(folder, ".filler%03d" % len(os.listdir(folder))), "wb") as f:
                    for at in range(0, min(more, 64 * MIB), MIB):  # written: what is reserved is counted otherwise on btrfs
                        f.write(random.randbytes(min(MIB, more - at)))
            else:
                filler = max(name for name in os.listdir(folder) if name.startswith(".filler"))
                length = os.path.getsize(os.path.join(folder, filler)) + more // 4096 * 4096
                if length > 0:
                    os.truncate(os.path.join(folder, filler), length)
                else:
                    os.remove(os.path.join(folder, filler))
        self.fail("the file system does not fill: %d of %d bytes free" % (free(folder), size))
