"""inspect, ls and diff."""

import os
import shutil
import signal
import struct
import subprocess
import time

import support


def f32(*values):
    return struct.pack("<%df" % len(values), *values)


class Ls(support.Case):
    def test_elsewhere_than_on_a_terminal_tabs_stand_between_the_columns(self):
        self.model("m.safetensors", [("a.b", "F32", [3, 4], None), ("c", "I64", [], None), ("d", "BF16", [2000], None)])
        self.assertEqual(self.works("ls", "m.safetensors").out, "a.b\tF32\t[3, 4]\t48\nc\tI64\t[]\t8\nd\tBF16\t[2000]\t4000\n")

    def test_of_several_files_each_is_named_and_the_highest_code_counts(self):
        self.model("a.safetensors", [("a", "U8", [1], None)])
        self.model("b.safetensors", [("b", "U8", [1], None)])
        self.assertEqual(self.works("ls", "a.safetensors", "b.safetensors").out,
                         "a.safetensors:\na\tU8\t[1]\t1\n\nb.safetensors:\nb\tU8\t[1]\t1\n")
        result = self.decant("ls", "a.safetensors", "none", "b.safetensors")
        self.assertEqual(result.code, 3)
        self.assertIn("b\tU8\t[1]\t1\n", result.out)
        self.assertRegex(result.err, r"\Adecant: none: .*; .*\n\Z")

    def test_json_has_the_tensors_of_each_file_and_its_error(self):
        self.model("a.safetensors", [("a\n", "F32", [1, 2], None)])
        result = self.decant("ls", "--json", "a.safetensors", "none")
        document = self.check_document(result)
        self.assertEqual((result.code, result.err), (3, ""))
        self.assertEqual(document["files"][0], {
            "file": "a.safetensors", "format": "safetensors", "odd": [], "error": None,
            "tensors": [{"name": "a\n", "dtype": "F32", "shape": [1, 2], "bytes": "8"}]})
        self.assertEqual(document["files"][1]["error"], document["error"])
        self.assertEqual(document["error"]["code"], "not_found")


class Inspect(support.Case):
    def test_it_says_what_a_file_is(self):
        self.model("m.safetensors", [("big", "F32", [100, 1000], None), ("small", "F32", [2], None), ("n", "I64", [], None)],
                   {"format": "pt", "note": "two\nlines"})
        out = self.works("inspect", "m.safetensors").out
        self.assertTrue(out.startswith("m.safetensors   safetensors, 400,016 bytes of data\n"), out)
        self.assertIn("  tensors    3, 2 F32, 1 I64; largest big [100, 1000], 400 kB\n", out)
        self.assertIn("  metadata   format = pt\n             note = two\\x0alines\n", out)
        self.assertIn("  opens in   safetensors, transformers\n", out)

    def test_one_dtype_is_said_shortly(self):
        self.model("m.safetensors", [("a", "BF16", [2], None), ("b", "BF16", [3], None)])
        self.assertIn("  tensors    2, all BF16; largest b [3], 6 bytes\n", self.works("inspect", "m.safetensors").out)

    def test_long_metadata_is_cut_and_shown_with_verbose(self):
        self.model("m.safetensors", metadata={"key%02d" % i: "x" * 300 for i in range(30)})
        out = self.works("inspect", "m.safetensors").out
        self.assertIn("and 10 more", out)
        self.assertLess(max(map(len, out.splitlines())), 130)
        self.assertEqual(self.works("inspect", "-v", "m.safetensors").out.count("x" * 300), 30)

    def test_scalars_stand_apart_from_metadata_with_the_digits_they_need(self):
        shutil.copy(os.path.join(support.SOURCE, "tests/data/scalars-each-kind.bpk"), self.folder)
        out = self.works("inspect", "-v", "scalars-each-kind.bpk").out
        self.assertIn("  scalars    bool.false = false\n             bool.true = true\n", out)
        for line in ["float.0.1 = 0.1", "float.1e300 = 1e+300", "float.inf = inf", "int.min = -9223372036854775808"]:
            self.assertIn("             %s\n" % line, out)
        self.assertNotIn("metadata", out)
        values = self.works("inspect", "--json", "scalars-each-kind.bpk").document["files"][0]["values"]
        self.assertIn({"key": "float.inf", "type": "f64", "value": "inf"}, values)
        self.assertIn({"key": "bool.true", "type": "bool", "value": True}, values)

    def test_json_has_exact_values(self):
        self.model("m.safetensors", metadata={"format": "pt", "q": "\"\\\n\x7f"})
        document = self.check_document(self.works("inspect", "--json", "m.safetensors"))
        shown = document["files"][0]
        self.assertEqual((shown["format"], shown["data"], shown["tensor_count"]), ("safetensors", "64", 3))
        self.assertEqual(shown["dtypes"], {"F32": 1, "BF16": 1, "I64": 1})
        self.assertEqual(shown["size"], str(len(self.read("m.safetensors"))))
        self.assertEqual([(v["key"], v["type"], v["value"]) for v in shown["values"]],
                         [("format", "text", "pt"), ("q", "text", "\"\\\n\x7f")])
        self.assertEqual(shown["opens_in"], [{"by": "safetensors", "why_not": None}, {"by": "transformers", "why_not": None}])


