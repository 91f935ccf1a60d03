"""decant extract: single tensors into files of their own."""

import json
import os
import stat
import unittest

import support


class Extract(support.Case):
    def setUp(self):
        super().setUp()
        self.data = {"a.weight": bytes(range(24)), "b": b"xyz", "h": b"\1\2\3\4"}
        self.model("m.safetensors", [("a.weight", "F32", [2, 3], self.data["a.weight"]), ("b", "U8", [3], self.data["b"]),
                                     ("h", "BF16", [2], self.data["h"])])

    def test_all_are_written_and_told(self):
        result = self.works("extract", "m.safetensors")
        self.assertEqual(sorted(result.out.splitlines()), ["a.weight.npy\ta.weight", "b.npy\tb", "h.bin\th"])
        self.assertEqual(self.names(), ["a.weight.npy", "b.npy", "h.bin", "m.safetensors"])
        self.assertEqual(self.read("h.bin"), self.data["h"])
        npy = self.read("a.weight.npy")
        self.assertEqual(npy[:8], b"\x93NUMPY\1\0")
        self.assertEqual(npy[10:128], b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }".ljust(117) + b"\n")
        self.assertEqual(npy[128:], self.data["a.weight"])

    def test_those_that_are_named_are_written_once_into_a_folder(self):
        os.mkdir(self.path("out"))
        result = self.works("extract", "m.safetensors", "b", "h", "b", "-o", "out")
        self.assertEqual(result.out, "out/b.npy\tb\nout/h.bin\th\n")
        self.assertEqual(sorted(os.listdir(self.path("out"))), ["b.npy", "h.bin"])

    def test_one_goes_to_a_file_of_any_name(self):
        self.assertEqual(self.works("extract", "m.safetensors", "b", "-o", "x.npy").out, "x.npy\tb\n")
        self.assertEqual(self.read("x.npy")[-3:], b"xyz")
        self.works("extract", "m.safetensors", "b", "-o", "x.bin")
        self.assertEqual(self.read("x.bin"), b"xyz")
        self.works("extract", "m.safetensors", "b", "-o", "y", "--to", "raw")
        self.assertEqual(self.read("y"), b"xyz")
        self.refused(4, "extract", "m.safetensors", "b", "h", "-o", "z", says="no such folder")
        self.refused(4, "extract", "m.safetensors", "-o", "z", says="no such folder")
        self.refused(4, "extract", "m.safetensors", "b", "-o", "no/z", says="there is no folder 'no'")

    def test_PF_08_one_goes_to_standard_output(self):
        result = self.works("extract", "m.safetensors", "a.weight", "-o", "-", "--to", "raw")
        self.assertEqual((result.raw_out, result.err), (self.data["a.weight"], ""))
        self.works("extract", "m.safetensors", "a.weight", "-o", "x.npy")
        with open(self.path("y.npy"), "wb") as f:
            self.works("extract", "m.safetensors", "a.weight", "-o", "-", stdout=f)
        self.assertEqual(self.read("y.npy"), self.read("x.npy"))
        self.refused(2, "extract", "m.safetensors", "b", "h", "-o", "-", says="takes one tensor")
        self.assertEqual(self.decant("extract", "m.safetensors", "b", "-o", "-", "--json").code, 2)
        with open("/dev/full", "wb") as full:
            result = self.decant("extract", "m.safetensors", "b", "-o", "-", stdout=full)
        self.assertEqual(result.code, 4)
        self.assertIn("standard output", result.err)

    def test_raw_bytes_are_had_of_any_dtype_and_npy_of_those_that_numpy_has(self):
        self.assertEqual(self.works("extract", "m.safetensors", "--to", "raw").out.count(".bin\t"), 3)
        for name, data in self.data.items():
            self.assertEqual(self.read(name + ".bin"), data)
        self.refused(3, "extract", "m.safetensors", "h", "--to", "npy", says=["tensor 'h'", "NumPy has no BF16", "--to raw"])
        self.refused(3, "extract", "m.safetensors", "h", "-o", "h.npy", says="NumPy has no BF16")
        self.refused(2, "extract", "m.safetensors", "--to", "burnpack", says="npy, raw")

    def test_nothing_is_replaced_unless_it_is_asked_for_and_nothing_is_written_if_one_is_refused(self):
        support.write(self.path("h.bin"), b"old")
        self.refused(4, "extract", "m.safetensors", says=["h.bin", "--force"])
        self.works("extract", "-f", "m.safetensors")
        self.assertEqual(self.read("h.bin"), self.data["h"])
        self.refused(4, "extract", "m.safetensors", "b", "-o", "m.safetensors")

    def test_a_name_that_is_not_there_is_named_with_one_that_is(self):
        self.refused(3, "extract", "m.safetensors", "b", "a.wieght", says=["'a.wieght'", "did you mean 'a.weight'?"])
        self.refused(3, "extract", "m.safetensors", "something else", says="decant ls")
        self.refused(3, "extract", "none.safetensors", "b")

    def test_a_dry_run_says_what_goes_where(self):
        before = self.tree()
        self.assertEqual(self.works("extract", "-n", "m.safetensors", "b").out, "b.npy\tb\n")
        self.assertEqual(self.tree(), before)
        support.write(self.path("b.npy"), b"old")
        self.refused(4, "extract", "-n", "m.safetensors", "b")

    def test_json_has_the_files(self):
        extracted = self.works("extract", "m.safetensors", "b", "h", "--json").document["extracted"]
        self.assertEqual(extracted, [{"file": "b.npy", "name": "b", "bytes": "3"}, {"file": "h.bin", "name": "h", "bytes": "4"}])

    def test_each_file_has_the_mode_of_the_umask(self):
        self.works("extract", "m.safetensors", "b", preexec_fn=lambda: os.umask(0o077))
        self.assertEqual(stat.S_IMODE(os.stat(self.path("b.npy")).st_mode), 0o600)

    def test_SE_02_names_stay_in_their_folder_whatever_they_are(self):
        names = ["../up", "/etc/passwd", "..", ".", ".hidden", "a/b", "a\\b", "new\nline", "tab\t", "", "per%cent", "x" * 300,
                 "\u00e9" * 200, "y" * 240 + "\U0001f600" * 5, "-rf", "con"]
        self.model("n.safetensors", [(n, "U8", [1], bytes([i])) for i, n in enumerate(names)])
        os.mkdir(self.path("out"))
        before = self.tree(begun=True)
        lines = self.works("extract", "n.safetensors", "-o", "out").out.splitlines()
        self.assertEqual(len(lines), len(names))
        after = self.tree(begun=True)
        self.assertEqual({k: v for k, v in after.items() if not k.startswith("out")},
                         {k: v for k, v in before.items() if not k.startswith("out")})
        files = os.listdir(self.path("out"))
        self.assertEqual(len(files), len(names))
        for file in files:
            self.assertTrue(file.endswith(".npy") and not file.startswith(".") and file.isprintable())
            self.assertLessEqual(len(file.encode()), 255)
        for file in ["%2E.%2Fup.npy", "%2Fetc%2Fpasswd.npy", "%2E..npy", "%2E.npy", "%2Ehidden.npy", "a%2Fb.npy", "a%5Cb.npy",
                     "new%0Aline.npy", "tab%09.npy", "%.npy", "per%25cent.npy", "-rf.npy"]:
            self.assertIn(file, files)
        for i, name in enumerate(names):
            os.makedirs(self.path("one"), exist_ok=True)
            out = self.works("extract", "-f", "n.safetensors", "-o", "one", "--", name).out
            self.assertEqual(self.read(out.split("\t")[0])[-1], i, name)

    def test_names_that_differ_in_case_alone_go_to_files_that_do_not(self):
        self.model("n.safetensors", [("W", "U8", [1], b"1"), ("w", "U8", [1], b"2"), ("v", "U8", [1], b"3")])
        result = self.works("extract", "n.safetensors")
        files = [line.split("\t")[0] for line in result.out.splitlines()]
        self.assertEqual(len({f.lower() for f in files}), 3)
        self.assertIn("W.npy", files)
        self.assertRegex(result.err, r"\Adecant: W\.npy: odd: another name differs from it in case alone, and goes to w%~[0-9a-f]{16}\.npy\n\Z")


if __name__ == "__main__":
    support.main()
