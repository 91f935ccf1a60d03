"""What people who do this job ran into, each by its number in the collection of reports."""

import os
import re
import struct

import support


def raw(header, body=b"", odd=0):
    """A safetensors file with exactly this header, its length `odd` more than a multiple of 8."""
    text = header.encode()
    text += b" " * ((odd - len(text)) % 8)
    return struct.pack("<Q", len(text)) + text + body


class Read(support.Case):
    """FR: files that others wrote."""

    def both(self, tensors):
        """The same model in both formats; gives the names and the bytes."""
        self.model("m.safetensors", tensors)
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        return [(name, self.read(name)) for name in ("m.safetensors", "m.bpk")]

    def test_FR_03_a_name_that_misleads_is_told_and_does_no_more(self):
        self.model("x.bin")
        for words in [["ls"], ["plan", "-o", "x.bpk"], ["convert", "-o", "x.bpk"]]:
            result = self.works(*words, "x.bin")
            self.assertIn("decant: x.bin: odd: the name ends in .bin, the content is safetensors\n", result.err)
        self.assertEqual(self.works("convert", "-fq", "x.bin", "-o", "x.bpk").err, "")
        self.assertIn("the name ends in .bin", self.works("inspect", "x.bin").out)

    def test_FR_04_a_cut_file_says_what_it_has_and_what_is_needed(self):
        for name, whole in self.both([(n, "F32", [10], None) for n in "abc"]):
            for size in [len(whole) - 1, len(whole) - 39]:
                support.write(self.path(name), whole[:size])
                self.refused(3, "ls", name, says="tensor 'c': the file has %d bytes, this tensor ends at byte %d" % (size, len(whole)))
            for size in [20, 60]:
                support.write(self.path(name), whole[:size])
                self.refused(3, "ls", name, says="the file has %d bytes, its " % size)

    def test_FR_09_data_at_odd_offsets_is_read_right(self):
        header = ('{"a":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},'
                  '"b":{"dtype":"F32","shape":[4],"data_offsets":[6,22]}}')
        data = bytes(range(22))
        support.write(self.path("odd.safetensors"), raw(header, data, odd=1))
        self.model("even.safetensors", [("a", "F16", [3], data[:6]), ("b", "F32", [4], data[6:])])
        self.assertIn("  layout     aligned to 1, no gaps\n", self.works("inspect", "odd.safetensors").out)
        self.works("diff", "odd.safetensors", "even.safetensors")
        self.works("convert", "odd.safetensors", "-o", "odd.bpk")
        self.works("diff", "odd.bpk", "even.safetensors")

    def test_FR_10_bytes_after_the_data_are_refused_alike_and_can_be_left_out(self):
        for name, whole in self.both([("a", "F32", [10], None)]):
            for junk in [b"\0" * 16, os.urandom(16), b"\0" * 4096]:
                support.write(self.path("junk"), whole + junk)
                self.refused(3, "convert", "junk", "-o", "x.bpk", says=[
                    "%d unexpected bytes after tensor data at offset %d; " % (len(junk), len(whole)), "--lenient"])
                result = self.works("convert", "-f", "--lenient", "junk", "-o", "x" + name)
                self.assertIn("odd: %d bytes after the data" % len(junk), result.err)
                self.assertEqual(self.read("x" + name), whole)

    def test_FR_11_no_tensor_may_reach_into_the_next(self):
        header = '{"a":{"dtype":"U8","shape":[136],"data_offsets":[0,136]},"b":{"dtype":"U8","shape":[136],"data_offsets":[%d,%d]}}'
        for at, says in [(128, "tensor 'b': the data overlaps, found offset 128, expected 136, where tensor 'a' ends"),
                         (4232, "tensor 'b': a hole before the data, found offset 4232, expected 136, where tensor 'a' ends"),
                         (0, "tensor 'b': lies on the data of tensor 'a'")]:
            support.write(self.path("m.safetensors"), raw(header % (at, at + 136), bytes(at + 136)))
            self.refused(3, "convert", "m.safetensors", "-o", "m.bpk", says=says)


