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

    def test_a_path_that_is_empty_is_called_so(self):
        self.model()
        for words in [["convert", "", "-o", "x.bpk"], ["inspect", ""], ["diff", "m.safetensors", ""], ["cat", "", "-o", "x"],
                      ["extract", "", "w"], ["edit", "", "--set", "k=v"]]:
            self.refused(3, *words, says="the path is empty")
        self.refused(2, "digest", "-c", "", "m.safetensors", says=["manifest is empty", "-c FILE"])

    def test_a_link_that_leads_back_to_itself_is_not_blamed_on_permissions(self):
        os.symlink("there", self.path("here"))
        os.symlink("here", self.path("there"))
        self.refused(3, "inspect", "here", says="name the file itself")

    def test_a_dtype_that_the_output_cannot_hold_is_named(self):
        self.model("m.safetensors", [("kept", "F32", [2], None), ("z", "F8_E5M2", [2], b"ab")])
        self.refused(3, "convert", "m.safetensors", "-o", "m.bpk", says=["F8_E5M2", "'z'"])

    def test_what_would_be_lost_is_counted_and_dropped_only_when_that_is_allowed(self):
        support.with_unknown_key("tests/data/param-ids.bpk", self.path("m.bpk"), b"\x65later\xf5")
        self.refused(3, "convert", "-q", "m.bpk", "-o", "m.safetensors", says=["1 unknown top-level key", "--allow loss"])
        plan = self.works("plan", "--allow", "loss", "m.bpk", "-o", "m.safetensors")
        self.assertIn("\nloses     1 unknown top-level key", plan.out)
        result = self.works("convert", "--allow=limits,loss", "m.bpk", "-o", "m.safetensors")
        self.assertIn("\n  lost     1 unknown top-level key", result.err)
        self.works("diff", "m.bpk", "m.safetensors")

    def test_param_ids_scalars_and_dtypes_come_back_from_safetensors(self):
        for name in ["param-ids", "scalars-each-kind", "dtypes-all", "three-in-caller-order"]:
            shutil.copy(os.path.join(support.SOURCE, "tests/data", name + ".bpk"), self.path("m.bpk"))
            plan = self.works("plan", "m.bpk", "-o", name + ".safetensors")
            self.assertIn("\nloses     nothing", plan.out)
            self.assertIn("metadata under 'decant.'", plan.out)
            self.works("convert", "m.bpk", "-o", name + ".safetensors")
            self.works("convert", name + ".safetensors", "-o", name + ".bpk")
            self.assertEqual(self.read(name + ".bpk"), self.read("m.bpk"))

    def test_param_ids_scalars_and_order_come_back_from_a_set(self):
        for name in ["param-ids", "forty", "three-in-caller-order"]:
            shutil.copy(os.path.join(support.SOURCE, "tests/data", name + ".bpk"), self.path("m.bpk"))
            self.works("convert", "m.bpk", "-o", name + ".safetensors", "--max-shard-size", "4")
            parts = sorted(part for part in self.names() if part.startswith(name + "-0"))
            self.assertGreater(len(parts), 1)
            self.works("convert", name + ".safetensors.index.json", "-o", name + ".bpk")
            self.assertEqual(self.read(name + ".bpk"), self.read("m.bpk"))
            for part in parts[1:]:  # each has what is about its own tensors
                self.works("ls", part)

    def test_metadata_of_decants_own_that_does_not_fit_is_named(self):
        self.model("m.safetensors", [("t", "F32", [2], None)], {"decant.id.gone": "7"})
        self.refused(3, "convert", "m.safetensors", "-o", "m.bpk", says=["'decant.id.gone'", "--lenient"])
        result = self.works("convert", "--lenient", "m.safetensors", "-o", "m.bpk")
        self.assertIn("taken as plain metadata", result.err)
        self.assertIn("decant.id.gone = 7", self.works("inspect", "m.bpk").out)

    def test_lenient_accepts_what_the_reference_reader_accepts_and_says_what_was_odd(self):
        header = {"t": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2], "extra": 1}}
        text = json.dumps(header).encode()
        support.write(self.path("odd.safetensors"), struct.pack("<Q", len(text)) + text + b"ab")
        self.refused(3, "ls", "odd.safetensors")
        result = self.works("ls", "--lenient", "odd.safetensors")
        self.assertEqual(result.out, "t\tU8\t[2]\t2\n")
        self.assertRegex(result.err, r"\Adecant: odd\.safetensors: odd: .+\n\Z")

    def test_what_is_odd_is_told_under_json_too(self):
        self.model()
        support.write(self.path("odd.safetensors"), self.read("m.safetensors") + b"more")
        for words in [["plan", "-o", "x.bpk"], ["convert", "-o", "x.bpk"], ["edit", "-n", "--set", "k=v"], ["extract", "-n"]]:
            words = [words[0], "odd.safetensors", *words[1:], "--lenient", "--json"]
            self.assertEqual(self.works(*words).document["odd"], ["4 bytes after the data"], words)

    def test_limits_are_lifted_by_their_word(self):
        name = "n" * 70000
        self.model("m.safetensors", [(name, "U8", [1], b"x")])
        self.refused(3, "ls", "m.safetensors", says="--allow limits")
        self.assertIn(name, self.works("ls", "--allow", "limits", "m.safetensors").out)


if __name__ == "__main__":
    support.main()
