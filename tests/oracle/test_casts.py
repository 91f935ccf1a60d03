#!/usr/bin/env python3
"""decant beside NumPy and ml_dtypes: casts, bit by bit.

Every number of F16, BF16, F8_E4M3 and F8_E5M2; of F32 and F64 those at and beside every place where rounding turns, and some of
all others. With NIGHTLY=1 more of the last.

Where the references do otherwise: ml_dtypes casts F64 to BF16 by way of F32, which rounds twice, and forgets the payload of a NaN
in BF16; NumPy leaves a signalling NaN of F16 as it is. decant rounds once, keeps the payload, and makes every NaN a quiet one.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import ml_dtypes
    import numpy
except ImportError:
    numpy = None

DECANT = os.path.abspath(os.environ.get("DECANT", "build/dev/decant"))
SEED = int(os.environ.get("SEED", 1))
COUNT = 1 << (24 if os.environ.get("NIGHTLY") else 20)

# bits, of fraction and exponent, as unsigned integers
LAYOUT = {"F64": (64, 52), "F32": (32, 23), "F16": (16, 10), "BF16": (16, 7), "F8_E4M3": (8, 3), "F8_E5M2": (8, 2)}
TARGETS = ["F64", "F32", "F16", "BF16"]


def unsigned(dtype):
    return numpy.dtype("u%d" % (LAYOUT[dtype][0] // 8))


def real(dtype):
    return numpy.dtype({"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "BF16": ml_dtypes.bfloat16,
                        "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}[dtype])


def write(path, dtype, bits):
    header = json.dumps({"x": {"dtype": dtype, "shape": [len(bits)], "data_offsets": [0, bits.nbytes]}}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + bits.tobytes())


def read(path, dtype):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return numpy.frombuffer(content, unsigned(dtype), offset=8 + length)


def around(dtype, to, random):
    """Numbers of `dtype` at, between and beside those of `to`, of both signs."""
    narrow = random.integers(0, 1 << 32, COUNT // 8) if to == "F32" else numpy.arange(65536)
    narrow = narrow.astype(unsigned(to))
    exact = narrow.view(real(to)).astype(numpy.float32 if to != "F32" else numpy.float64).astype(real(dtype))
    bits = exact.view(unsigned(dtype)).astype(numpy.uint64)
    half = 1 << (LAYOUT[dtype][1] - LAYOUT[to][1] - 1)
    all_bits = [bits + numpy.uint64(step % (1 << 64)) for step in (0, 1, -1, half, half + 1, half - 1, -half, 3 * half)]
    # what is subnormal in `to` has its halfway points elsewhere: sums of neighbours, which are exact, halved
    small = numpy.arange(1, 2048).astype(numpy.float64) * 2.0 ** {"F16": -25, "BF16": -134, "F32": -150}[to]
    value = small.astype(real(dtype)).view(unsigned(dtype)).astype(numpy.uint64)
    all_bits += [value, value + numpy.uint64(1), value - numpy.uint64(1)]
    return numpy.concatenate(all_bits).astype(unsigned(dtype))


def numbers(dtype):
    if LAYOUT[dtype][0] <= 16:
        return numpy.arange(1 << LAYOUT[dtype][0]).astype(unsigned(dtype))
    random = numpy.random.default_rng(SEED)
    others = [to for to in TARGETS if LAYOUT[to][1] < LAYOUT[dtype][1]]
    any_bits = random.integers(0, (1 << 64) - 1, COUNT, numpy.uint64, endpoint=True).astype(unsigned(dtype))
    return numpy.concatenate([around(dtype, to, random) for to in others] + [any_bits])


def to_odd(values):
    """F64 in F32, so that rounding once more rounds as once: towards zero, and what is inexact becomes odd."""
    single = values.astype(numpy.float32)
    too_large = numpy.abs(single.astype(numpy.float64)) > numpy.abs(values)
    bits = single.view(numpy.uint32).copy()
    bits[too_large] -= 1
    inexact = bits.view(numpy.float32).astype(numpy.float64) != values
    bits[inexact] |= 1
    return bits.view(numpy.float32)


def expected(dtype, to, bits):
    values = bits.view(real(dtype))
    if dtype == "F64" and to == "BF16":
        result = to_odd(values).astype(real(to))
    elif dtype in ("F32", "F64"):
        result = values.astype(real(to))
    else:
        result = values.astype(numpy.float32).astype(real(to))  # exact, then rounded once
    result = result.view(unsigned(to)).copy()
    nan = numpy.isnan(values.astype(numpy.float32) if LAYOUT[dtype][0] == 8 else values)
    if LAYOUT[dtype][0] > 8:
        from_bits, fraction = LAYOUT[dtype]
        to_bits, to_fraction = LAYOUT[to]
        wide = bits[nan].astype(numpy.uint64)
        payload = wide & numpy.uint64((1 << fraction) - 1)
        payload = payload >> numpy.uint64(fraction - to_fraction) if fraction > to_fraction else \
            payload << numpy.uint64(to_fraction - fraction)
        infinity = (1 << (to_bits - 1)) - (1 << to_fraction)
        sign = wide >> numpy.uint64(from_bits - 1) << numpy.uint64(to_bits - 1)
        ours = (sign | payload | numpy.uint64(infinity | 1 << (to_fraction - 1))).astype(unsigned(to))
        if "BF16" not in (dtype, to):  # NumPy keeps the payload of a quiet one too
            quiet = wide >> numpy.uint64(fraction - 1) & numpy.uint64(1) == 1
            assert (result[nan][quiet] == ours[quiet]).all(), (dtype, to)
        result[nan] = ours
    return result


@unittest.skipUnless(numpy, "needs NumPy and ml_dtypes")
class Casts(unittest.TestCase):
    def test_each_number_becomes_what_the_references_make_of_it(self):
        with tempfile.TemporaryDirectory() as folder, numpy.errstate(all="ignore"):
            before, after = Path(folder, "a.safetensors"), Path(folder, "b.safetensors")
            for dtype in LAYOUT:
                bits = numbers(dtype)
                write(before, dtype, bits)
                for to in TARGETS:
                    if to == dtype:
                        continue
                    subprocess.run([DECANT, "convert", "-fq", before, "--dtype", to.lower(), "--allow", "overflow", "-o", after],
                                   check=True)
                    got, wanted = read(after, to), expected(dtype, to, bits)
                    wrong = numpy.flatnonzero(got != wanted)
                    self.assertEqual(len(got), len(wanted))
                    self.assertEqual([], ["%s 0x%x to %s: 0x%x, wanted 0x%x" % (dtype, bits[i], to, got[i], wanted[i])
                                          for i in wrong[:5]])


if __name__ == "__main__":
    venv = os.environ.get("DECANT_VENV")
    if venv is None:
        print("casts: no DECANT_VENV to compare with: skipped")
        sys.exit(77)
    if os.path.abspath(venv) != os.path.abspath(sys.executable):
        os.execv(venv, [venv, *sys.argv])
    unittest.main()