class Diff(support.Case):
    def two(self, a, b, a_metadata=None, b_metadata=None):
        self.model("a.safetensors", a, a_metadata)
        self.model("b.safetensors", b, b_metadata)

    def differ(self, *lines):
        result = self.decant("diff", "a.safetensors", "b.safetensors")
        self.assertEqual((result.code, result.err), (1, ""), result)
        self.assertEqual(result.out.splitlines(), list(lines))

    def test_the_same_weights_are_the_same_in_any_order_and_format(self):
        tensors = [("x", "F32", [3], None), ("y", "U8", [5], None), ("z", "BF16", [0], None)]
        self.two(tensors, tensors[::-1])
        self.works("convert", "b.safetensors", "-o", "b.bpk")
        for b in ["b.safetensors", "b.bpk"]:
            self.assertEqual(self.works("diff", "a.safetensors", b).out, "same: 3 tensors, 17 bytes, bit for bit\n")

    def test_every_kind_of_difference_has_its_line_in_order_of_name(self):
        self.two([("only", "F32", [4], None), ("type", "F32", [2], None), ("shape", "U8", [6], None),
                  ("values", "F32", [2, 3], f32(1, 2, 3, 4, 5, 6)), ("same", "U8", [2], None)],
                 [("new", "I8", [], None), ("type", "I32", [2], None), ("shape", "U8", [2, 3], None),
                  ("values", "F32", [2, 3], f32(1, 2, 3, 4, 0.0125, 7)), ("same", "U8", [2], None)])
        self.differ("only in b   new   I8 []",
                    "only in a   only   F32 [4]",
                    "shape       shape   [6], [2, 3]",
                    "dtype       type   F32, I32",
                    "values      values   2 of 6 differ, first at [1, 1]: 5, 0.0125")

    def test_metadata_is_shown_and_does_not_count(self):
        self.two(None, None, {"format": "pt", "gone": "1"}, {"format": "np", "more": "2"})
        out = self.works("diff", "a.safetensors", "b.safetensors").out
        self.assertEqual(out.splitlines(), ["metadata    format   pt, np", "metadata    gone   1, ", "metadata    more   , 2",
                                            "same: 3 tensors, 64 bytes, bit for bit"])

    def test_bits_count_and_not_numbers(self):
        nan, other = struct.pack("<I", 0x7FC00000), struct.pack("<I", 0x7FC00001)
        self.two([("nan", "F32", [2], nan + nan), ("zero", "F32", [], f32(0.0))],
                 [("nan", "F32", [2], nan + other), ("zero", "F32", [], f32(-0.0))])
        self.differ("values      nan   1 of 2 differ, first at [1]: 0x7fc00000, 0x7fc00001",
                    "values      zero   1 of 1 differ, first at []: 0, -0")

    def test_large_tensors_are_compared_to_the_last_byte(self):
        size = 3 * (1 << 20) + 17
        data = bytearray(size)
        self.model("a.safetensors", [("t", "U8", [size], bytes(data))])
        data[-1], data[1 << 20] = 1, 255
        self.model("b.safetensors", [("t", "U8", [size], bytes(data))])
        self.differ("values      t   2 of 3,145,745 differ, first at [1048576]: 0, 255")

    def test_each_type_is_printed_as_people_write_it(self):
        cases = [("F64", struct.pack("<dd", 0.1, 1e300), "0.1, 1e+300"), ("F16", struct.pack("<ee", 0.5, -65504), "0.5, -65504"),
                 ("BF16", b"\x80\x3f\xc0\xff", "1, -nan"), ("I8", b"\x80\x7f", "-128, 127"), ("U16", b"\xff\xff\0\0", "65535, 0"),
                 ("I64", struct.pack("<qq", -2**63, 7), "-9223372036854775808, 7"), ("BOOL", b"\0\x01", "false, true"),
                 ("U64", struct.pack("<QQ", 2**64 - 1, 7), "18446744073709551615, 7")]
        for dtype, data, text in cases:
            half = len(data) // 2
            self.two([("t", dtype, [1], data[:half])], [("t", dtype, [1], data[half:])])
            self.differ("values      t   1 of 1 differ, first at [0]: " + text)

    def test_json_has_every_difference(self):
        self.two([("x", "F32", [2], f32(1, 2))], [("x", "F32", [2], f32(1, 3)), ("y", "U8", [1], None)])
        document = self.check_document(self.decant("diff", "--json", "a.safetensors", "b.safetensors"))
        self.assertEqual((document["exit"], document["error"], document["same"]), (1, None, False))
        self.assertEqual([(d["kind"], d["name"]) for d in document["differences"]], [("values", "x"), ("only in b", "y")])
        self.assertEqual({k: document["differences"][0][k] for k in ["unit", "differ", "of", "first", "a_text", "b_text"]},
                         {"unit": "element", "differ": "1", "of": "2", "first": "1", "a_text": "2", "b_text": "3"})

    def test_numbers_need_only_be_close_when_a_tolerance_is_given(self):
        self.two([("x", "F32", [2], struct.pack("<2f", 1, 51)), ("n", "I8", [1], b"\1")],
                 [("x", "F32", [2], struct.pack("<2f", 1.5, 53)), ("n", "I8", [1], b"\1")])
        files = ["a.safetensors", "b.safetensors"]
        self.assertIn("values      x   2 of 2 differ", self.decant("diff", *files).out)
        exact = "  bit for bit all the same: 1 tensor of whole numbers, booleans, packed or quantized values\n"
        self.assertEqual(self.decant("diff", *files, "--atol", "0.5").out,
                         "values      x   1 of 2 differ, first at [1]: 51, 53\n" + exact)
        self.assertEqual(self.decant("diff", *files, "--rtol", "0.1").out,
                         "values      x   1 of 2 differ, first at [0]: 1, 1.5\n" + exact)
        self.assertEqual(self.works("diff", *files, "--atol", "0.5", "--rtol", "0.1").out,
                         "same: 2 tensors, 9 bytes, numbers within rtol 0.1 and atol 0.5\n" + exact)
        self.assertEqual(self.decant("diff", *files, "--atol", "0.5", "--json").document["exact_count"], 1)
        self.assertEqual(self.decant("diff", *files, "--json").document["exact_count"], 0)
        for wrong in ["-1", "nan", "inf", "1e999", "", "1x", "x"]:
            self.refused(2, "diff", *files, "--rtol=" + wrong, says="is no tolerance")

    def test_a_file_that_cannot_be_read_is_no_difference(self):
        self.model("a.safetensors")
        self.refused(3, "diff", "a.safetensors", "none", says="none: ")
        self.refused(3, "diff", "none", "a.safetensors", says="none: ")


