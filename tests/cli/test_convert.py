"""convert and plan on good input."""

import json
import os
import re
import struct

import support

ODD_NAMES = ["a\nb", "tab\there", "\x1b[31mred", "\u202eright to left", "quote\"back\\slash", "日本語/重み", "x" * 255, "é" * 120, " "]


def header_of(data):
    """The header of safetensors bytes, with each tensor's data in the place of its offsets."""
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry.pop("data_offsets")
            entry["data"] = data[8 + size + begin:8 + size + end]
    return header


class Convert(support.Case):
    def test_what_is_no_alignment_is_wrong_usage(self):
        self.model("m.safetensors")
        for words in [["3"], ["128"], ["2GiB"], ["4096", "--layout", "congruent"]]:
            self.refused(2, "convert", "m.safetensors", "-o", "out.bpk", "--align", *words, says="--align")

    def test_a_plan_tells_what_the_other_layouts_would_take(self):
        self.model()
        out = self.works("plan", "-v", "m.safetensors", "-o", "out.bpk").out
        self.assertRegex(out, r"\ninstead   aligned: [0-9,]+ bytes, .* of room\n          congruent: [0-9,]+ bytes, .* of room\n")
        out = self.works("plan", "-v", "m.safetensors", "-o", "out.bpk", "--layout", "congruent").out
        self.assertRegex(out, r"\ninstead   canonical: [0-9,]+ bytes, .* of room\n          aligned: ")
        for words in [["plan"], ["convert", "-n"]]:
            self.assertNotIn("instead", self.works(*words, "m.safetensors", "-o", "out.bpk").out)

    def test_there_and_back_nothing_is_lost(self):
        tensors = [("t%d" % i, dtype, [2, 3], None) for i, dtype in enumerate(
            ["F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8"])]
        tensors += [("empty", "F32", [0, 7], None), ("scalar", "F32", [], None), ("deep", "U8", [1, 2, 1, 2, 1, 2], None)]
        self.model("m.safetensors", tensors, {"format": "pt", "who": "me"})
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        self.works("convert", "m.bpk", "-o", "back.safetensors")
        back = header_of(self.read("back.safetensors"))
        self.assertIn("decant.order", back["__metadata__"])  # m.safetensors is in another order than the reference's
        del back["__metadata__"]["decant.order"]
        self.assertEqual(back, header_of(self.read("m.safetensors")))

    def test_names_that_would_move_the_cursor_survive_and_are_never_printed_raw(self):
        self.model("m.safetensors", [(name, "F32", [2], None) for name in ODD_NAMES])
        self.works("convert", "m.safetensors", "-o", "m.bpk", "-v")
        self.works("convert", "m.bpk", "-o", "back.safetensors")
        self.assertEqual(set(header_of(self.read("back.safetensors"))) - {"__metadata__"}, set(ODD_NAMES))
        for command in ["ls", "inspect"]:
            out = self.works(command, "m.bpk").out
            self.assertNotRegex(out.replace("\t", ""), "[\\x00-\\x09\\x0b-\\x1f\\x7f\u202e]")
        self.assertEqual(len(self.works("ls", "m.bpk").out.splitlines()), len(ODD_NAMES))

    def test_the_summary_says_file_tensors_and_bytes_on_standard_error(self):
        self.model()
        result = self.works("convert", "m.safetensors", "-o", "m.bpk")
        self.assertEqual(result.out, "")
        size = "{:,}".format(os.path.getsize(self.path("m.bpk")))
        self.assertRegex(result.err, r"\Asaved m\.bpk: 3 tensors, %s bytes in [0-9.]+ s, [0-9]+ MiB of memory\n\Z" % size)

    def test_quiet_says_nothing_at_all(self):
        self.model()
        result = self.works("convert", "-q", "m.safetensors", "-o", "m.bpk")
        self.assertEqual((result.out, result.err), ("", ""))

    def test_the_format_is_told_by_content_and_never_by_the_name__FR_03(self):
        self.model("model.bin")
        self.works("convert", "model.bin", "-o", "m.bpk")
        os.rename(self.path("m.bpk"), self.path("burn.safetensors"))
        self.works("diff", "model.bin", "burn.safetensors")

    def test_to_names_the_format_where_the_extension_does_not(self):
        self.model()
        self.works("convert", "m.safetensors", "-o", "model", "--to", "burnpack")
        self.works("convert", "model", "-o", "other.bpk", "--to", "safetensors")
        self.works("convert", "m.safetensors", "-o", "UPPER.BPK")
        self.assertEqual([f["format"] for f in self.works("inspect", "--json", "model", "other.bpk", "UPPER.BPK").document["files"]],
                         ["burnpack", "safetensors", "burnpack"])

    def test_the_same_input_gives_the_same_bytes(self):
        self.model("m.safetensors", metadata={"b": "2", "a": "1"})
        for name in ["1.bpk", "2.bpk", "1.safetensors", "2.safetensors"]:
            self.works("convert", "m.safetensors", "-o", name)
        self.assertEqual(self.read("1.bpk"), self.read("2.bpk"))
        self.assertEqual(self.read("1.safetensors"), self.read("2.safetensors"))

    def test_json_says_what_was_done(self):
        self.model()
        result = self.works("convert", "--json", "m.safetensors", "-o", "m.bpk")
        document = self.check_document(result)
        self.assertEqual(result.err, "")
        self.assertEqual(document["command"], "convert")
        self.assertEqual(document["output"]["size"], str(os.path.getsize(self.path("m.bpk"))))
        self.assertEqual((document["output"]["file"], document["output"]["tensor_count"]), ("m.bpk", 3))
        self.assertEqual((document["output"]["published"], document["output"]["durable"]), (True, True))
        self.assertEqual(document["outputs"], [{"file": "m.bpk", "size": document["output"]["size"], "published": True, "durable": True}])
        self.assertEqual([i["route"] for i in document["inputs"]], ["copy"])
        self.assertEqual((document["loses"], document["gains"]), ([], []))
        self.assertEqual(document["output"]["opens_in"], [{"by": "Burn", "why_not": None}])

    def test_what_is_added_for_loaders_is_said(self):
        self.model()
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        kept = "metadata under 'decant.': ids, scalars, dtypes and order, for the way back"
        self.assertIn("\ngains     metadata format = pt\n          %s\nopens in  safetensors, transformers\n" % kept,
                      self.works("plan", "m.bpk", "-o", "new.safetensors").out)
        self.assertIn("\n  gained   metadata format = pt\n", self.works("convert", "m.bpk", "-o", "new.safetensors").err)
        document = self.works("plan", "--json", "m.bpk", "-o", "other.safetensors").document
        self.assertEqual(document["gains"], ["metadata format = pt", kept])
        document = self.works("plan", "--json", "m.safetensors", "-o", "other.safetensors").document
        self.assertEqual(document["gains"], [])
        self.assertEqual(document["output"]["opens_in"], [{"by": "safetensors", "why_not": None},
                                                          {"by": "transformers", "why_not": "no metadata format = pt"}])
        for words in ["plan", "new.safetensors", "-o", "other.safetensors"], ["edit", "-n", "new.safetensors", "--set", "k=v"]:
            self.assertEqual(self.works(*words, "--json").document["gains"], []) # what it has already is not gained

    def test_it_works_in_every_locale(self):
        self.model("m.safetensors", [("é", "F32", [1], struct.pack("<f", 0.5))])
        for locale in ["C", "C.UTF-8", "de_DE.UTF-8"]:
            self.works("convert", "-f", "m.safetensors", "-o", "ü.bpk", env={"LC_ALL": locale})
            self.assertEqual(self.works("ls", "ü.bpk", env={"LC_ALL": locale}).out, "é\tF32\t[1]\t4\n")

    def test_a_file_without_tensors_is_a_model_too(self):
        self.model("m.safetensors", [])
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        self.assertEqual(self.works("ls", "m.bpk").out, "")
        self.assertIn("same: 0 tensors", self.works("diff", "m.safetensors", "m.bpk").out)