class Reports(support.Case):
    def test_CL_01_a_glob_never_turns_an_input_into_an_output(self):
        for i in range(1, 4):
            self.model("p-0000%d-of-00003.safetensors" % i)
        parts = self.names()
        self.refused(2, "convert", *parts, says="-o OUT" if len(parts) == 1 else "3 inputs given")
        self.refused(2, "convert", *parts, "-o", "out.bpk", says="3 inputs given")
        self.refused(2, "convert", parts[0], says="-o OUT")

    def test_CL_02_a_dry_run_is_dry(self):
        self.model()
        self.model("there.bpk")
        os.chmod(self.folder, 0o555)
        self.addCleanup(os.chmod, self.folder, 0o755)
        before = self.tree()
        for command in [["plan"], ["convert", "-n"], ["convert", "--dry-run"], ["plan", "-n", "-f"]]:
            self.decant(*command, "m.safetensors", "-o", "there.bpk")
            self.decant(*command, "m.safetensors", "-o", "x.bpk")
        self.assertEqual(self.tree(), before)

    def test_CL_03_failures_have_documented_codes_and_one_line_on_standard_error(self):
        self.model()
        self.model("there.bpk")
        with open(os.path.join(support.SOURCE, "docs/man/decant.1")) as f:
            documented = {int(n) for line in re.findall(r"^\.It ([0-9 ,]+)$", f.read(), re.M) for n in line.split(",")}
        for code, words in [(2, ["convert"]), (3, ["ls", "none"]), (4, ["convert", "m.safetensors", "-o", "there.bpk"])]:
            self.refused(code, *words)
            self.assertIn(code, documented)

    def test_CL_05_each_pair_of_formats_gives_a_file_that_holds_the_same(self):
        self.model("in.safetensors")
        self.works("convert", "in.safetensors", "-o", "in.bpk")
        formats = [line.split("\t") for line in self.works("formats").out.splitlines()]
        extensions = [f[1] for f in formats if f[2:] == ["yes", "yes"]]
        self.assertGreaterEqual(set(extensions), {".bpk", ".safetensors"})
        for a in extensions:
            for b in extensions:
                out = "out%s%s" % (a, b)
                result = self.works("convert", "in" + a, "-o", out)
                self.assertRegex(result.err, r"%s: 3 tensors, [0-9,]+ bytes" % re.escape(out))
                self.assertTrue(self.works("diff", "in" + a, out).out.endswith("same: 3 tensors, 64 bytes, bit for bit\n"))

    def test_CL_06_the_summary_tells_the_peak_of_memory_and_it_is_small(self):
        support.write_sparse(self.path("big.safetensors"), 1 << 28)
        document = self.works("convert", "--json", "big.safetensors", "-o", "big.bpk").document
        self.assertGreater(int(document["peak_memory"]), 1 << 20)
        if "ASAN_OPTIONS" not in os.environ and not os.environ.get("DECANT_BUILD", "").endswith(("asan", "tsan")):
            self.assertLess(int(document["peak_memory"]), 32 << 20)

    def test_CL_07_the_same_rule_of_replacing_for_every_way_to_say_it(self):
        self.model()
        self.model("there.bpk")
        for words in [["convert"], ["plan"], ["convert", "-n"]]:
            self.refused(4, *words, "m.safetensors", "-o", "there.bpk", says="; ")
            self.works(*words, "-f", "m.safetensors", "-o", "there.bpk")

    def test_FW_04_a_tensor_of_more_than_two_gibibytes_arrives_whole(self):
        size = (1 << 31) + (1 << 20)
        if os.path.basename(os.environ.get("DECANT_BUILD", "release")) != "release":
            self.skipTest("it takes long; once is enough, and in a release")
        free = os.statvfs(self.folder)
        if free.f_bavail * free.f_frsize < 2 * size:
            self.skipTest("needs 5 GB of room")
        support.write_sparse(self.path("big.safetensors"), size, count=1)
        with open(self.path("big.safetensors"), "r+b") as f:
            f.seek(-20, os.SEEK_END)
            f.write(b"\1" * 20)
        self.works("convert", "big.safetensors", "-o", "big.bpk")
        with open(self.path("big.bpk"), "rb") as f:
            f.seek(-21, os.SEEK_END)
            self.assertEqual(f.read(), b"\0" + b"\1" * 20)
        self.assertGreater(os.path.getsize(self.path("big.bpk")), size)


if __name__ == "__main__":
    support.main()