class Streams(support.Case):
    def test_an_answer_that_cannot_be_printed_is_a_failure(self):
        self.model()
        with open("/dev/full", "wb") as full:
            for words in [["ls", "m.safetensors"], ["inspect", "m.safetensors"], ["formats"], ["diff", "m.safetensors", "m.safetensors"],
                          ["plan", "m.safetensors", "-o", "m.bpk"], ["ls", "--json", "m.safetensors"], ["--help"]]:
                result = self.decant(*words, stdout=full)
                self.assertEqual(result.code, 4, words)
                self.assertRegex(result.err, r"\Adecant: standard output: .*; .*\n\Z")

    def test_a_file_that_was_saved_stays_saved_when_that_cannot_be_printed(self):
        self.model()
        with open("/dev/full", "wb") as full:
            result = self.decant("convert", "--json", "m.safetensors", "-o", "m.bpk", stdout=full)
        self.assertEqual(result.code, 6)
        self.assertIn("decant: standard output: ", result.err)
        self.works("diff", "m.safetensors", "m.bpk")

    def test_closed_streams_are_never_mistaken_for_a_model(self):
        support.write_sparse(self.path("big.safetensors"), 1 << 28)
        for closed in [[0], [1], [2], [0, 1, 2]]:
            process = self.start("convert", "big.safetensors", "-o", "big.bpk",
                                 preexec_fn=lambda streams=closed: [os.close(stream) for stream in streams])
            while len(self.names()) == 1 and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGSTOP)
            for stream in closed:
                self.assertEqual(os.readlink("/proc/%d/fd/%d" % (process.pid, stream)), "/dev/null")
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            process.communicate()
            self.assertEqual((process.returncode, self.names()), (-signal.SIGTERM, ["big.safetensors"]))

    def test_an_answer_to_a_closed_stream_is_a_failure(self):
        self.model()
        done = subprocess.run(["sh", "-c", '"$0" ls m.safetensors >&-', support.DECANT], cwd=self.folder,
                              stderr=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 4)

    def test_a_closed_pipe_ends_it_silently(self):
        self.model("m.safetensors", [("tensor%06d" % i, "U8", [1], b"x") for i in range(20000)])
        process = self.start("ls", "m.safetensors", preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
        process.stdout.read(10)
        process.stdout.close()
        self.assertEqual((process.stderr.read(), process.wait()), (b"", -13))
        process.stderr.close()


if __name__ == "__main__":
    support.main()
