#!/usr/bin/env python3
"""decant beside NumPy: what is close, and single arrays."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import numpy
    import safetensors.numpy
except ImportError:
    numpy = None

DECANT = os.path.abspath(os.environ.get("DECANT", "build/dev/decant"))
SEED = int(os.environ.get("SEED", 1))


def decant(*words):
    done = subprocess.run([DECANT, *map(str, words), "--json"], capture_output=True, check=False)
    return json.loads(done.stdout)


@unittest.skipUnless(numpy, "needs NumPy and safetensors")
class Close(unittest.TestCase):
    def test_it_counts_what_isclose_counts(self):
        random = numpy.random.default_rng(SEED)
        with tempfile.TemporaryDirectory() as folder:
            a, b = Path(folder, "a.safetensors"), Path(folder, "b.safetensors")
            one, other = {}, {}
            for dtype in "f8", "f4", "f2", "c8", "i4":
                x = random.normal(size=1000) + (1j * random.normal(size=1000) if dtype == "c8" else 0)
                x = x * 10.0 ** random.integers(-3, 3, 1000)
                y = x * (1 + 10.0 ** random.integers(-9, 1, 1000) * random.normal(size=1000))
                for values in x, y:
                    if dtype != "i4":
                        values[random.integers(0, 1000, 9)] = numpy.nan
                        values[:20] = numpy.inf
                    values[20:40] = 0
                one[dtype], other[dtype] = x.astype(dtype), y.astype(dtype)
            safetensors.numpy.save_file(one, a)
            safetensors.numpy.save_file(other, b)
            for rtol, atol in (1e-5, 1e-8), (0, 0), (0.01, 0), (0, 0.5), (0.3, 0.1), (3, 100):
                found = {d["name"]: int(d["differ"]) for d in decant("diff", a, b, "--rtol", rtol, "--atol", atol)["differences"]}
                for dtype, x in one.items():
                    y = other[dtype]
                    if dtype == "i4":
                        wanted = numpy.count_nonzero(x != y)
                    else:
                        wide = "c16" if dtype == "c8" else "f8"
                        wanted = numpy.count_nonzero(~numpy.isclose(x.astype(wide), y.astype(wide), rtol, atol))
                    self.assertEqual(found.get(dtype, 0), wanted, (dtype, rtol, atol))


@unittest.skipUnless(numpy, "needs NumPy and safetensors")
class Arrays(unittest.TestCase):
    def test_each_dtype_and_shape_is_what_save_writes_and_load_reads(self):
        random = numpy.random.default_rng(SEED)
        shapes = [(), (0,), (1,), (7,), (2, 3), (3, 0, 2), (12345,), (1, 1, 1, 1, 1, 1, 1, 5), (10, 100, 3), (2,) * 20 + (0,)]
        arrays = {}
        for dtype in "f8 f4 f2 i8 i4 i2 i1 u8 u4 u2 u1 ? c8".split():
            for i, shape in enumerate(shapes):
                count = int(numpy.prod(shape)) * numpy.dtype(dtype).itemsize
                data = random.integers(0, 2 if dtype == "?" else 256, count, numpy.uint8)
                arrays["%s.%d" % (dtype.replace("?", "b"), i)] = data.view(dtype).reshape(shape)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "all.safetensors")
            safetensors.numpy.save_file(arrays, file)
            extracted = decant("extract", file, "-o", folder)["extracted"]
            self.assertEqual(len(extracted), len(arrays))
            for one in extracted:
                array = arrays[one["name"]]
                with tempfile.NamedTemporaryFile() as wanted:
                    numpy.save(wanted, array)
                    wanted.flush()
                    self.assertEqual(Path(one["file"]).read_bytes(), Path(wanted.name).read_bytes(), one)
                loaded = numpy.load(one["file"])
                self.assertEqual((loaded.dtype, loaded.shape, loaded.tobytes()), (array.dtype, array.shape, array.tobytes()))


if __name__ == "__main__":
    venv = os.environ.get("DECANT_VENV")
    if venv is None:
        print("numpy: no DECANT_VENV to compare with: skipped")
        sys.exit(77)
    if os.path.abspath(venv) != os.path.abspath(sys.executable):
        os.execv(venv, [venv, *sys.argv])
    unittest.main()
