"""Files that are no models, or no whole ones: what is said of them, and that nothing is written."""

import json
import os
import shutil
import struct

import support


class Refused(support.Case):
    def check(self, name, data, says, code=3):
        support.write(self.path(name), data)
        for words in [["inspect", name], ["ls", name], ["convert", name, "-o", "out.bpk"], ["plan", name, "-o", "out.bpk"],
                      ["diff", name, name]]:
            result = self.refused(code, *words, says=says)
            self.assertTrue(result.err.startswith("decant: %s: " % name), result)

    def test_a_git_lfs_pointer_is_called_that_in_every_format__FR_01(self):
        text = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 4976698672\n"
        for name in ["m.safetensors", "m.gguf", "m.bpk", "m.pt", "m.onnx"]:
            self.check(name, text, ["Git-LFS", "4,976,698,672"])

    def test_a_web_page_and_its_kin_are_called_what_they_look_like__FR_02(self):
        self.check("w.pth", b"<!DOCTYPE html><html><body>Sign in</body></html>", "HTML")
        self.check("w.safetensors", b'{"error":"Access denied"}', "JSON")
        for extension in ["safetensors", "bpk", "pt", "gguf"]:
            self.check("empty." + extension, b"", "empty")

    def test_what_nobody_knows_is_said_to_be_unknown(self):
        self.check("noise.safetensors", bytes(range(1, 256)) * 40, "noise.safetensors")

    def test_a_part_of_a_download_says_how_much_is_missing(self):
        whole = support.safetensors([("last.weight", "F32", [1000], None)])
        self.check("part.safetensors", whole[:-500], [])
        self.check("head.safetensors", whole[:20], [])
        support.write_model(self.path("m.safetensors"), [("last.weight", "F32", [1000], None)])
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        self.check("part.bpk", self.read("m.bpk")[:-500], [])

    def test_a_damaged_header_names_what_and_where__CL_08(self):
        whole = bytearray(support.safetensors([("t", "F32", [2], None)]))
        at = whole.index(b"F32")
        whole[at:at + 3] = b"F99"
        self.check("m.safetensors", bytes(whole), "'t'")

    def test_a_missing_file_is_an_input_refused(self):
        for words in [["ls", "none"], ["inspect", "none"], ["diff", "none", "none"], ["convert", "none", "-o", "x.bpk"],
                      ["ls", ""]]:
            self.refused(3, *words)

    def test_a_dtype_that_the_output_cannot_hold_is_named(self):
        self.model("m.safetensors", [("kept", "F32", [2], None), ("z", "F8_E5M2", [2], b"ab")])
        self.refused(3, "convert", "m.safetensors", "-o", "m.bpk", says=["F8_E5M2", "'z'"])

    def test_what_would_be_lost_is_counted_and_dropped_only_when_that_is_allowed(self):
        shutil.copy(os.path.join(support.SOURCE, "tests/data/param-ids.bpk"), self.path("m.bpk"))
        self.refused(3, "convert", "m.bpk", "-o", "m.safetensors", says=["12 param ids", "--allow loss"])
        plan = self.works("plan", "--allow", "loss", "m.bpk", "-o", "m.safetensors")
        self.assertIn("\nloses     12 param ids", plan.out)
        result = self.works("convert", "--allow=limits,loss", "m.bpk", "-o", "m.safetensors")
        self.assertIn("\n  lost     12 param ids", result.err)
        self.works("diff", "m.bpk", "m.safetensors")

    def test_lenient_accepts_what_the_reference_reader_accepts_and_says_what_was_odd(self):
        header = {"t": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2], "extra": 1}}
        text = json.dumps(header).encode()
        support.write(self.path("odd.safetensors"), struct.pack("<Q", len(text)) + text + b"ab")
        self.refused(3, "ls", "odd.safetensors")
        result = self.works("ls", "--lenient", "odd.safetensors")
        self.assertEqual(result.out, "t\tU8\t[2]\t2\n")
        self.assertRegex(result.err, r"\Adecant: odd\.safetensors: odd: .+\n\Z")

    def test_limits_are_lifted_by_their_word(self):
        name = "n" * 70000
        self.model("m.safetensors", [(name, "U8", [1], b"x")])
        self.refused(3, "ls", "m.safetensors", says="--allow limits")
        self.assertIn(name, self.works("ls", "--allow", "limits", "m.safetensors").out)


if __name__ == "__main__":
    support.main()
