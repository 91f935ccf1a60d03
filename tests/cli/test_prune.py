"""What an earlier save to the same path has left: told, and removed with --prune. FW-07, FW-08."""

import os

import support

BIG = [("a", "U8", [600], None), ("b", "U8", [600], None), ("c", "U8", [600], None)]
INDEX = "model.safetensors.index.json"


def set_of(count, base="model"):
    return ["%s-%05d-of-%05d.safetensors" % (base, i + 1, count) for i in range(count)]


class Prune(support.Case):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("in"))
        self.model("in/m.safetensors", BIG, {"format": "pt"})

    def save(self, *words, size=None, out="model.safetensors"):
        more = ["--max-shard-size", str(size)] if size else []
        return self.works("convert", "in/m.safetensors", "-o", out, *more, *words)

    def outputs(self):
        return [n for n in self.names() if n != "in"]

    def test_one_file_over_a_set__FW_07(self):
        self.save(size=1200)
        result = self.save()
        self.assertEqual(self.outputs(), sorted([*set_of(2), "model.safetensors", INDEX]))
        for name in [*set_of(2), INDEX]:
            self.assertIn("  old      %s is of an earlier save, and may be loaded instead; --prune removes it\n" % name, result.err)
        plan = self.works("plan", "in/m.safetensors", "-o", "model.safetensors", "-f", "--prune")
        self.assertEqual(plan.out.count(" is of an earlier save, and will be removed\n"), 3)
        result = self.save("-f", "--prune")
        self.assertEqual(result.err.count(" is of an earlier save, and was removed\n"), 3)
        self.assertEqual(self.outputs(), ["model.safetensors"])
        self.works("diff", "in/m.safetensors", "model.safetensors")

    def test_a_set_over_one_file__FW_07(self):
        self.save()
        self.assertIn("  old      model.safetensors is of an earlier save", self.save(size=1200).err)
        result = self.save("-f", "--prune", "--json", size=1200)
        self.assertEqual(self.check_document(result)["supersedes"], [{"file": "model.safetensors", "removed": True, "why_kept": None}])
        self.assertEqual(self.outputs(), sorted([*set_of(2), INDEX]))

    def test_a_set_over_a_set_of_another_count(self):
        self.save(size=600)
        self.save("-f", "--prune", size=1200)
        self.assertEqual(self.outputs(), sorted([*set_of(2), INDEX]))
        self.works("diff", "in/m.safetensors", INDEX)

    def test_the_set_of_another_variant_is_untouched__FW_08(self):
        self.save(size=1200)
        self.save(size=1200, out="model.ema.safetensors")
        others = ["model_1.safetensors", "mode.safetensors", "xmodel-00001-of-00002.safetensors", "model-00001-of-00002.bin",
                  "model-1-of-2.safetensors", "model-00001-of-00002.safetensors.tmp", "model-00003-of-00002.safetensors",
                  "model.safetensors.index.json.bak", "model.bpk", "pytorch_model-00001-of-00002.safetensors"]
        for name in others:
            support.write(self.path(name), b"not ours")
        kept = {n: self.read(n) for n in [*set_of(2, "model.ema"), "model.ema.safetensors.index.json", *others]}
        self.save("--prune")
        self.assertEqual(self.outputs(), sorted([*kept, "model.safetensors"]))
        for name, data in kept.items():
            self.assertEqual(self.read(name), data)

    def test_an_input_and_a_link_stay(self):
        self.save(size=1200)
        os.symlink("in", self.path("model-00001-of-00009.safetensors"))
        result = self.works("convert", INDEX, "-o", "model.safetensors", "--prune")
        self.assertEqual(result.err.count("and stays: it is an input\n"), 2)
        self.assertEqual(result.err.count("and stays: it is a link\n"), 1)
        self.assertEqual(self.outputs(), sorted([*set_of(2), "model-00001-of-00009.safetensors", "model.safetensors"]))
        self.works("diff", "in/m.safetensors", "model.safetensors")

    def test_nothing_is_removed_unless_it_is_done(self):
        self.save(size=1200)
        self.save()
        self.refused(4, "convert", "in/m.safetensors", "-o", "model.safetensors", "--prune", says="--force")
        self.refused(3, "convert", "none.safetensors", "-o", "model.safetensors", "--prune", "-f")
        self.works("plan", "in/m.safetensors", "-o", "model.safetensors", "--prune", "-f")
        self.assertEqual(self.outputs(), sorted([*set_of(2), "model.safetensors", INDEX]))

    def test_without_anything_to_remove_nothing_is_said(self):
        self.assertNotIn("earlier save", self.save("--prune").err)
        self.assertNotIn("earlier save", self.save("-f").err)


if __name__ == "__main__":
    support.main()