class Plan(support.Case):
    def test_a_plan_predicts_the_size_to_the_byte_and_writes_nothing(self):
        shapes = [("F32", [1]), ("F32", [1000, 3]), ("U8", [257]), ("BF16", [0]), ("I64", []), ("U8", [100001])]
        for count in range(len(shapes) + 1):
            for extension in ["bpk", "safetensors"]:
                self.model("m.safetensors", [("n" * (i + 1), d, s, None) for i, (d, s) in enumerate(shapes[:count])], {"k": "v"})
                before = self.tree()
                document = self.works("plan", "--json", "m.safetensors", "-o", "x." + extension).document
                text = self.works("plan", "m.safetensors", "-o", "x." + extension)
                self.assertEqual(self.tree(), before)
                self.works("convert", "-f", "m.safetensors", "-o", "x." + extension)
                size = os.path.getsize(self.path("x." + extension))
                self.assertEqual(document["output"]["size"], str(size))
                self.assertIn("{:,} bytes\n".format(size), text.out)
                self.assertEqual((document["output"]["published"], document["output"]["durable"]), (False, False))
                os.remove(self.path("x." + extension))

    def test_a_plan_says_all_that_matters(self):
        self.model()
        out = self.works("plan", "m.safetensors", "-o", "m.bpk").out
        self.assertEqual(re.findall(r"^(\w+(?: in)?)", out, re.M),
                         ["from", "to", "inputs", "room", "memory", "loses", "opens in", "nothing"])
        self.assertTrue(out.startswith("from      m.safetensors, 3 tensors, 64 bytes\n"), out)
        self.assertTrue(out.endswith("\nnothing was written\n"), out)

    def test_plan_is_convert_with_dry_run(self):
        self.model()
        plan = self.works("plan", "m.safetensors", "-o", "m.bpk").out
        dry = self.works("convert", "--dry-run", "m.safetensors", "-o", "m.bpk").out
        self.assertEqual(re.sub("[0-9.]+ [kMGT]B free", "", plan), re.sub("[0-9.]+ [kMGT]B free", "", dry))

    def test_a_plan_exits_as_convert_would(self):
        self.model()
        self.model("there.bpk")
        os.mkdir(self.path("folder"))
        for code, words in [(4, ["m.safetensors", "-o", "there.bpk"]), (4, ["m.safetensors", "-o", "none/x.bpk"]),
                            (3, ["none.safetensors", "-o", "x.bpk"]), (4, ["m.safetensors", "-o", "folder"])]:
            self.assertEqual(self.refused(code, "plan", *words).err, self.refused(code, "convert", *words).err)


class Verify(support.Case):
    def test_it_prints_the_digest_that_digest_prints(self):
        self.model("m.safetensors")
        result = self.works("convert", "--verify", "m.safetensors", "-o", "m.bpk")
        model = self.works("digest", "m.bpk").out.splitlines()[-1].split()[1]
        self.assertIn("\n  model    %s, read back and equal\n" % model, result.err)
        output = self.works("convert", "-f", "--verify", "--json", "m.safetensors", "-o", "m.bpk").document["output"]
        self.assertEqual((output["verified"], output["model"]), (True, model))
        output = self.works("convert", "-f", "--json", "m.safetensors", "-o", "m.bpk").document["output"]
        self.assertEqual((output["verified"], output["model"]), (False, None))
        self.assertEqual(self.works("convert", "-qf", "--verify", "m.safetensors", "-o", "m.bpk").err, "")


if __name__ == "__main__":
    support.main()
