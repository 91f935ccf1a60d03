"""What people who do this job ran into, each by its number in the collection of reports."""

import json
import os
import pickle
import re
import resource
import shutil
import stat
import struct
import tempfile
import unittest

import support


def raw(header, body=b"", odd=0):
    """A safetensors file with exactly this header, its length `odd` more than a multiple of 8."""
    text = header.encode()
    text += b" " * ((odd - len(text)) % 8)
    return struct.pack("<Q", len(text)) + text + body


def head(kind, count):
    """The head of a CBOR item, as wide as can be: its kind is 0 for a number, 3 for text, 4 for an array, 5 for a map."""
    return bytes([kind << 5 | 27]) + struct.pack(">Q", count)


def cbor(value):
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())


def burnpack(metadata, data=b""):
    """A Burnpack file with this metadata: CBOR, or what becomes it."""
    text = metadata if isinstance(metadata, bytes) else cbor(metadata)
    start = b"NRUB" + struct.pack("<HI", 1, len(text)) + text
    return start + bytes(-len(start) % 256) + data


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
        odd = ["the name ends in .bin, the content is safetensors"]
        self.assertEqual(self.works("ls", "--json", "x.bin").document["files"][0]["odd"], odd)
        self.assertEqual(self.works("convert", "--json", "-f", "x.bin", "-o", "x.bpk").document["odd"], odd)
        document = self.works("diff", "--json", "x.bpk", "x.bin").document
        self.assertEqual((document["odd_a"], document["odd_b"]), ([], odd))

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


class Written(support.Case):
    """FW: what decant writes."""

    def test_FW_01_metadata_without_tensors_is_a_file_and_so_is_nothing_at_all(self):
        for metadata in [{"key": "value"}, {}, None]:
            self.model("m.safetensors", [], metadata)
            for out in ["x.bpk", "x.safetensors"]:
                self.works("convert", "-f", "m.safetensors", "-o", out)
                shown = self.works("inspect", "--json", out).document["files"][0]
                self.assertEqual([(v["key"], v["value"]) for v in shown["values"]], list((metadata or {}).items()))
            text = self.read("x.safetensors")[8:]
            self.assertEqual(json.loads(text), {} if metadata is None else {"__metadata__": metadata})

    def test_FW_02_FW_03_neither_order_nor_process_nor_place_nor_time_leaves_a_trace(self):
        keys = ["k%02d" % (i * 7 % 16) for i in range(16)]
        places = [{"TZ": "UTC", "LC_ALL": "C"}, {"TZ": "Asia/Tokyo", "LC_ALL": "tr_TR.UTF-8"}, {"LC_ALL": "de_DE.UTF-8"}]
        for out in ["x.bpk", "x.safetensors"]:
            files = set()
            for turn, env in enumerate(places):
                self.model("m%d" % turn, metadata={key: "v" + key for key in keys[turn:] + keys[:turn]})
                self.works("convert", "-f", "m%d" % turn, "-o", out, env=env)
                files.add(self.read(out))
            self.assertEqual(len(files), 1)

    def test_FW_05_sizes_past_31_and_32_bits(self):
        sizes = [(1 << 31) - 1, 1 << 31, (1 << 32) + 1, 5]
        ends, header = [sum(sizes[:i + 1]) for i in range(len(sizes))], {}
        for i, (size, end) in enumerate(zip(sizes, ends)):
            header["t%d" % i] = {"dtype": "U8", "shape": [size], "data_offsets": [end - size, end]}
        start = raw(json.dumps(header))
        with open(self.path("big.safetensors"), "wb") as f:
            f.write(start)
            for end in ends:
                f.seek(len(start) + end - 1)
                f.write(b"\1")
        self.assertEqual(self.works("ls", "big.safetensors").out,
                         "".join("t%d\tU8\t[%d]\t%d\n" % (i, size, size) for i, size in enumerate(sizes)))
        planned = self.works("plan", "--json", "big.safetensors", "-o", "big.bpk").document["output"]
        self.assertEqual(planned["data"], str(sum(sizes)))
        if not os.environ.get("NIGHTLY"):
            return
        free = os.statvfs(self.folder)
        if free.f_bavail * free.f_frsize < 2 * sum(sizes):
            self.skipTest("needs 18 GB of room")
        self.works("convert", "big.safetensors", "-o", "big.bpk")
        self.assertEqual(str(os.path.getsize(self.path("big.bpk"))), planned["size"])
        self.works("diff", "big.safetensors", "big.bpk")

    def test_FW_05_a_limit_of_the_format_is_told_before_and_names_the_tensor(self):
        support.write_sparse(self.path("big.safetensors"), (10 << 30) + 4096, count=1)
        for command in ["plan", "convert"]:
            self.refused(4, command, "big.safetensors", "-o", "big.bpk", says=[
                "tensor 't0': 10,737,422,336 bytes, ", "at most 10,737,418,240 a tensor", "--allow limits"])
        self.works("plan", "--allow", "limits", "big.safetensors", "-o", "big.bpk")

    def test_FW_06_saving_again_replaces_and_never_adds(self):
        self.model("m.safetensors", [("t", "F32", [2000], None)])
        for out in ["x.bpk", "x.safetensors"]:
            files = set()
            for _ in range(3):
                self.works("convert", "-f", "m.safetensors", "-o", out)
                files.add(self.read(out))
            self.assertEqual(len(files), 1)
        self.assertEqual(self.names(), ["m.safetensors", "x.bpk", "x.safetensors"])


