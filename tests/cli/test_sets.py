"""Models in several files, and folders: what a word of the command line stands for."""

import json
import os
import resource
import shutil
import socket

import support

TENSORS = [("layer.0.weight", "F32", [10, 10], None), ("layer.0.bias", "BF16", [10], None),
           ("layer.1.weight", "F32", [10, 20], None), ("empty", "F32", [0], None), ("layer.1.bias", "BF16", [20], None)]
PARTS = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
INDEX = "model.safetensors.index.json"


class Sets(support.Case):
    def setUp(self):
        super().setUp()
        self.put("m")

    def put(self, folder, parts=PARTS, index=INDEX, **metadata):
        """A set of two files of the tensors above, and its index unless that is None."""
        os.makedirs(self.path(folder), exist_ok=True)
        halves = [TENSORS[:2], TENSORS[2:]]
        for name, half in zip(parts, halves):
            support.write_model(self.path(folder, name), half, {"format": "pt"})
        if index:
            size = sum(support.byte_count(t[1], t[2]) for t in TENSORS)
            where = {t[0]: name for name, half in zip(parts, halves) for t in half}
            self.put_index(folder, where, index, total_size=size)

    def put_index(self, folder, where, name=INDEX, **metadata):
        with open(self.path(folder, name), "w") as f:
            json.dump({"metadata": metadata, "weight_map": where}, f, indent=2, sort_keys=True)

    def names_in(self, *words):
        return [[t["name"] for t in f["tensors"]] for f in self.works("ls", "--json", *words).document["files"]]

    def test_a_folder_an_index_and_a_first_part_are_the_whole_set_to_every_command(self):
        self.model("whole.safetensors", TENSORS, {"format": "pt"})
        whole = sorted(self.names_in("whole.safetensors")[0])
        self.put("parts", index=None)
        for name in ["m", "m/", "m/" + INDEX, "m/" + PARTS[0], "parts", "parts/" + PARTS[0]]:
            self.assertEqual(sorted(self.names_in(name)[0]), whole, name)
            self.works("diff", name, "whole.safetensors")
            self.assertIn(": sound: 5 tensors", self.works("verify", "--deep", name).out)
            self.assertEqual(self.works("digest", name).out.splitlines()[-1].split()[:2],
                             self.works("digest", "whole.safetensors").out.splitlines()[-1].split()[:2])
            for out in ["x.safetensors", "x.bpk"]:
                self.works("plan", name, "-o", out)
                self.works("convert", name, "-o", out)
                self.works("diff", out, "whole.safetensors")
                os.remove(self.path(out))
        self.assertEqual(self.names_in("m/" + PARTS[1]), [["layer.1.weight", "empty", "layer.1.bias"]])

    def test_what_shards_say_differently_is_lost_only_where_that_is_allowed_or_decided(self):
        for name, half, part in zip(PARTS, [TENSORS[:2], TENSORS[2:]], "12"):
            support.write_model(self.path("m", name), half, {"format": "pt", "part": part})
        for out in ["x.safetensors", "x.bpk"]:
            for words in [[], ["--include", "layer*"]]:
                self.refused(3, "convert", "-q", "m", "-o", out, *words, says=[
                    "no place for 1 contradictory metadata key, first of 'part'; --set KEY=VALUE chooses one, "
                    "--unset KEY none; --allow loss drops"])
            self.assertIn("1 contradictory metadata key", self.works("plan", "m", "-o", out, "--allow", "loss").out)
            for words, value in [(["--allow", "loss"], None), (["--unset", "part"], None), (["--set", "part=3"], "3")]:
                self.works("convert", "m", "-o", out, *words)
                values = self.works("inspect", "--json", out).document["files"][0]["values"]
                self.assertEqual([v["value"] for v in values if v["key"] == "part"], [value] if value else [])
                os.remove(self.path(out))
        self.works("diff", "m", "m")
        self.assertIn("'part'", self.works("inspect", "m").out)

    def test_verify_lists_every_name_that_the_index_and_the_shards_do_not_agree_on(self):
        support.write_model(self.path("m", PARTS[1]), TENSORS[2:] + [("layer.0.bias", "F32", [1], None)], {"format": "pt"})
        where = {name: PARTS[0] for name in ["layer.0.weight", "layer.0.bias", "gone", "gone too"]}
        where |= {"layer.1.weight": PARTS[1], "later": PARTS[1]}
        self.put_index("m", where)
        faults = self.decant("verify", "--json", "m").document["files"][0]["findings"]
        self.assertEqual([(os.path.basename(f["file"]), f["tensor"], f["message"].split(",")[0]) for f in faults],
                         [(PARTS[0], "gone", "by the index it is in this file"),
                          (PARTS[0], "gone too", "by the index it is in this file"),
                          (PARTS[1], "layer.0.bias", "is in this file"),
                          (PARTS[1], "later", "by the index it is in this file"),
                          (PARTS[1], "empty", "is in this file"),
                          (PARTS[1], "layer.1.bias", "is in this file")])
        self.assertIn("'%s' too" % PARTS[0], faults[2]["message"])
        self.assertIn("not in the index", faults[4]["message"])

    def test_verify_of_a_set_does_not_list_names_without_end(self):
        self.put_index("m", {"gone %d" % i: PARTS[i % 2] for i in range(3000)})
        result = self.decant("verify", "m")
        self.assertEqual(result.code, 1, result)
        self.assertEqual(len(result.out.splitlines()), 21, result)
        self.assertEqual(len(self.decant("verify", "--json", "m").document["files"][0]["findings"]), 1002)

    def test_inspect_and_plan_tell_of_the_set(self):
        support.write(self.path("m/config.json"), b"{}")
        text = self.works("inspect", "m").out
        self.assertTrue(text.startswith("m/%s   safetensors, 2 shards, 1,260 bytes of data\n" % INDEX), text)
        self.assertIn("\n  metadata   format = pt\n", text)
        self.assertIn("\n  opens in   safetensors, transformers\n", text)
        self.assertIn("\n  beside it  config.json: not weights\n", text)
        self.assertNotIn("\n  odd ", text)

        found = self.works("inspect", "--json", "m").document["files"][0]
        sizes = [os.path.getsize(self.path("m", name)) for name in PARTS]
        self.assertEqual(found["file"], "m")
        self.assertEqual(found["path"], "m/" + INDEX)
        self.assertEqual(found["shards"], [{"file": "m/" + n, "bytes": str(s)} for n, s in zip(PARTS, sizes)])
        self.assertEqual(found["size"], str(sum(sizes)))
        one = self.works("inspect", "--json", "m/" + PARTS[1]).document["files"][0]
        self.assertEqual((one["path"], one["shards"], one["size"]), ("m/" + PARTS[1], [], str(sizes[1])))

        plan = self.works("plan", "m", "-o", "x.bpk").out
        self.assertTrue(plan.startswith("from      m/%s, 2 shards, 5 tensors, 1.26 kB\n" % INDEX), plan)
        self.assertRegex(plan, r"\ninputs    2 copied, kept afterwards \(")
        inputs = self.works("plan", "--json", "m", "-o", "x.bpk").document["inputs"]
        self.assertEqual([i["file"] for i in inputs], ["m/" + name for name in PARTS])

    def test_what_is_named_twice_counts_once(self):
        for words in [PARTS, PARTS[::-1], [INDEX, *PARTS], [*PARTS, INDEX], [".", *PARTS], [PARTS[1], ".", INDEX], [".", "."]]:
            for command in ["ls", "inspect", "digest", "verify"]:
                found = self.works(command, "--json", *words, cwd=self.path("m")).document["files"]
                self.assertEqual(len(found), 1, words)
        self.assertEqual(len(self.names_in("m/" + PARTS[0], "m/" + PARTS[1], "m/../m/" + PARTS[1])), 1)
        self.model("m/other.safetensors")
        self.assertEqual(len(self.names_in("m/" + PARTS[1], "m", "m/other.safetensors")), 2)
        self.assertEqual(len(self.names_in("m/other.safetensors", "m/" + PARTS[1])), 2)
        self.works("convert", "m", "m/" + PARTS[0], "m/" + PARTS[1], "-o", "x.bpk")
        os.mkdir(self.path("one"))
        self.model("one/a.safetensors")
        for words in [["one", "one/a.safetensors"], ["one/a.safetensors", "one"], ["one/a.safetensors"] * 2, ["one"] * 2]:
            self.assertEqual(self.works("plan", "--json", *words, "-o", "y.bpk").document["output"]["tensor_count"], 3, words)
        for words in [["--prefix", "x.", "one", "one/a.safetensors"], ["one", "--prefix", "x.", "one"]]:
            self.assertEqual(self.works("plan", "--json", *words, "-o", "y.bpk").document["output"]["tensor_count"], 6, words)

    def test_the_weights_twice_in_a_folder_are_told_and_a_file_named_is_chosen__CV_01(self):
        self.model("m/consolidated.safetensors", TENSORS)
        support.write(self.path("m/pytorch_model.bin"), b"PK\3\4")
        for words in [["inspect", "m"], ["plan", "m", "-o", "x.bpk"], ["convert", "m", "-o", "x.bpk"], ["ls", "m"]]:
            result = self.works(*words)
            said = result.out if words[0] == "inspect" else result.err
            self.assertIn("ignored, since it is not in the set: consolidated.safetensors", said)
            self.assertIn("ignored, since it is not read here: pytorch_model.bin", said)
        self.assertEqual(len(self.names_in("m/consolidated.safetensors")[0]), 5)
        os.remove(self.path("m", INDEX))
        self.refused(3, "convert", "m", "-o", "y.bpk", says=["several models", "consolidated.safetensors", PARTS[0], "name one"])

    def test_a_set_of_another_variant_is_left_alone__FW_08(self):
        ema = [name.replace("model", "model.ema") for name in PARTS]
        self.put("m", ema, "model.safetensors.index.ema.json")
        self.refused(3, "ls", "m", says=["several indexes", "model.safetensors.index.ema.json, " + INDEX])
        before = self.tree()
        for name in [INDEX, PARTS[0], "model.safetensors.index.ema.json", ema[0]]:
            self.assertEqual(len(self.names_in("m/" + name)[0]), 5)
        found = self.works("inspect", "--json", "m/" + ema[0]).document["files"][0]
        self.assertEqual([s["file"] for s in found["shards"]], ["m/" + name for name in ema])
        self.assertEqual(self.tree(), before)

    def test_a_name_in_an_index_opens_nothing_outside_its_folder__SE_01(self):
        self.model("secret.safetensors")
        for name in ["../secret.safetensors", self.path("secret.safetensors"), "m/../../secret.safetensors", "C:\\x", "", ".", "x\0y",
                     "./" + PARTS[0]]:
            self.put_index("m", {"weight": name})
            for words in [["ls"], ["inspect"], ["convert", "-o", "x.bpk"]]:
                self.refused(3, *words, "m/" + INDEX, says=["m/%s: names a file that is not beside it, found '" % INDEX])

    def test_links_lead_where_the_index_lies_and_nowhere_else(self):
        """The cache of the Hub: snapshots/<revision>/NAME is a link to ../../blobs/<sum>."""
        os.makedirs(self.path("hub/blobs"))
        os.makedirs(self.path("hub/snapshots/1f"))
        for i, name in enumerate([*PARTS, INDEX]):
            shutil.copy(self.path("m", name), self.path("hub/blobs/%d" % i))
            os.symlink("../../blobs/%d" % i, self.path("hub/snapshots/1f", name))
        for name in ["hub/snapshots/1f", "hub/snapshots/1f/" + INDEX, "hub/snapshots/1f/" + PARTS[0]]:
            self.works("diff", name, "m")
        os.remove(self.path("hub/snapshots/1f", PARTS[1]))
        os.symlink(self.path("m", PARTS[1]), self.path("hub/snapshots/1f", PARTS[1]))
        self.refused(3, "ls", "hub/snapshots/1f", says=[PARTS[1] + ": a link that leads out of its folder, found '"])

    def test_an_error_names_the_shard(self):
        whole = self.read("m/" + PARTS[1])
        for data, says in [(whole[:-1], "tensor 'layer.1.bias'"), (whole + b"x", "1 unexpected byte"), (b"", "empty"),
                           (b"version https://git-lfs.github.com/spec/v1\nsize 12\n", "Git-LFS"), (None, "a shard is missing")]:
            os.remove(self.path("m", PARTS[1]))
            if data is not None:
                support.write(self.path("m", PARTS[1]), data)
            else:
                data = whole
            for words in [["ls"], ["inspect"], ["convert", "-o", "x.bpk"], ["plan", "-o", "x.bpk"], ["diff", "m"]]:
                result = self.refused(3, *words, "m", says=says)
                self.assertTrue(result.err.startswith("decant: m/%s: " % PARTS[1]), result)
            result = self.decant("verify", "m")
            self.assertEqual(result.code, 1, result)
            self.assertTrue(result.out.startswith("m: m/%s: " % PARTS[1]), result)
            support.write(self.path("m", PARTS[1]), data)

    def test_verify_lists_the_faults_of_all_shards(self):
        support.write(self.path("m", PARTS[0]), self.read("m/" + PARTS[0])[:-1])
        os.remove(self.path("m", PARTS[1]))
        result = self.decant("verify", "m")
        self.assertEqual(result.code, 1, result)
        self.assertEqual([line.split(": ")[1] for line in result.out.splitlines()], ["m/" + name for name in PARTS])
        findings = self.decant("verify", "--json", "m").document["files"][0]["findings"]
        self.assertEqual([f["file"] for f in findings], ["m/" + name for name in PARTS])
        self.assertTrue(all(f["hint"] for f in findings))

    def test_out_may_be_a_shard_only_with_force__DA_05(self):
        os.symlink(PARTS[0], self.path("m/link.safetensors"))
        os.link(self.path("m", PARTS[1]), self.path("m/hard.safetensors"))
        for out in [*PARTS, "link.safetensors", "hard.safetensors"]:
            for command in ["convert", "plan"]:
                self.refused(4, command, "m/" + INDEX, "-o", "m/" + out)
        self.works("convert", "-f", "m/" + INDEX, "-o", "m/" + PARTS[1])
        self.put("again")
        self.works("diff", "m/" + PARTS[1], "again")

    def test_more_shards_than_files_may_be_open_say_both_numbers_and_a_soft_limit_is_raised(self):
        os.makedirs(self.path("many"))
        names = ["p-%05d-of-00040.safetensors" % (i + 1) for i in range(40)]
        for i, name in enumerate(names):
            self.model("many/" + name, [("t%d" % i, "U8", [1], None)])
        self.works("ls", "many", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 100)))
        self.refused(3, "ls", "many", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)),
                     says=["found a limit of 20", "as there are shards, 40", "ulimit -n"])

    def test_a_folder_full_of_other_things_never_blocks(self):
        os.mkfifo(self.path("m/pipe"))
        os.mkfifo(self.path("m/pipe.json"))
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(self.path("m/socket"))
            os.makedirs(self.path("m/sub/sub"))
            for i in range(3000):
                support.write(self.path("m/%d.txt" % i), b"")
            self.assertIn("and 3002 more: not weights", self.works("inspect", "m").out)
        os.remove(self.path("m", PARTS[1]))
        os.mkfifo(self.path("m", PARTS[1]))
        self.refused(3, "ls", "m", says=PARTS[1] + ": is a pipe or device")

    def test_an_index_of_other_files_says_so(self):
        support.write(self.path("m/pytorch_model-00001-of-00001.bin"), b"PK\3\4" + bytes(100))
        self.put_index("m", {"w": "pytorch_model-00001-of-00001.bin"}, "pytorch_model.bin.index.json")
        self.refused(3, "ls", "m/pytorch_model.bin.index.json", says="pytorch_model-00001-of-00001.bin: a zip archive")

    def test_tensors_that_the_index_lacks_are_let_in_leniently_and_told(self):
        self.put_index("m", {t[0]: PARTS[i >= 2] for i, t in enumerate(TENSORS[:-1])})
        self.refused(3, "ls", "m", says=["m/%s: tensor 'layer.1.bias': is in this file, and not in the index" % PARTS[1], "--lenient"])
        result = self.works("ls", "--lenient", "m")
        self.assertIn("odd: 1 tensor that the index does not name", result.err)
        self.assertIn("layer.1.bias", result.out)


if __name__ == "__main__":
    support.main()
