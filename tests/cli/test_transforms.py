"""Several inputs, prefixes, filters, names, dtypes and metadata."""

import json
import os
import struct

import support

F32 = [65504, 65519.99, 65520, -1e5, 1e-8, float("nan")]


def floats(*values):
    return struct.pack("<%df" % len(values), *values)


class Transforms(support.Case):
    def setUp(self):
        super().setUp()
        self.model("a.safetensors", [("model.w", "F32", [3], floats(1, 2, 3)), ("model.b", "BF16", [2], None),
                                     ("model.step", "I64", [], None)], {"format": "pt"})
        self.model("b.safetensors", [("model.w", "F16", [2], struct.pack("<2e", 1, -2))])

    def lines(self, name):
        return ["\t".join(line.split("\t")[:2]) for line in self.works("ls", name).out.splitlines()]

    def data(self, name, tensor):
        """The bytes of a tensor of a safetensors file."""
        content = self.read(name)
        (length,) = struct.unpack("<Q", content[:8])
        begin, end = json.loads(content[8:8 + length])[tensor]["data_offsets"]
        return content[8 + length:][begin:end]

    def metadata(self, name):
        content = self.read(name)
        (length,) = struct.unpack("<Q", content[:8])
        return json.loads(content[8:8 + length]).get("__metadata__")

    def plan(self, *words):
        return self.works("plan", *words, "-o", "x.safetensors").out

    # --- inputs ---

    def test_several_inputs_become_one_with_a_prefix_for_the_next(self):
        self.works("convert", "--prefix", "x.", "a.safetensors", "b.safetensors", "-o", "m.bpk")
        self.assertEqual(sorted(self.lines("m.bpk")), ["model.w\tF16", "x.model.b\tBF16", "x.model.step\tI64", "x.model.w\tF32"])
        self.works("convert", "a.safetensors", "--prefix=y.", "b.safetensors", "-o", "n.bpk")
        self.assertIn("y.model.w\tF16", self.lines("n.bpk"))
        for words in [["a.safetensors", "--prefix", "x"], ["--prefix", "x", "--prefix", "y", "a.safetensors"]]:
            self.refused(2, "convert", *words, "-o", "x.bpk", says="in front of the file that it is for")

    def test_a_name_that_comes_twice_is_refused_with_both_files(self):
        self.refused(3, "convert", "a.safetensors", "b.safetensors", "-o", "x.bpk",
                     says=["tensor 'model.w'", "a.safetensors", "b.safetensors", "--prefix"])

    def test_metadata_that_differs_is_refused_until_one_is_chosen(self):
        self.model("c.safetensors", [("c", "U8", [1], None)], {"format": "np", "k": "v"})
        words = ["convert", "a.safetensors", "c.safetensors", "-o", "x.safetensors"]
        self.refused(3, *words, says=["'np' in c.safetensors", "'pt' in a.safetensors", "--set format=VALUE", "--unset format"])
        self.works(*words, "--set", "format=pt")
        self.assertEqual(self.metadata("x.safetensors"), {"format": "pt", "k": "v"})
        self.works(*words, "-f", "--unset", "format")
        self.assertEqual(self.metadata("x.safetensors"), {"k": "v"})

    def test_a_plan_of_several_names_each(self):
        out = self.plan("a.safetensors", "--prefix", "y.", "b.safetensors")
        self.assertTrue(out.startswith("from      a.safetensors, 3 tensors, 24 bytes\n          b.safetensors, 1 tensor, 4 bytes\n"))
        self.assertIn("inputs    2 copied, kept afterwards (", out)
        self.assertIn("renames   model.w to y.model.w\n", out)

    def test_parts_that_are_named_beside_their_set_count_once(self):
        parts = ["m-0000%d-of-00002.safetensors" % i for i in (1, 2)]
        for i, part in enumerate(parts):
            self.model(part, [("w%d" % i, "F32", [2], None)])
        index = {"metadata": {"total_size": 16}, "weight_map": {"w%d" % i: part for i, part in enumerate(parts)}}
        support.write(self.path("m.safetensors.index.json"), json.dumps(index).encode())
        for words in [parts, parts[::-1], ["m.safetensors.index.json"] + parts, parts + ["m.safetensors.index.json"]]:
            self.works("convert", *words, "-f", "-o", "x.bpk")
            self.assertEqual(sorted(self.lines("x.bpk")), ["w0\tF32", "w1\tF32"])
        self.works("convert", "m.safetensors.index.json", "--prefix", "again.", parts[1], "-f", "-o", "x.bpk")
        self.assertEqual(sorted(self.lines("x.bpk")), ["again.w1\tF32", "w0\tF32", "w1\tF32"])

    def test_an_output_is_known_for_an_input_beneath_a_cast(self):
        self.refused(4, "convert", "a.safetensors", "--dtype", "f64", "-o", "a.safetensors", says="the output is one of the inputs")
        self.works("convert", "a.safetensors", "--dtype", "f64", "-f", "--verify", "-o", "a.safetensors")
        self.assertEqual(self.data("a.safetensors", "model.w"), struct.pack("<3d", 1, 2, 3))

    # --- names ---

    def test_filters_and_names_are_applied_in_their_order_wherever_they_stand(self):
        self.works("convert", "--rename", "s/^model\\.//", "--exclude", "*.step", "-o", "x.bpk", "a.safetensors", "--dtype",
                   "b=f32", "--include", "re:^model")
        self.assertEqual(sorted(self.lines("x.bpk")), ["b\tF32", "w\tF32"])

    def test_what_matches_nothing_is_refused_with_what_is_close(self):
        for flag in ["--include", "--exclude"]:
            self.refused(3, "convert", "a.safetensors", flag, "model.stop", "-o", "x.bpk",
                         says=[flag + " model.stop matches no tensor", "did you mean 'model.step'?"])
        self.refused(3, "convert", "a.safetensors", "--dtype", "modle.w=f16", "-o", "x.bpk", says="did you mean 'model.w'?")
        self.refused(3, "convert", "a.safetensors", "--unset", "fromat", "-o", "x.bpk",
                     says=["a.safetensors", "did you mean 'format'?"])

    def test_nothing_is_guessed_of_what_is_no_name(self):
        self.model("short.safetensors", [("w", "U8", [1], None)])
        for flag, value in [("--rename", "s/x/y/"), ("--include", "["), ("--exclude", "v")]:
            result = self.refused(3, "convert", "short.safetensors", flag, value, "-o", "x.bpk",
                                  says=["%s %s matches no tensor" % (flag, value), "decant ls"])
            self.assertNotIn("did you mean", result.err)

    def test_a_rename_that_collides_is_refused_with_both_names(self):
        self.refused(3, "convert", "a.safetensors", "--rename", "s/[bw]$/x/", "-o", "x.bpk",
                     says=["tensor 'model.x'", "'model.w'", "'model.b'"])

    def test_hostile_renames_are_refused(self):
        self.refused(2, "convert", "a.safetensors", "--rename", "s/.*//", "-o", "x.bpk", says="nothing would be left of its name")
        self.refused(3, "convert", "b.safetensors", "--rename", "s/.*/__metadata__/", "-o", "x.safetensors", says="__metadata__")
        self.refused(3, "convert", "b.safetensors", "--prefix=x", "b.safetensors", "--rename", "s/$/" + "n" * 4090 + "/", "-o",
                     "x.bpk", says="at most 4096")
        self.works("convert", "b.safetensors", "--rename", "s/.*/" + "n" * 4096 + "/", "-o", "x.bpk")
        self.works("ls", "x.bpk")
        for wrong in ["", "s", "s/a/b", "s/(/b/", "s/a/\\3/", "s/a/b/z", "y/a/b/", "s/a{99999}/b/", "s/((a{1000}){1000}){1000}/b/"]:
            self.refused(2, "convert", "a.safetensors", "--rename", wrong, "-o", "y.bpk", says="--rename")

    def test_a_regular_expression_that_takes_too_long_is_stopped(self):
        self.model("c.safetensors", [("a" * 4000 + "!", "U8", [1], None)])
        for words in [["--include", "re:^(a+)+$"], ["--rename", "s/^(a|a)*$/b/"]]:
            self.refused(3, "convert", "c.safetensors", *words, "-o", "x.bpk", says="takes too long")

    def test_a_plan_shows_the_first_names_that_change_and_all_on_demand(self):
        self.model("many.safetensors", [("old.%02d" % i, "U8", [1], None) for i in range(25)])
        words = ["many.safetensors", "--rename", "s/old/new/", "-o", "x.bpk"]
        out = self.works("plan", *words).out
        self.assertEqual(out.count("to new."), 20)
        self.assertIn("          and 5 more (-v shows all)\n", out)
        self.assertEqual(self.works("plan", "-v", *words).out.count("to new."), 25)
        changes = self.works("plan", "--json", *words).document["changes"]
        self.assertEqual(len(changes), 25)
        self.assertEqual(changes[0], {"file": "many.safetensors", "name": "old.00", "dtype": "U8", "to_name": "new.00",
                                      "to_dtype": "U8"})

    # --- dtypes ---

    def test_casts_stand_in_the_plan_and_are_what_is_saved(self):
        out = self.plan("a.safetensors", "--dtype", "bf16", "--exclude", "*.b")
        self.assertIn("leaves    1 tensor out\ncasts     1 tensor, F32 to BF16\n", out)
        self.assertIn("memory    5 MiB", out)
        self.works("convert", "a.safetensors", "--dtype", "bf16", "-o", "x.safetensors")
        self.assertEqual(self.lines("x.safetensors"), ["model.step\tI64", "model.b\tBF16", "model.w\tBF16"])
        self.assertEqual(self.data("x.safetensors", "model.w"), bytes.fromhex("803f00404040"))
        self.assertEqual(self.data("x.safetensors", "model.b"), self.data("a.safetensors", "model.b"))

    def test_a_plan_knows_the_size_of_what_is_cast(self):
        for flags in [["--dtype", "f64"], ["--dtype", "f16", "--include", "*.w"]]:
            planned = self.works("plan", "a.safetensors", *flags, "-f", "-o", "x.bpk", "--json").document["output"]["size"]
            self.works("convert", "a.safetensors", *flags, "-o", "x.bpk", "-f")
            self.assertEqual(os.path.getsize(self.path("x.bpk")), int(planned))

    def test_CV_02_overflow_is_refused_with_figures_and_undone(self):
        self.model("c.safetensors", [("x", "F32", [6], floats(*F32)), ("y", "BF16", [1], struct.pack("<H", 0x7F62))])
        self.refused(3, "convert", "c.safetensors", "--dtype", "f16", "-o", "x.safetensors", begun=True,
                     says=["tensor 'x'", "2 so far", "65520 at index 2", "the largest 100000", "at most 65504", "--allow overflow"])
        result = self.works("convert", "c.safetensors", "--dtype", "f16", "--allow", "overflow", "-o", "x.safetensors")
        self.assertIn("overflow 2 values in 'x' exceed the range of F16, the largest 100000\n", result.err)
        self.assertIn("overflow 1 value in 'y' exceeds the range of F16, the largest 3.00", result.err)
        self.assertEqual(self.data("x.safetensors", "x"), struct.pack("<6H", 0x7BFF, 0x7BFF, 0x7C00, 0xFC00, 0, 0x7E00))
        document = self.works("convert", "c.safetensors", "--dtype", "f16", "--allow", "overflow", "-o", "x.safetensors", "-f",
                              "--json").document
        self.assertEqual(len(document["overflow"]), 2)

    def test_CV_03_each_code_of_F8_becomes_the_number_that_it_stands_for(self):
        codes = bytes(range(256))
        for dtype, exponent, fraction in [("F8_E5M2", 5, 2), ("F8_E4M3", 4, 3)]:
            header = json.dumps({"q": {"dtype": dtype, "shape": [256], "data_offsets": [0, 256]},
                                 "q.scale": {"dtype": "F32", "shape": [], "data_offsets": [256, 260]}}).encode()
            support.write(self.path("q.safetensors"), struct.pack("<Q", len(header)) + header + codes + floats(0.5))
            self.works("convert", "q.safetensors", "--dtype", "q=f32", "-f", "-o", "x.safetensors")
            self.assertEqual(self.data("x.safetensors", "q.scale"), floats(0.5))
            bias = (1 << exponent - 1) - 1
            for code, bits in enumerate(struct.unpack("<256I", self.data("x.safetensors", "q"))):
                (value,) = struct.unpack("<f", struct.pack("<I", bits))
                e, f = code >> fraction & (1 << exponent) - 1, code & (1 << fraction) - 1
                self.assertEqual(bits >> 31, code >> 7)
                if dtype == "F8_E4M3" and code & 0x7F == 0x7F or dtype == "F8_E5M2" and e == 31 and f:
                    self.assertEqual(bits & 0x7FFFFFFF, 0x7FC00000)
                elif dtype == "F8_E5M2" and e == 31:
                    self.assertEqual(abs(value), float("inf"))
                else:
                    self.assertEqual(abs(value), (f + (1 << fraction) * (e > 0)) * 2.0 ** (max(e, 1) - bias - fraction))

    def test_CV_08_dtypes_stay_unless_one_is_asked_for(self):
        self.works("convert", "--prefix=x.", "a.safetensors", "b.safetensors", "--set", "k=v", "-o", "x.safetensors")
        self.assertEqual(sorted(self.lines("x.safetensors")),
                         ["model.w\tF16", "x.model.b\tBF16", "x.model.step\tI64", "x.model.w\tF32"])

    def test_CV_09_integers_are_never_taken_for_reals(self):
        four = struct.pack("<4I", 1, 2, 3, 0x3F800000)
        self.model("i.safetensors", [("i", "I32", [4], four), ("u", "U32", [4], four), ("f", "F32", [4], four)])
        self.works("convert", "i.safetensors", "--dtype", "f16", "-o", "x.safetensors")
        self.assertEqual(sorted(self.lines("x.safetensors")), ["f\tF16", "i\tI32", "u\tU32"])
        self.assertEqual(self.data("x.safetensors", "i"), four)
        self.refused(3, "convert", "i.safetensors", "--dtype", "u=f32", "-o", "y.safetensors", says=["tensor 'u'", "U32 cannot be cast"])
        plan = self.works("plan", "i.safetensors", "--dtype", "f16", "-o", "y.safetensors").out
        self.assertIn("keeps     1 tensor of I32, 1 of U32, which cannot be cast\n", plan)
        said = self.works("convert", "i.safetensors", "--dtype", "f16", "-o", "y.safetensors", "-v").err
        self.assertIn("keeps     1 tensor of I32, 1 of U32", said)

    def test_wrong_dtypes_are_wrong_usage(self):
        for wrong in ["f8", "", "model.w=", "int8", "F 32"]:
            self.refused(2, "convert", "a.safetensors", "--dtype", wrong, "-o", "x.bpk", says="f64, f32, f16, bf16")

    # --- metadata ---

    def test_metadata_is_set_and_unset(self):
        support.write(self.path("text"), "line\n\0ä".encode())
        self.works("convert", "a.safetensors", "--set", "a:b=c=d", "--set", "note=@text", "--unset", "format", "-o", "x.safetensors")
        self.assertEqual(self.metadata("x.safetensors"), {"a:b": "c=d", "note": "line\n\0ä"})
        self.refused(3, "convert", "a.safetensors", "--set", "note=@none", "-o", "y.safetensors", says="none: ")
        self.refused(2, "convert", "a.safetensors", "--set", "note", "-o", "y.safetensors", says="KEY=VALUE")

    def test_a_key_that_is_there_keeps_its_type(self):
        self.works("convert", "a.safetensors", "--set", "step:u32=7", "-o", "x.bpk")
        self.works("convert", "x.bpk", "--set", "step=8", "-o", "y.bpk")
        values = {v["key"]: (v["type"], v["value"]) for v in self.works("inspect", "--json", "y.bpk").document["files"][0]["values"]}
        self.assertEqual(values["step"], ("u64", "8"))
        self.refused(2, "convert", "x.bpk", "--set", "step=eight", "-o", "z.bpk", says=["'eight' of 'step' is no u64", "step:text="])
        self.refused(2, "convert", "x.bpk", "--set", "step:u8=256", "-o", "z.bpk", says="is no u8")

    def test_format_is_not_added_where_it_was_unset(self):
        self.works("convert", "b.safetensors", "-o", "x.bpk")
        self.works("convert", "x.bpk", "-o", "y.safetensors")
        self.assertEqual(self.metadata("y.safetensors")["format"], "pt")
        self.works("convert", "x.bpk", "--unset", "format", "-o", "z.safetensors")
        self.assertIsNone(self.metadata("z.safetensors"))

    # --- diff ---

    def test_diff_asks_whether_a_converted_gives_b(self):
        flags = ["--dtype", "f16", "--rename", "s/model/m/", "--prefix", "x."]
        self.works("convert", *flags, "a.safetensors", "-o", "b.bpk")
        self.assertTrue(self.works("diff", *flags, "a.safetensors", "b.bpk").out.startswith("same: 3 tensors, 18 bytes"))
        self.assertEqual(self.decant("diff", "a.safetensors", "b.bpk").code, 1)
        self.refused(2, "diff", "a.safetensors", "--prefix", "x.", "b.bpk", says="B is compared as it is")
        self.refused(2, "diff", "a.safetensors", "b.bpk", "--set", "k=v", says="unknown flag")


if __name__ == "__main__":
    support.main()