class Converted(support.Case):
    """CV: formats change, what is in them does not."""

    def there_and_back(self, tensors):
        self.model("m.safetensors", tensors)
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        self.works("convert", "m.bpk", "-o", "back.safetensors")
        self.works("diff", "m.safetensors", "back.safetensors")
        lines = ["%s\t%s\t%s\t%d" % (n, d, s, support.byte_count(d, s)) for n, d, s, _ in tensors]
        for name in ["m.safetensors", "m.bpk", "back.safetensors"]:
            self.assertEqual(sorted(self.works("ls", name).out.splitlines()), sorted(lines))

    def test_CV_03_what_a_format_cannot_hold_is_counted_by_dtype_before_anything_is_written(self):
        dtypes = ["F8_E4M3"] + 2 * ["F8_E5M2"] + ["F32"]
        header, body = {}, b""
        for i, dtype in enumerate(dtypes):
            data = bytes(range(256)) if dtype != "F32" else b"\0\0\0?"
            header["t%d" % i] = {"dtype": dtype, "shape": [256] if dtype != "F32" else [],
                                 "data_offsets": [len(body), len(body) + len(data)]}
            body += data
        support.write(self.path("m.safetensors"), raw(json.dumps(header), body))
        for words in [["plan"], ["convert"], ["convert", "--allow", "loss"]]:
            self.refused(3, *words, "m.safetensors", "-o", "m.bpk", says="1 F8_E4M3 tensor and 2 F8_E5M2 tensors")
        self.works("convert", "m.safetensors", "-o", "same.safetensors")
        self.works("diff", "m.safetensors", "same.safetensors")

    def test_CV_04_long_names_are_never_cut(self):
        self.there_and_back([(name, "U8", [1], None) for name in [
            "x" * 63, "x" * 64, "x" * 65, "y" * 63 + "a" * 7, "y" * 63 + "b" * 7, "z" * 62 + "é", "z" * 62 + "éa"]])

    def test_CV_06_CV_08_dtype_and_shape_stay_what_they_are(self):
        self.there_and_back([("bf16", "BF16", [3, 5], None), ("f16", "F16", [7, 1, 2], None), ("f64", "F64", [2], None)])

    def test_CV_09_bits_of_another_dtype_are_not_the_same_tensor(self):
        for dtype in ["F32", "I32", "U32"]:
            self.model(dtype + ".safetensors", [("t", dtype, [4], bytes(range(16)))])
            self.works("convert", dtype + ".safetensors", "-o", dtype + ".bpk")
        for other in ["I32", "U32"]:
            for extension in [".safetensors", ".bpk"]:
                result = self.decant("diff", "F32.safetensors", other + extension)
                self.assertEqual((result.code, result.out), (1, "dtype       t   F32, %s\n" % other))


class Disk(support.Case):
    """DA: what becomes of files when things go wrong. (More of them stand in test_places.py, test_faults.py and test_signals.py.)"""

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "there is no other file system")
    def test_DA_09_a_file_in_a_folder_of_a_group_on_another_file_system_is_the_groups(self):
        self.model()
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="decant-cli-") as folder:
            if os.geteuid() == 0:
                os.chown(folder, -1, 12345)
            os.chmod(folder, 0o2770)
            out = os.path.join(folder, "m.bpk")
            self.works("convert", "m.safetensors", "-o", out, preexec_fn=lambda: os.umask(0o007))
            status = os.stat(out)
            self.assertEqual((stat.S_IMODE(status.st_mode), status.st_gid), (0o660, os.stat(folder).st_gid))


