#!/usr/bin/env python3
"""What a command does costs the same number of instructions for each tensor, however many there are."""

import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ.get("DECANT_BUILD", "")
DECANT, OPEN = os.path.join(BUILD, "decant"), os.path.join(BUILD, "bench", "decant-open")
LARGE = 1_000_000 if os.environ.get("NIGHTLY") == "1" else 100_000


def make(path, count, size=4, first=0):
    entries = ",".join(
        '"model.layers.%07d.self_attn.projection.weight":{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}'
        % (first + i, size, size * i, size * i + size)
        for i in range(count)
    )
    header = ("{" + entries + "}").encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size * count)


def instructions(*words):
    """Of a process; they do not change from run to run."""
    done = subprocess.run(
        ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *words],
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
                counts[count] = instructions(OPEN, path, "1")  # opens it twice and finds every tensor
        start = (counts[10_000] - counts[1_000]) / 9_000  # a tensor, without what a process costs
        large = (counts[LARGE] - counts[1_000]) / (LARGE - 1_000)
        print("instructions a tensor and opening: %.0f at 10,000, %.0f at %d" % (start / 2, large / 2, LARGE))
        self.assertLessEqual(large, 1.15 * start)

    def test_whether_what_is_given_up_is_in_the_output_is_told_as_fast_for_many(self):
        for size in (0, 4):
            with self.subTest(size), tempfile.TemporaryDirectory() as folder:
                path, counts = os.path.join(folder, "in.safetensors"), []
                for count in (1_000, 4_000, 16_000):
                    make(path, count, size)
                    counts.append(instructions(DECANT, "plan", "-q", path, "-o", os.path.join(folder, "out.safetensors"),
                                               "--consume", "--rename", "s/^model/m/"))
                small, large = (counts[1] - counts[0]) / 3_000, (counts[2] - counts[0]) / 15_000
                print("instructions a tensor of %d bytes and plan: %.0f at 4,000, %.0f at 16,000" % (size, small, large))
                self.assertLessEqual(large, 1.3 * small)

    def test_they_grow_with_the_number_of_inputs_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            paths, counts = [os.path.join(folder, "%04d.safetensors" % i) for i in range(800)], []
            for i, path in enumerate(paths):
                make(path, 1, first=i)
            for count in (50, 200, 800):
                counts.append(instructions(DECANT, "plan", "-q", *paths[:count], "-o", os.path.join(folder, "o.bpk")))
        small, large = (counts[1] - counts[0]) / 150, (counts[2] - counts[0]) / 750
        print("instructions an input and plan: %.0f at 200, %.0f at 800" % (small, large))
        self.assertLessEqual(large, 1.5 * small)


if __name__ == "__main__":
    if not shutil.which("valgrind") or not os.access(OPEN, os.X_OK):
        print("skipped: needs valgrind and decant-open")
        sys.exit(77)
    unittest.main()
