"""decant verify: what it finds, what it says it covered, and its exit status."""

import json
import os
import struct
import unittest

import support

DATA = "  the data itself: this format carries no checksums; compare with digest\n"


def with_header(header, data):
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(begin, end, dtype="U8"):
    return {"dtype": dtype, "shape": [end - begin], "data_offsets": [begin, end]}


class Case(support.Case):
    def verify(self, code, *words):
        result = self.decant("verify", *words)
        self.assertEqual((result.code, result.err), (code, ""), result)
        document = self.check_document(self.decant("verify", *words, "--json"))
        self.assertEqual(document["exit"], code)
        for file in document["files"]:
            faults = [f for f in file["findings"] if f["kind"] == "fault"]
            self.assertIs(file["sound"], not faults)
            self.assertTrue(all(f["hint"] for f in faults))
        return result.out


class Verify(Case):
    def test_a_sound_file_says_what_was_covered_and_what_the_format_cannot_show(self):
        self.model("m.safetensors")
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        self.assertEqual(self.verify(0, "m.safetensors"), "m.safetensors: sound: 3 tensors, header, ranges and size agree\n" + DATA)
        self.assertEqual(self.verify(0, "m.bpk"), "m.bpk: sound: 3 tensors, metadata, ranges and size agree\n" + DATA)

    def test_FR_04_a_file_that_is_cut_is_a_fault_wherever_it_is_cut(self):
        self.model("m.safetensors")
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        for name in ["m.safetensors", "m.bpk"]:
            whole = self.read(name)
            for size in range(12, len(whole), 17):
                support.write(self.path("cut"), whole[:size])
                out = self.verify(1, "cut")
                self.assertRegex(out, r"\A(cut: [^\n]+; [^\n]+\n)+\Z")

    def test_FR_07_FR_11_SE_06_every_fault_is_listed_with_its_tensor(self):
        support.write(self.path("m.safetensors"), with_header(
            {"a": entry(0, 4), "b": entry(6, 10), "c": entry(8, 14)}, bytes(16)))
        self.assertEqual(self.verify(1, "m.safetensors").count("m.safetensors: "), 3)
        header = {"n%d" % i: dict(entry(4 * i, 4 * i + 4), shape=[5]) for i in range(30)}
        support.write(self.path("m.safetensors"), with_header(header, bytes(120)))
        lines = self.verify(1, "m.safetensors").splitlines()
        self.assertEqual(len(lines), 21)
        self.assertEqual(lines[20], "m.safetensors: and 10 more; -v shows all")
        self.assertEqual(len(self.verify(1, "-v", "m.safetensors").splitlines()), 30)

    def test_SE_04_a_header_that_is_no_json_is_a_fault(self):
        support.write(self.path("m.safetensors"), struct.pack("<Q", 10) + b'{"a":{"x"]')
        self.assertIn("at byte", self.verify(1, "m.safetensors"))

    def test_FR_10_bytes_behind_the_data_are_a_fault_and_leniently_odd(self):
        self.model("m.safetensors")
        support.write(self.path("m.safetensors"), self.read("m.safetensors") + bytes(16))
        self.assertIn("16 unexpected bytes after tensor data", self.verify(1, "m.safetensors"))
        self.assertIn("  odd      16 bytes after the data\n", self.verify(0, "--lenient", "m.safetensors"))

    def test_FR_09_data_that_is_not_aligned_is_odd(self):
        text = json.dumps({"a": dict(entry(0, 6), dtype="F16", shape=[3])}).encode()
        text += b" " * (1 + len(text) % 2)
        support.write(self.path("m.safetensors"), struct.pack("<Q", len(text)) + text + bytes(6))
        self.assertEqual(len(text) % 2, 1)
        self.assertIn("  odd      1 tensor does not lie at a multiple of its elements' size, first 'a'\n",
                      self.verify(0, "m.safetensors"))

    def test_FR_01_FR_02_what_is_no_model_is_refused(self):
        support.write(self.path("pointer"), b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n")
        support.write(self.path("empty"), b"")
        support.write(self.path("page"), b"<html>no</html>")
        for name in ["pointer", "empty", "page", "none"]:
            self.refused(3, "verify", name)

    def test_of_several_files_the_highest_status_counts(self):
        self.model("m.safetensors")
        support.write(self.path("cut"), self.read("m.safetensors")[:-1])
        result = self.decant("verify", "m.safetensors", "cut", "none")
        self.assertEqual(result.code, 3)
        self.assertIn("m.safetensors: sound: ", result.out)
        self.assertIn("cut: tensor 'step': ", result.out)
        self.assertIn("none: ", result.err)
        self.assertEqual(self.decant("verify", "cut", "m.safetensors").code, 1)

    def test_values_are_read_when_asked_for(self):
        floats = struct.pack("<6f", 1, float("nan"), 2, float("inf"), float("-inf"), 3)
        self.model("m.safetensors", [("w", "F32", [2, 3], floats), ("b", "BOOL", [2], b"\1\2"), ("z", "I8", [9], bytes(9))])
        self.assertEqual(self.verify(0, "m.safetensors").count("\n"), 2)
        out = self.verify(0, "--deep", "m.safetensors")
        self.assertIn("m.safetensors: sound: 3 tensors, header, ranges and size agree, 35 bytes of values read\n", out)
        self.assertIn("  values   w   1 NaN, 2 infinite of 6, first at [0, 1]\n", out)
        self.assertIn("  values   b   1 of 2 neither 0 nor 1\n", out)
        self.assertIn("  zeros    z   all 9 bytes\n", out)

    def test_a_download_that_has_not_finished_ends_in_zeros(self):
        self.model("m.safetensors", [("a", "U8", [3 << 20], b"\7" * (3 << 20)), ("b", "U8", [1 << 20], b"\7" * (1 << 20))])
        whole = self.read("m.safetensors")
        support.write(self.path("m.safetensors"), whole[:1 << 20] + bytes(len(whole) - (1 << 20)))
        out = self.verify(0, "--deep", "m.safetensors")
        self.assertRegex(out, r"\n  zeros    a   [\d,]+ bytes, from byte [\d,]+ on\n  zeros    b   all 1,048,576 bytes\n")
        self.assertRegex(out, r"\n  odd      the last 3\d+ bytes of the data are zeros, from byte \d+ of tensor 'a' on, as a download leaves them")


class Sets(Case):
    def setUp(self):
        super().setUp()
        self.model("one.safetensors", [("t%d" % i, "U8", [100], bytes([i]) * 100) for i in range(4)])
        self.works("convert", "one.safetensors", "-o", "set.safetensors", "--max-shard-size", "100")
        os.remove(self.path("one.safetensors"))
        self.shard = "set-00002-of-00004.safetensors"

    def test_a_set_is_checked_as_a_whole_and_the_shard_at_fault_is_named(self):
        self.assertIn(".: sound: 4 tensors, ", self.verify(0, "."))
        self.assertIn("set.safetensors.index.json: sound: 4 tensors, ", self.verify(0, "set.safetensors.index.json"))
        whole = self.read(self.shard)
        support.write(self.path(self.shard), whole[:-1])
        self.assertRegex(self.verify(1, "."), r"\A\.: %s: tensor 't\d': the file has [^\n]+; fetch the rest\n\Z" % self.shard)
        os.remove(self.path(self.shard))
        self.assertRegex(self.verify(1, "."), r"\A\.: %s: [^\n]+; [^\n]+\n\Z" % self.shard)

    def test_its_digest_is_that_of_one_file(self):
        self.works("convert", ".", "-o", "again.bpk")
        self.assertEqual(self.works("digest", "set.safetensors.index.json").out.splitlines()[-1].split()[1],
                         self.works("digest", "again.bpk").out.splitlines()[-1].split()[1])


if __name__ == "__main__":
    support.main()