class Hostile(support.Case):
    """SE: what means harm is refused with little memory, whatever it claims."""

    def check(self, name, data, says=()):
        more = {}
        if not sanitized():
            more["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 26, 1 << 26))
        support.write(self.path(name), data)
        self.refused(3, "ls", name, says=says, **more)
        for words in [["--lenient"], ["--allow", "limits"]]:
            self.assertEqual(self.decant("ls", name, *words, **more).code, 3)

    def test_SE_03_no_count_is_believed(self):
        for count in [1 << 40, 1 << 47, 1 << 60, 1 << 63, (1 << 64) - 1]:
            tensor = cbor("tensors") + head(5, 1) + cbor("w") + head(5, 3)
            for text in [head(5, count), head(5, 1) + cbor("tensors") + head(5, count), head(5, 1) + cbor("tensors") + head(3, count),
                         head(5, 1) + tensor + cbor("shape") + head(4, count), head(5, 1) + tensor + cbor("shape") + head(2, count)]:
                self.check("m.bpk", burnpack(text), "at byte ")
        self.check("m.bpk", b"NRUB\1\0\xff\xff\xff\xff\xa0", "its metadata ends at byte 4294967305")

    def test_SE_04_no_header_is_trusted(self):
        header = '{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
        size = len(raw(header, b"x"))
        for claimed, says in [((1 << 64) - 1, "its header ends at byte 18446744073709551615"), (size + 1, "its header ends"),
                              (size - 7, "its header ends"), (0, "begins with zeros"), (1, "at byte 9"), (1 << 31, "its header ends")]:
            self.check("m.safetensors", struct.pack("<Q", claimed) + raw(header, b"x")[8:], says)
        for text in ["[" * 100000, '{"t":' + "[" * 100000, '{"t":' * 100000, '{"t":{"x":' + "[" * 100000 + "]" * 100000 + "}}",
                     header.replace("[1]", "[1e400]"), header.replace("[1]", "[%s]" % ("9" * 100000))]:
            self.check("m.safetensors", raw(text, b"x"))
        self.check("m.safetensors", raw(header, b"x").replace(b'"t"', b'"\xff"'), "UTF-8")
        self.check("m.bpk", burnpack(b"\x81" * 100000))
        self.check("m.bpk", burnpack(head(5, 1) + cbor("other") + b"\x81" * 100000), "; write the file again with less nesting")

    def test_SE_05_a_pickle_is_named_and_never_run(self):
        for protocol in [2, 3, 4, 5]:
            self.check("m.pt", pickle.dumps({"w": Touch(self.path("run"))}, protocol), "a Python pickle")
        self.check("m.pt", pickle.dumps(Touch(self.path("run")), 0))
        self.assertEqual(self.names(), ["m.pt"])

    def test_SE_06_SE_07_offsets_that_wrap_or_hold_something_else_name_their_tensor(self):
        top = 1 << 64
        for shape, begin, end in [([4], top - 24, top - 8), ([4], top - 8, 8), ([4], top - 17, top - 1), ([1 << 61], 0, 1 << 63),
                                  ([1024], 0, 16), ([4], 32, 16), ([4], 1 << 40, (1 << 40) + 16), ([1 << 33, 1 << 33], 0, 16)]:
            tensors = {"segment": {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}}
            self.check("m.safetensors", raw(json.dumps(tensors), bytes(16)), "tensor 'segment': ")
            self.check("m.bpk", burnpack({"tensors": tensors}, bytes(16)), "tensor 'segment': ")


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, ("touch " + self.path,)


def sanitized():
    return "ASAN_OPTIONS" in os.environ or os.environ.get("DECANT_BUILD", "").endswith(("asan", "tsan"))


class Reports(support.Case):
    def test_CL_08_damage_is_described_by_part_and_place_with_a_next_step(self):
        self.model("m.safetensors", metadata={"a": "b"})
        shutil.copy(os.path.join(support.SOURCE, "tests/data/scalars-each-kind.bpk"), self.path("m.bpk"))
        place = r"at byte [0-9]+|tensor '.+'|the file has [0-9]+ bytes|found 'version |found version|no format that is known"
        for name, most in [("m.safetensors", 280), ("m.bpk", 300)]:
            whole = self.read(name)
            for at in range(0, most, 3):
                support.write(self.path("damaged"), whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1:])
                result = self.decant("ls", "damaged")
                self.assertIn(result.code, [0, 3])
                if result.code:
                    self.assertRegex(result.err, r"\Adecant: damaged: [^\n]*(%s)[^\n]*; [^\n]+\n\Z" % place)

    def test_CL_01_a_glob_never_turns_an_input_into_an_output(self):
        for i in range(1, 4):
            self.model("p-0000%d-of-00003.safetensors" % i, [("w%d" % i, "U8", [3], None)])
        parts = self.names()
        before = self.tree()
        self.refused(2, "convert", *parts, says=["3 inputs given", "-o OUT"])
        self.refused(2, "convert", parts[0], says="-o OUT")
        self.refused(4, "convert", *parts, "-o", parts[1], says="the output is one of the inputs")
        self.works("convert", *parts, "-o", "out.bpk")
        self.assertEqual(self.works("ls", "out.bpk").out.count("\n"), 3)
        after = self.tree()
        for part in parts:
            self.assertEqual(after[part], before[part])

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
        if not sanitized():
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
