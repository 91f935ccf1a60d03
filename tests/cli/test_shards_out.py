"""Sets of several files, written with --max-shard-size."""

import json
import os

import support

# Of 600 bytes each but "big"; a file takes 1500.
TENSORS = [("a", "U8", [600], None), ("b", "U8", [600], None), ("big", "U8", [5000], None), ("c", "U8", [300], None),
           ("d", "U8", [600], None), ("é\x7f\"\\\U0001F600", "U8", [600], None)]
# As huggingface_hub deals them: the large one at once, between two that are not full.
DEALT = [["big"], ["a", "b", "c"], ["d", "é\x7f\"\\\U0001F600"]]


class ShardsOut(support.Case):
    def split(self, *words, out="o.safetensors"):
        self.model(tensors=TENSORS, metadata={"format": "pt", "who": "me"})
        return self.works("convert", "m.safetensors", "-o", out, "--max-shard-size", "1500", *words)

    def names_of(self, name):
        document = self.works("ls", "--json", name).document
        return {t["name"] for t in document["files"][0]["tensors"]}

    def test_names_index_and_what_is_in_which_file_are_as_the_ecosystem_has_them(self):
        self.split()
        names = ["o-0000%d-of-00003.safetensors" % (i + 1) for i in range(3)]
        self.assertEqual(self.names(), ["m.safetensors", *names, "o.safetensors.index.json"])
        index = {"metadata": {"total_size": 7700}, "weight_map": {t: name for t_s, name in zip(DEALT, names) for t in t_s}}
        self.assertEqual(self.read("o.safetensors.index.json").decode(), json.dumps(index, indent=2, sort_keys=True) + "\n")
        for name in names:
            inspected = self.works("inspect", "--json", name).document["files"][0]
            self.assertEqual({v["key"]: v["value"] for v in inspected["values"]}, {"format": "pt", "who": "me"})
        self.works("diff", "m.safetensors", "o.safetensors.index.json")
        self.works("diff", "m.safetensors", names[0])

    def test_what_fits_into_one_file_is_one_without_an_index(self):
        self.model(tensors=TENSORS)
        for i, size in enumerate(["7700", "7.7k", "1GB"]):
            if size != "7.7k":
                self.works("convert", "m.safetensors", "-o", "o%d.safetensors" % i, "--max-shard-size", size)
        self.assertEqual(self.names(), ["m.safetensors", "o0.safetensors", "o2.safetensors"])
        self.refused(2, "convert", "m.safetensors", "-o", "o.safetensors", "--max-shard-size", "7.7k", says="5GB")
        self.model("none.safetensors", tensors=[])
        self.works("convert", "none.safetensors", "-o", "o.safetensors", "--max-shard-size", "1")
        self.assertIn("o.safetensors", self.names())

    def test_the_summary_and_the_plan_tell_of_each_file(self):
        self.model(tensors=TENSORS, metadata={"format": "pt", "who": "me"})
        plan = self.works("plan", "m.safetensors", "-o", "o.safetensors", "--max-shard-size", "1500")
        self.assertEqual(self.names(), ["m.safetensors"])
        self.assertIn("o.safetensors.index.json and 3 more files   safetensors, ", plan.out)
        result = self.split("-v")
        self.assertIn("saved o.safetensors.index.json and 3 more files: 6 tensors, ", result.err)
        for name in self.names()[1:]:
            size = "%s   {:,} bytes\n".format(os.path.getsize(self.path(name))) % name
            self.assertIn("          " + size, plan.out)
            self.assertIn("  wrote    " + size, result.err)

    def test_json_tells_of_each_file_in_the_order_in_which_they_got_their_names(self):
        document = self.check_document(self.split("--json"))
        self.assertEqual([o["file"] for o in document["outputs"]], self.names()[1:])
        self.assertEqual([o["size"] for o in document["outputs"]],
                         [str(os.path.getsize(self.path(n))) for n in self.names()[1:]])
        self.assertTrue(all(o["published"] and o["durable"] for o in document["outputs"]))
        self.assertEqual(document["output"]["size"], str(sum(int(o["size"]) for o in document["outputs"])))

    def test_a_file_that_is_there_is_not_replaced_unless_it_may_be(self):
        self.split()
        before = {name: self.read(name) for name in self.names()}
        self.model("new.safetensors", tensors=[(n, t, s, b"x" * s[0]) for n, t, s, _ in TENSORS])
        self.refused(4, "convert", "new.safetensors", "-o", "o.safetensors", "--max-shard-size", "1500",
                     says=["o-00001-of-00003.safetensors", "--force"])
        os.remove(self.path("o-00001-of-00003.safetensors"))
        os.remove(self.path("o-00002-of-00003.safetensors"))
        self.refused(4, "convert", "new.safetensors", "-o", "o.safetensors", "--max-shard-size", "1500",
                     says=["o-00003-of-00003.safetensors", "--force"])
        self.works("convert", "new.safetensors", "-o", "o.safetensors", "--max-shard-size", "1500", "-f")
        self.works("diff", "new.safetensors", "o.safetensors.index.json")
        self.assertEqual(self.names(), sorted(set(before) | {"new.safetensors"}))

    def test_burnpack_has_no_sets(self):
        self.model()
        self.refused(4, "convert", "m.safetensors", "-o", "o.bpk", "--max-shard-size", "1GB", says="--max-shard-size")

    def test_a_folder_that_everybody_may_write_to_is_refused(self):
        self.model(tensors=TENSORS)
        os.mkdir(self.path("all"))
        os.chmod(self.path("all"), 0o777)
        self.refused(4, "convert", "m.safetensors", "-o", "all/o.safetensors", "--max-shard-size", "1500", says="chmod")
        os.chmod(self.path("all"), 0o1777)
        self.works("convert", "m.safetensors", "-o", "all/o.safetensors", "--max-shard-size", "1500")
        self.assertEqual(len(os.listdir(self.path("all"))), 4)

    def test_the_name_without_an_extension_gets_it(self):
        self.split("--to", "safetensors", out="o")
        self.assertEqual(self.names()[1:], ["o-0000%d-of-00003.safetensors" % (i + 1) for i in range(3)] + ["o.safetensors.index.json"])

    def test_a_name_that_no_index_can_hold_is_refused(self):
        self.model(tensors=TENSORS)
        for out in ["a\nb", "a\\b", "c:b", os.fsdecode(b"\xffb")]:
            for command in ["plan", "convert"]:
                self.refused(4, command, "m.safetensors", "-o", "./" + out + ".safetensors", "--max-shard-size", "1500",
                             says="choose another name")
            self.works("convert", "m.safetensors", "-o", "./" + out + ".safetensors", "--max-shard-size", "1GB")

    def test_the_longest_name_that_a_set_can_have_is_written(self):
        name = "n" * (255 - len("-00001-of-00003.safetensors"))
        self.split(out=name + ".safetensors")
        self.assertEqual(len(self.names()), 5)
        self.works("diff", "m.safetensors", name + ".safetensors.index.json")
        self.refused(4, "convert", "m.safetensors", "-o", "n" + name + ".safetensors", "--max-shard-size", "1500",
                     says="too long")


if __name__ == "__main__":
    support.main()
