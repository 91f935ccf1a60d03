"""The examples do what their first comments say."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import support

FOLDER = os.path.join(os.path.abspath(os.environ.get("DECANT_BUILD", "build/dev")), "examples")


class Examples(support.Case):
    def example(self, name, *words):
        return self.decant(*words, program=os.path.join(FOLDER, name))

    def test_each_says_how_it_is_used(self):
        names = sorted(f[:-2] for f in os.listdir(os.path.join(support.SOURCE, "examples")) if f.endswith(".c"))
        self.assertGreaterEqual(set(names), {"convert", "prove", "read_one", "save_progress", "three_tensors"})
        for name in names:
            result = self.example(name)
            self.assertEqual(result.code, 2)
            self.assertTrue(result.err.startswith("usage: %s " % name), result)

    def test_convert_converts(self):
        self.model()
        self.assertEqual(self.example("convert", "m.safetensors", "m.bpk").code, 0)
        self.works("diff", "m.safetensors", "m.bpk")
        result = self.example("convert", "none.safetensors", "n.bpk")
        self.assertEqual(result.code, 1)
        self.assertIn("none.safetensors: ", result.err)
        self.assertEqual(self.names(), ["m.bpk", "m.safetensors"])

    def test_prove_proves(self):
        self.model()
        result = self.example("prove", "m.safetensors", "m.bpk")
        digest = self.works("digest", "m.bpk").out.splitlines()[-1].split()[1]
        self.assertEqual(result.out, "%s  m.safetensors\n%s  m.bpk, the same\n" % (digest, digest))
        self.assertEqual(self.example("prove", "none.safetensors", "n.bpk").code, 1)
        self.assertEqual(self.names(), ["m.bpk", "m.safetensors"])

    def test_three_tensors_come_in_three_ways(self):
        for out in ["three.bpk", "three.safetensors"]:
            self.assertEqual(self.example("three_tensors", out).code, 0)
        self.works("diff", "three.bpk", "three.safetensors")
        data = self.read("three.bpk")
        for part in [bytes([1, 2, 3, 4, 5]), bytes(range(256)), b"\7" * 1000]:
            self.assertIn(part, data)

    def test_read_one_reads_one(self):
        self.model("m.safetensors", [("a", "F32", [2, 2], bytes(4) + b"\0\0\x80\x3f" * 3), ("b", "U8", [5], None)])
        self.assertEqual(self.example("read_one", "m.safetensors", "a").out, "F32 [2, 2] 0 1 1 1\n")
        self.assertEqual(self.example("read_one", "m.safetensors", "b").out, "U8 [5]\n")
        self.assertEqual(self.example("read_one", "m.safetensors", "c").code, 1)

    def test_cast_and_merge_casts_and_merges(self):
        self.model("a.safetensors", [("w", "F32", [2], bytes.fromhex("0000803f 00000048"))], {"format": "pt"})
        self.model("b.safetensors", [("w", "BF16", [1], b"\0\xc0"), ("n", "I64", [], None)], {"format": "np"})
        result = self.example("cast_and_merge", "m.safetensors", "a.safetensors", "b.safetensors")
        self.assertEqual(result.code, 0)
        self.assertIn("1 value in 'part0.w' exceeds the range of F16, the largest 131072\n3 tensors, ", result.out)
        lines = [line.split("\t")[:2] for line in self.works("ls", "m.safetensors").out.splitlines()]
        self.assertEqual(lines, [["part1.n", "I64"], ["part0.w", "F16"], ["part1.w", "F16"]])
        self.assertTrue(self.read("m.safetensors").endswith(bytes.fromhex("003c007c00c0")))

    def test_save_progress_reports_and_stops_where_it_is_told(self):
        support.write_sparse(self.path("m.safetensors"), 1 << 24)
        result = self.example("save_progress", "m.safetensors", "m.bpk")
        size = os.path.getsize(self.path("m.bpk"))
        self.assertEqual(result.code, 0)
        self.assertIn("%d of %d\n" % (size, size), result.out)
        self.assertIn("saved m.bpk: 4 tensors, %d bytes, durable\n" % size, result.out)
        stopped = self.example("save_progress", "m.safetensors", "x.bpk", "1000000")
        self.assertEqual(stopped.code, 1)
        self.assertEqual(self.names(), ["m.bpk", "m.safetensors"])


class Readme(unittest.TestCase):
    def test_its_code_compiles(self):
        """What stands under "From C" is the middle of examples/convert.c, so it is compiled and run as such."""
        with open(os.path.join(support.SOURCE, "README.md")) as f:
            code = f.read().split("**From C**")[1].split("**")[0]
        lines = [line.strip() for line in code.splitlines() if line.strip()]
        source = "#include <stdio.h>\n#include <decant/decant.h>\nint main(void)\n{\n%s\nreturn 0;\n}\n" % "\n".join(lines)
        done = subprocess.run(["cc", "-std=c11", "-Wall", "-Werror", "-fsyntax-only", "-x", "c", "-",
                               "-I", os.path.join(support.SOURCE, "include")], input=source, text=True, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    support.main()
