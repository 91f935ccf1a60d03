#!/usr/bin/env python3
"""Opening a model costs the same number of instructions for each tensor, however many there are."""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

OPEN = os.path.join(os.environ.get("DECANT_BUILD", ""), "bench", "decant-open")
LARGE = 1_000_000 if os.environ.get("NIGHTLY") == "1" else 100_000


def make(path, count):
    entries = ",".join(
        '"model.layers.%07d.self_attn.projection.weight":{"dtype":"U8","shape":[4],"data_offsets":[%d,%d]}'
        % (i, 4 * i, 4 * i + 4)
        for i in range(count)
    )
    header = ("{" + entries + "}").encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + 4 * count)


def instructions(path):
    """Of a process that opens the file twice and finds every tensor; the counts do not change from run to run."""
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", OPEN, path, "1"],
        capture_output=True, text=True, check=True,
    )
    return int(re.search(r"I\s+refs:\s+([\d,]+)", done.stderr).group(1).replace(",", ""))


class Instructions(unittest.TestCase):
    def test_they_grow_with_the_number_of_tensors_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            counts = {}
            for count in (1_000, 10_000, LARGE):
                path = os.path.join(folder, "%d.safetensors" % count)
                make(path, count)
                counts[count] = instructions(path)
        start = (counts[10_000] - counts[1_000]) / 9_000  # a tensor, without what a process costs
        large = (counts[LARGE] - counts[1_000]) / (LARGE - 1_000)
        print("instructions a tensor and opening: %.0f at 10,000, %.0f at %d" % (start / 2, large / 2, LARGE))
        self.assertLessEqual(large, 1.15 * start)


if __name__ == "__main__":
    if not shutil.which("valgrind") or not os.access(OPEN, os.X_OK):
        print("skipped: needs valgrind and decant-open")
        sys.exit(77)
    unittest.main()
