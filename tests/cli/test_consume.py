"""--consume: inputs that are gone when the output has their bytes, and are what they were when it does not."""

import contextlib
import ctypes
import mmap
import os
import random
import re
import resource
import signal
import stat
import subprocess
import tempfile
import time

import images
import support

IS_ROOT = os.geteuid() == 0
MIB = 1 << 20
BIG = 140 * MIB  # several batches of 64 MiB


class Consume(support.Case):
    def setUp(self):
        super().setUp()
        if not self.drains(self.folder):
            self.skipTest("files cannot be emptied from their front here: %s" % self.folder)

    @staticmethod
    def drains(folder):
        """Whether the file system of a folder frees ranges, as the tests of routes expect."""
        with tempfile.TemporaryFile(dir=folder) as f:
            f.write(bytes(1 * MIB))
            f.flush()
            punch = ctypes.CDLL(None, use_errno=True).fallocate(f.fileno(), 3, ctypes.c_long(0), ctypes.c_long(4096))
        return punch == 0

    def make(self, name="m.safetensors", size=300_000, count=3, prefix="t", metadata=None):
        """A model of random bytes whose last tensor ends in the middle of a block."""
        tensors = [("%s%d" % (prefix, i), "U8", [size + i], random.randbytes(size + i)) for i in range(count)]
        support.write_model(self.path(name), tensors, metadata)
        return name

    def big(self, name="big.safetensors", size=BIG):
        return self.make(name, size // 4, 4)

    def plain(self, *words, out="plain.bpk"):
        """What the same words make without --consume."""
        self.works(*words, "-o", out)
        data = self.read(out)
        os.remove(self.path(out))
        return data

    def mode(self, name):
        return stat.S_IMODE(os.lstat(self.path(name)).st_mode)

    def as_nobody(self):
        """Arguments that run a program as somebody whom modes bind; what is in the folder is his."""
        if not IS_ROOT:
            return {}
        try:
            subprocess.run([support.DECANT, "--version"], user=65534, capture_output=True, check=True)
        except (PermissionError, subprocess.CalledProcessError):
            self.skipTest("nobody but root may run %s" % support.DECANT)
        for path, folders, files in os.walk(self.folder):
            for name in [path] + [os.path.join(path, f) for f in files]:
                os.chown(name, 65534, 65534)
        return {"user": 65534}


class Gone(Consume):
    """The output is what it is without --consume, and the inputs are gone."""

    def test_a_file_becomes_one_of_another_format_and_is_gone(self):
        self.make()
        plain = self.plain("convert", "m.safetensors")
        result = self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume", "-v")
        self.assertEqual(self.read("o.bpk"), plain)
        self.assertEqual(self.names(), ["o.bpk"])
        self.assertIn("  inputs   1 moved, gone\n", result.err)
        result = self.works("convert", "o.bpk", "-o", "back.safetensors", "--consume")
        self.assertEqual(self.names(), ["back.safetensors"])

    def test_several_batches_are_moved_and_the_output_is_the_same(self):
        self.big()
        plain = self.plain("convert", "big.safetensors")
        self.works("convert", "big.safetensors", "-o", "o.bpk", "--consume")
        self.assertTrue(self.read("o.bpk") == plain)
        self.assertEqual(self.names(), ["o.bpk"])

    def test_a_set_goes_with_its_index(self):
        self.make("m.safetensors", count=7)
        self.works("convert", "m.safetensors", "-o", "s.safetensors", "--max-shard-size", "700000")
        os.rename(self.path("m.safetensors"), self.path("kept"))
        self.assertIn("s.safetensors.index.json", self.names())
        plain = self.plain("convert", "s.safetensors.index.json")
        support.write(self.path("config.json"), b"{}")
        result = self.works("convert", "s.safetensors.index.json", "-o", "o.bpk", "--consume", "--json")
        self.assertEqual(self.read("o.bpk"), plain)
        self.assertEqual(self.names(), ["config.json", "kept", "o.bpk"])
        inputs = {os.path.basename(i["file"]): i for i in self.check_document(result)["inputs"]}
        self.assertTrue(all(i["given"] for i in inputs.values()), inputs)
        self.assertIn("s.safetensors.index.json", inputs)

    def test_what_is_given_up_is_no_relic_of_an_earlier_save(self):
        self.make("m.safetensors", count=7)
        self.works("convert", "m.safetensors", "-o", "s.safetensors", "--max-shard-size", "700000")
        os.rename(self.path("m.safetensors"), self.path("kept"))
        for prune in [[], ["--prune"]]:
            self.assertNotIn("\nold ", self.works("plan", "s.safetensors.index.json", "-o", "s.safetensors", "--consume", *prune).out)
        result = self.works("convert", "s.safetensors.index.json", "-o", "s.safetensors", "--consume", "--prune")
        self.assertEqual(result.err.count("\n"), 1, result)
        self.assertEqual(self.names(), ["kept", "s.safetensors"])

    def test_a_folder_stands_for_its_set_and_stays(self):
        os.mkdir(self.path("in"))
        self.make("m.safetensors", count=7)
        self.works("convert", "m.safetensors", "-o", "in/s.safetensors", "--max-shard-size", "700000")
        support.write(self.path("in/README.md"), b"kept")
        self.works("convert", "in", "-o", "o.safetensors", "--consume")
        self.assertEqual(os.listdir(self.path("in")), ["README.md"])
        self.works("diff", "m.safetensors", "o.safetensors")

    def test_many_inputs_become_one(self):
        for name in "abc":
            self.make(name + ".safetensors", prefix=name)
        words = ["convert", "a.safetensors", "b.safetensors", "c.safetensors"]
        plain = self.plain(*words)
        self.works(*words, "-o", "o.bpk", "--consume")
        self.assertEqual(self.read("o.bpk"), plain)
        self.assertEqual(self.names(), ["o.bpk"])

    def test_inputs_of_several_folders_go(self):
        for folder in "ab":
            os.mkdir(self.path(folder))
            self.make(folder + "/m.safetensors", prefix=folder)
        self.works("convert", "a/m.safetensors", self.path("b/m.safetensors"), "-o", "o.bpk", "--consume")
        self.assertEqual([os.listdir(self.path(f)) for f in "ab"], [[], []])
        self.assertEqual(self.names(), ["a", "b", "o.bpk"])

    def test_one_file_becomes_a_set(self):
        self.make(count=7)
        words = ["convert", "m.safetensors", "--max-shard-size", "700000"]
        os.mkdir(self.path("plain"))
        self.works(*words, "-o", "plain/o.safetensors")
        self.works(*words, "-o", "o.safetensors", "--consume")
        self.assertNotIn("m.safetensors", self.names())
        for name in os.listdir(self.path("plain")):
            self.assertEqual(self.read(name), self.read("plain/" + name))

    def test_names_prefixes_and_metadata_may_change(self):
        self.make("a.safetensors", metadata={"k": "v"})
        self.make("b.safetensors", metadata={"k": "v"})
        words = ["convert", "--prefix", "x.", "a.safetensors", "--prefix", "y.", "b.safetensors", "--rename",
                 "s/t0/first/", "--set", "new=value"]
        plain = self.plain(*words)
        self.works(*words, "-o", "o.bpk", "--consume")
        self.assertEqual(self.read("o.bpk"), plain)
        self.assertEqual(self.names(), ["o.bpk"])

    def test_what_is_read_back_is_compared_before_it_is_given_up(self):
        self.big()
        digest = self.works("digest", "big.safetensors").out.splitlines()[-1].split()[1]
        result = self.works("convert", "big.safetensors", "-o", "o.bpk", "--consume", "--verify")
        self.assertIn(digest, result.err)
        self.assertIn("read back and equal", result.err)
        self.assertEqual(self.names(), ["o.bpk"])

    def test_cat_joins_and_its_parts_are_gone(self):
        data = [random.randbytes(n) for n in (70 * MIB + 13, 5, 1, 300_001)]
        for i, part in enumerate(data):
            support.write(self.path("p%d" % i), part)
        self.works("cat", "p0", "p1", "p2", "p3", "-o", "whole", "--consume")
        self.assertTrue(self.read("whole") == b"".join(data))
        self.assertEqual(self.names(), ["whole"])

    def test_cat_keeps_its_parts_when_one_is_empty(self):
        support.write(self.path("p0"), b"abc")
        support.write(self.path("p1"), b"")
        self.refused(3, "cat", "p0", "p1", "-o", "whole", "--consume", says=["p1: it is empty", "leave it out"])

    def test_edit_uses_up_what_it_puts_in_and_nothing_else(self):
        self.make()
        new = random.randbytes(300_000)
        support.write(self.path("new.bin"), new)
        self.works("edit", "m.safetensors", "--put", "t0=new.bin", "--consume")
        self.assertEqual(self.names(), ["m.safetensors"])
        self.works("extract", "m.safetensors", "t0", "--to", "raw")
        self.assertEqual(self.read("t0.bin"), new)
        self.refused(2, "edit", "m.safetensors", "--set", "a=b", "--consume", says="--put")

    def test_empty_tensors_and_models_and_a_byte(self):
        for tensors in [[], [("e", "F32", [0], b"")], [("e", "F32", [0], b""), ("b", "U8", [1], b"x")]]:
            support.write_model(self.path("m.safetensors"), tensors)
            plain = self.plain("convert", "m.safetensors")
            self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume")
            self.assertEqual(self.read("o.bpk"), plain)
            self.assertEqual(self.names(), ["o.bpk"])
            os.remove(self.path("o.bpk"))

    def test_sizes_about_a_block(self):
        for size in [4095, 4096, 4097, 65535, 65536, 65537]:
            support.write_model(self.path("m.safetensors"), [("t", "U8", [size], random.randbytes(size))])
            plain = self.plain("convert", "m.safetensors")
            self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume")
            self.assertEqual(self.read("o.bpk"), plain)
            self.assertEqual(self.names(), ["o.bpk"])
            os.remove(self.path("o.bpk"))

    def test_sparse_inputs_stay_sparse(self):
        support.write_sparse(self.path("m.safetensors"), BIG)
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume")
        self.assertEqual(self.names(), ["o.bpk"])
        self.assertLess(os.stat(self.path("o.bpk")).st_blocks * 512, MIB)

    def test_what_is_at_out_is_replaced_with_force_and_gives_its_mode(self):
        self.make()
        support.write(self.path("o.bpk"), b"old")
        os.chmod(self.path("o.bpk"), 0o640)
        self.refused(4, "convert", "m.safetensors", "-o", "o.bpk", "--consume", says="exists")
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume", "-f")
        self.assertEqual((self.names(), self.mode("o.bpk")), (["o.bpk"], 0o640))

    def test_replacing_takes_no_more_room_than_a_new_name__30(self):
        self.big()
        support.write(self.path("old.bpk"), random.randbytes(BIG))
        rooms = [int(self.works("plan", "big.safetensors", "-o", out, "--consume", "-f", "--json").document["room"]) for out in ["new.bpk", "old.bpk"]]
        self.assertEqual(rooms[0], rooms[1])
        self.works("convert", "big.safetensors", "-o", "old.bpk", "--consume", "-f")
        self.assertEqual(self.names(), ["old.bpk"])

    def test_a_new_file_follows_the_umask(self):
        self.make()
        os.chmod(self.path("m.safetensors"), 0o666)
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume", preexec_fn=lambda: os.umask(0o077))
        self.assertEqual(self.mode("o.bpk"), 0o600)

    def test_any_name_that_a_file_can_have(self):
        for name in ["a\nb c'\"$x.safetensors", "x" * (255 - 12) + ".safetensors", "é" * 120 + ".safetensors", "-o.safetensors"]:
            self.make(name)
            os.mkdir(self.path("in"))
            os.rename(self.path(name), self.path("in", name))
            self.works("convert", "in/" + name, "-o", "o.bpk", "--consume")
            self.assertEqual((os.listdir(self.path("in")), self.names()), ([], ["in", "o.bpk"]))
            os.remove(self.path("o.bpk"))
            os.rmdir(self.path("in"))

    def test_somebody_who_is_not_root_gives_up_what_is_his(self):
        self.make()
        nobody = self.as_nobody()
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume", **nobody)
        self.assertEqual(self.names(), ["o.bpk"])

    def test_a_second_save_does_not_find_what_is_gone(self):
        self.make()
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume")
        self.refused(3, "convert", "m.safetensors", "-o", "other.bpk", "--consume", says="m.safetensors")

    def test_without_consume_nothing_is_gone__C2(self):
        self.make()
        before = self.tree(begun=True)
        self.works("convert", "m.safetensors", "-o", "o.bpk")
        os.remove(self.path("o.bpk"))
        self.assertEqual(self.tree(begun=True), before)


class Told(Consume):
    """What a plan promises, and what a save says that it did."""

    def test_a_plan_says_what_will_happen_and_touches_nothing(self):
        self.big()
        before = self.tree()
        shown = self.works("plan", "big.safetensors", "-o", "o.bpk", "--consume").out
        self.assertRegex(shown, r"\ninputs    1 moved \(expected: [^\n]*\), gone afterwards; about the time of a durable copy\n")
        self.assertRegex(shown, r"\nroom      1[34]\d(\.\d)? MB needed, .* free +a copy would need 146\.8 MB\n")
        self.assertRegex(shown, r"\nloses     nothing; can be undone until it is finished\n")
        again = self.works("convert", "big.safetensors", "-o", "o.bpk", "--consume", "--dry-run").out
        self.assertEqual(*(re.sub(r"[\d.]+ [MGT]B free", "", text) for text in (again, shown)))
        document = self.check_document(self.works("plan", "big.safetensors", "-o", "o.bpk", "--consume", "--json"))
        self.assertEqual([(i["route"], i["given"]) for i in document["inputs"]], [("drain", True)])
        self.assertLess(int(document["room"]), 160 * MIB)
        self.assertEqual(self.tree(), before)
        plain = self.check_document(self.works("plan", "big.safetensors", "-o", "o.bpk", "--json"))
        self.assertEqual([(i["route"], i["given"]) for i in plain["inputs"]], [("copy", False)])

    def test_json_says_what_became_of_each_input(self):
        self.make("a.safetensors", prefix="a")
        self.make("b.safetensors", prefix="b")
        document = self.check_document(self.works("convert", "a.safetensors", "b.safetensors", "-o", "o.bpk", "--consume", "--json"))
        self.assertEqual([(i["file"], i["route"], i["given"]) for i in document["inputs"]],
                         [("a.safetensors", "drain", True), ("b.safetensors", "drain", True)])


class Refused(Consume):
    """Doubts refuse, say what to do, and leave every file as it was."""

    def refuses(self, code, says, *words, **more):
        words = words or ("m.safetensors",)
        self.refused(code, "plan", *words, "-o", "o.bpk", "--consume", says=says, **more)
        return self.refused(code, "convert", *words, "-o", "o.bpk", "--consume", says=says, **more)

    def test_a_link_is_not_followed__R1_13_B2(self):
        self.make("real.safetensors")
        os.symlink("real.safetensors", self.path("m.safetensors"))
        self.refuses(3, ["m.safetensors: this is a link", "cp -L"])

    def test_a_link_in_the_middle_of_the_path_is_followed(self):
        os.mkdir(self.path("real"))
        self.make("real/m.safetensors")
        os.symlink("real", self.path("link"))
        self.works("convert", "link/m.safetensors", "-o", "o.bpk", "--consume")
        self.assertEqual(os.listdir(self.path("real")), [])

    def test_a_second_name_is_kept__A13(self):
        self.make()
        os.link(self.path("m.safetensors"), self.path("other"))
        self.refuses(3, ["m.safetensors: the file has another name too", "copy it first"])

    def test_a_file_that_is_read_only_also_for_root__A14(self):
        self.make()
        os.chmod(self.path("m.safetensors"), 0o444)
        self.refuses(3, ["m.safetensors: the file is read-only", "chmod u+w"])

    def test_a_folder_that_is_read_only_also_for_root(self):
        os.mkdir(self.path("in"))
        self.make("in/m.safetensors")
        os.chmod(self.path("in"), 0o555)
        self.refuses(3, ["in/m.safetensors: its folder is read-only", "chmod u+w"], "in/m.safetensors")

    def test_a_file_that_is_protected_against_changes(self):
        self.make()
        if subprocess.run(["chattr", "+i", self.path("m.safetensors")], capture_output=True).returncode:
            self.skipTest("files cannot be made immutable here")
        self.addCleanup(subprocess.run, ["chattr", "-i", self.path("m.safetensors")])
        self.refuses(3, ["protected against changes", "chattr -i"])

    def test_a_file_that_somebody_has_open__49(self):
        self.make()
        with open(self.path("m.safetensors"), "rb"):
            self.refuses(4, ["m.safetensors: somebody has the file open", "lsof"])
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--consume")

    def test_a_file_that_somebody_has_mapped__49(self):
        self.make()
        with open(self.path("m.safetensors"), "rb") as f:
            mapped = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        self.refuses(4, "somebody has the file open")
        mapped.close()

    def test_an_output_that_is_an_input__21(self):
        self.make("m.safetensors")
        for out in ["m.safetensors", "./m.safetensors", self.path("m.safetensors"), "../" + os.path.basename(self.folder) + "/m.safetensors"]:
            for force in [[], ["-f"]]:
                self.refused(4, "convert", "m.safetensors", "-o", out, "--consume", *force, says="m.safetensors: ")
        self.assertIn("decant edit", self.refused(4, "convert", "m.safetensors", "-o", "m.safetensors", "-f", "--consume").err)

    def test_an_output_that_has_the_other_name_of_an_input(self):
        self.make("m.safetensors")
        for words in [["plan"], ["convert"], ["convert", "-f"]]:
            self.refused(4, words[0], "m.safetensors", "-o", "./m.safetensors.moving", "--to", "burnpack", "--consume", *words[1:],
                         says=["the name that it would have meanwhile", "choose another name"])
        os.mkdir(self.path("out"))
        self.works("convert", "m.safetensors", "-o", "out/m.safetensors.moving", "--to", "burnpack", "--consume")

    def test_an_output_that_is_an_input_by_another_mount(self):
        os.mkdir(self.path("in"))
        os.mkdir(self.path("out"))
        self.make("in/m.safetensors")
        if subprocess.run(["mount", "--bind", self.path("in"), self.path("out")], capture_output=True).returncode:
            self.skipTest("nothing can be mounted here")
        self.addCleanup(subprocess.run, ["umount", self.path("out")], check=True)
        self.refused(4, "convert", "in/m.safetensors", "-o", "out/m.safetensors", "-f", "--consume", says="decant edit")

    def test_a_name_that_it_would_have_meanwhile_is_taken(self):
        self.make()
        support.write(self.path("m.safetensors.moving"), b"somebody's")
        self.refuses(4, ["there is a 'm.safetensors.moving'", "move it away"])

    def test_a_file_of_another_user(self):
        if not IS_ROOT:
            self.skipTest("only root has files of others")
        self.make()
        nobody = self.as_nobody()
        os.chown(self.path("m.safetensors"), 1, 1)
        os.chmod(self.path("m.safetensors"), 0o666)
        self.refuses(3, "the file is another user's", **nobody)

    def test_a_folder_whose_files_only_their_owners_may_rename(self):
        if not IS_ROOT:
            self.skipTest("only root has files of others")
        os.mkdir(self.path("in"))
        self.make("in/m.safetensors")
        nobody = self.as_nobody()
        os.chown(self.path("in"), 0, 0)
        os.chmod(self.path("in"), 0o1777)
        os.chown(self.path("in/m.safetensors"), 1, 1)
        os.chmod(self.path("in/m.safetensors"), 0o666)
        self.refuses(3, "another user's", "in/m.safetensors", **nobody)

    def test_a_folder_that_everybody_may_write_to__48(self):
        os.mkdir(self.path("out"))
        self.make()
        os.chmod(self.path("out"), 0o777)
        self.refused(4, "convert", "m.safetensors", "-o", "out/o.bpk", "--consume", says=["a journal in it means nothing", "+t"])
        os.chmod(self.path("out"), 0o1777)
        self.works("convert", "m.safetensors", "-o", "out/o.bpk", "--consume")

    def test_a_limit_of_sizes_says_both(self):
        self.make()
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        self.refuses(4, ["found", "expected"], preexec_fn=limit)

    def test_more_files_than_may_be_open(self):
        names = [self.make("m%d.safetensors" % i, size=10, count=1, prefix="m%d." % i) for i in range(60)]
        words = ["convert", *names, "-o", "o.bpk", "--consume"]
        for most in [58, 61, 80, 124]:  # 60 inputs, an output, and 64 for all else
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
            for command in ["convert", "plan"]:
                before = self.tree(begun=True)
                result = self.decant(command, *words[1:], preexec_fn=limit)
                self.assertIn("found a limit of %d for this process" % most, result.err)
                self.assertIn("ulimit -n", result.err)
                if most > 61:
                    self.assertIn("expected at least 125", result.err)
                    self.assertEqual(result.code, 4)
                self.assertEqual(self.tree(begun=True), before)
        self.works(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (50, 125)))
        self.assertEqual(self.names(), ["o.bpk"])

    def test_what_an_input_has_must_be_in_the_output(self):
        self.make("m.safetensors", metadata={"k": "v"})
        for flags, lost in [(["--include", "t1"], "t0"), (["--exclude", "t2"], "t2")]:
            result = self.refuses(3, ["would destroy", "--allow loss"], "m.safetensors", *flags)
            self.assertIn(lost, result.err)
        self.refuses(3, ["would destroy its metadata 'k'", "--allow loss"], "m.safetensors", "--unset", "k")
        self.refuses(3, ["would destroy its metadata 'k'", "--allow loss"], "m.safetensors", "--set", "k=other")

    def test_what_it_is_not_in_is_destroyed_only_when_asked_for(self):
        self.make("m.safetensors", metadata={"k": "v"})
        shown = self.works("plan", "m.safetensors", "-o", "o.bpk", "--include", "t1", "--unset", "k", "--consume", "--allow", "loss")
        self.assertIn("loses     2 destroyed tensors, first of 't0'\n          1 destroyed value, first of 'k'\n", shown.out)
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--include", "t1", "--unset", "k", "--consume", "--allow", "loss")
        self.assertEqual(self.names(), ["o.bpk"])

    def test_files_without_tensors_and_tensors_without_elements_count_too(self):
        support.write_model(self.path("m.safetensors"), [], {"k": "v"})
        self.refuses(3, "metadata 'k'", "m.safetensors", "--unset", "k")
        support.write_model(self.path("m.safetensors"), [("e", "F32", [0], b""), ("f", "F32", [0], b"")])
        self.refuses(3, "tensor 'e'", "m.safetensors", "--exclude", "e")
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--rename", "s/e/g/", "--consume")
        self.assertEqual(self.names(), ["o.bpk"])

    def test_what_a_leniency_skips_is_a_loss(self):
        self.make()
        with open(self.path("m.safetensors"), "ab") as f:
            f.write(b"somebody's notes")
        self.refuses(3, ["would destroy what was skipped in it", "--allow loss"], "m.safetensors", "--lenient", "-q")
        self.assertIn("1 destroyed remainder", self.works("plan", "m.safetensors", "-o", "o.bpk", "--lenient", "--consume", "--allow", "loss").out)
        self.make()
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--lenient", "--consume")
        self.assertEqual(self.names(), ["o.bpk"])

    def test_narrower_numbers_are_a_loss(self):
        support.write_model(self.path("m.safetensors"), [("w", "F32", [1000], bytes(4000))])
        self.refuses(3, ["tensor 'w'", "would destroy", "--allow loss"], "m.safetensors", "--dtype", "bf16")
        self.works("convert", "m.safetensors", "-o", "o.bpk", "--dtype", "bf16", "--consume", "--allow", "loss")
        self.assertEqual(self.names(), ["o.bpk"])

    def test_streams_and_nothing_at_all(self):
        self.make()
        self.refused(2, "convert", "m.safetensors", "-o", "-", "--to", "burnpack", "--consume", says="name a file")
        with open(self.path("m.safetensors"), "rb") as f:
            self.refused(2, "convert", "-", "-o", "o.bpk", "--consume", says="name the file", stdin=f)
        support.write(self.path("p"), b"abc")
        with open(self.path("p"), "rb") as f:
            self.refused(2, "cat", "-", "-o", "o", "--consume", says="name the file", stdin=f)

    def test_a_damaged_input_is_kept(self):
        self.make()
        os.truncate(self.path("m.safetensors"), 500_000)
        self.refuses(3, "m.safetensors: ")


class Interrupted(Consume):
    """Whenever it is stopped, it can be finished, and undone."""

    INPUTS = ["in/a.safetensors", "in/b.safetensors"]
    OUT = "out/o.bpk"

    def setUp(self):
        super().setUp()
        os.mkdir(self.path("in"))
        os.mkdir(self.path("out"))
        for name in self.INPUTS:
            self.make(name, BIG // 4, 2, prefix=name[3])
            os.chmod(self.path(name), 0o640)
            os.utime(self.path(name), ns=(10**18 + 1, 10**18 + 123456789))
        self.before = self.inputs()
        self.data = self.plain("convert", *self.INPUTS, out=self.OUT)

    def inputs(self):
        """What must be the same after an undoing: names, modes, times, contents; and that they are the same inodes."""
        found = {}
        for name in sorted(os.listdir(self.path("in"))):
            status = os.lstat(self.path("in", name))
            found[name] = [status.st_mode, status.st_ino, status.st_mtime_ns, status.st_size, hash(self.read("in/" + name))]
        return found

    def begin(self, *more, **how):
        return self.start("convert", *self.INPUTS, "-o", self.OUT, "--consume", *more, **how)

    def moving(self):
        return [n for n in os.listdir(self.path("in")) if n.endswith(".moving")]

    def emptied(self):
        """Whether one has given up a batch."""
        for name in self.moving():
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(self.path("in", name))
                if status.st_blocks * 512 < status.st_size // 2:
                    return True
        return False

    def until(self, reached, process):
        while not reached() and process.poll() is None:
            time.sleep(0.0005)

    def stopped(self, number=signal.SIGKILL, *more, **how):
        """A save that was stopped when it had begun to empty its inputs; its result."""
        process = self.begin(*more, **how)
        self.until(self.emptied, process)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
        self.assertTrue(self.moving(), "the save was over before it could be stopped")
        return support.Result(process.returncode, out, err)

    def check_finished(self):
        self.assertTrue(self.read(self.OUT) == self.data)
        self.assertEqual((os.listdir(self.path("in")), os.listdir(self.path("out"))), ([], ["o.bpk"]))

    def check_undone(self):
        self.assertEqual(self.inputs(), self.before)
        self.assertEqual(os.listdir(self.path("out")), [])

    def test_killed_it_is_shown_and_found_from_every_name_of_it(self):
        self.stopped()
        journal = next(n for n in os.listdir(self.path("out")) if n.endswith(".decant-journal"))
        part = next(n for n in os.listdir(self.path("out")) if n.endswith(".jpart"))
        before = self.tree()
        for path in ["out", self.OUT, "out/" + journal, "out/" + part, "in", "in/" + self.moving()[0], "in/" + self.moving()[0][:-7]]:
            shown = self.decant("recover", path)
            self.assertEqual(shown.code, 5, path)
            self.assertRegex(shown.out, r"\A\S*out/o\.bpk: interrupted, [\d.]+ MB of 146\.8 MB moved, nothing is lost\n"
                             r"  finish   decant recover --resume \S*out/o\.bpk     about [\d.]+ MB needed\n"
                             r"  undo     decant recover --undo \S*out/o\.bpk     about [\d.]+ MB needed, inputs as before\n"
                             r"  until then \d inputs? (is|are) incomplete and ends? in \.moving\n\Z")
        shown = self.check_document(self.decant("recover", "in", "--json"))["saves"]
        self.assertEqual([(s["stage"], s["given"], s["incomplete"]) for s in shown], [("moving", 2, len(self.moving()))])
        self.assertEqual(self.tree(), before)

    def test_what_is_incomplete_is_read_by_no_command(self):
        self.stopped()
        name = self.moving()[0]
        for path in ["in/" + name, "in/" + name[:-7]]:
            for words in [["ls"], ["convert", "-o", "x.bpk"], ["convert", "-o", "x.bpk", "--consume"], ["cat", "-o", "x"]]:
                self.refused(5, words[0], path, *words[1:], says=["may be incomplete", "decant recover " + self.path("out")])

    def test_a_folder_is_not_read_without_what_is_incomplete_in_it(self):
        self.stopped()
        commands = [["ls"], ["inspect"], ["plan", "-o", "x.bpk"], ["convert", "-o", "x.bpk"], ["convert", "-o", "x.bpk", "--consume"]]
        for words in commands:
            self.refused(3, words[0], "in", *words[1:], says=["several models", "found a.safetensors, b.safetensors"])
        for name in set(os.listdir(self.path("in"))) - set(self.moving()[:1]):
            os.rename(self.path("in", name), self.path(name))
        for words in commands:
            self.refused(5, words[0], "in", *words[1:], says=["may be incomplete", "decant recover " + self.path("out")])

    def test_an_input_that_is_gone_meanwhile_is_named_with_its_folder(self):
        self.stopped()
        os.rename(self.path("in"), self.path("elsewhere"))
        for way in ["--resume", "--undo"]:
            self.refused(4, "recover", way, "out", says=[self.path("in/a.safetensors") + ": a file", "put it back, and try again"])
        os.rename(self.path("elsewhere"), self.path("in"))
        self.works("recover", "--undo", "out")
        self.check_undone()

    def test_a_save_to_the_same_output_is_refused_with_both_commands(self):
        self.stopped()
        self.make("other.safetensors")
        for more in [[], ["--consume"], ["-f"]]:
            self.refused(5, "convert", "other.safetensors", "-o", self.OUT, *more,
                         says=["decant recover --resume out/o.bpk", "decant recover --undo out/o.bpk"])
            self.refused(5, "plan", "other.safetensors", "-o", self.OUT, *more, says="nothing is lost")

    def test_another_save_is_refused_while_it_is_under_way(self):
        process = self.begin()
        self.until(self.moving, process)
        support.freeze(process)
        self.make("other.safetensors")
        self.refused(4, "convert", "other.safetensors", "-o", self.OUT, "-f", says="under way")
        self.refused(4, "recover", "--undo", self.OUT, says="under way")
        shown = self.works("recover", self.OUT)
        self.assertIn("out/o.bpk: is being written now\n", shown.out)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0)
        self.check_finished()

    def test_a_signal_stops_it_keeps_what_is_done_and_says_how_to_go_on(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            result = self.stopped(number)
            self.assertEqual(result.code, 5, result)
            self.assertEqual(result.err.count("\n"), 1)
            for text in ["out/o.bpk: stopped by a signal", "nothing is lost", "decant recover --resume out/o.bpk",
                         "decant recover --undo out/o.bpk"]:
                self.assertIn(text, result.err)
            self.assertIn("undone, all is as it was before", self.works("recover", "--undo", "in").err)
            self.check_undone()
        self.stopped(signal.SIGINT)
        self.assertIn("finished, it is in place; 2 inputs are gone", self.works("recover", "--resume", "out").err)
        self.check_finished()

    def test_a_signal_under_json(self):
        result = self.stopped(signal.SIGINT, "--json")
        self.assertEqual(self.check_document(result)["error"]["code"], "interrupted")
        self.assertEqual(result.code, 5)

    def test_a_second_signal_does_not_wait(self):
        process = self.begin()
        self.until(self.moving, process)
        support.freeze(process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=300)
        self.assertIn(process.returncode, [-signal.SIGINT, -signal.SIGTERM])
        self.works("recover", "--undo", "out")
        self.check_undone()

    def test_a_signal_before_anything_is_given_up_undoes_and_ends_by_it(self):
        process = self.begin()
        self.until(lambda: os.listdir(self.path("out")), process)
        support.freeze(process)
        early = not self.moving()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=300)
        if process.returncode == 5 or not early:
            self.works("recover", "--undo", "out")
        else:
            self.assertEqual(process.returncode, -signal.SIGINT)
        self.check_undone()

    def test_killed_at_any_moment_and_recovery_too__20(self):
        seed = int(os.environ.get("SEED", random.randrange(1 << 32)))
        chance = random.Random(seed)
        begun = time.monotonic()
        self.works("convert", *self.INPUTS, "-o", self.OUT)
        took = time.monotonic() - begun
        os.remove(self.path(self.OUT))
        runs, kept = (30 if os.environ.get("NIGHTLY") else 10), self.path("kept")
        subprocess.run(["cp", "-a", self.path("in"), kept], check=True)
        for run in range(runs):
            with self.subTest(seed=seed, run=run):
                process = self.begin()
                time.sleep(chance.uniform(0, took))
                process.kill()
                process.communicate(timeout=300)
                way = chance.choice(["--resume", "--undo"])
                for _ in range(chance.choice([0, 1, 2])):
                    recovery = self.start("recover", way, "out")
                    time.sleep(chance.uniform(0, took / 2))
                    recovery.kill()
                    recovery.communicate(timeout=300)
                shown = self.check_document(self.decant("recover", "out", "--json"))["saves"]
                stage = shown[0]["stage"] if shown else None
                if stage in ("begun", "undoing"):
                    way = "--undo"
                if stage == "complete":
                    way = "--resume"
                self.works("recover", way, "out")
                if os.path.exists(self.path(self.OUT)):
                    self.check_finished()
                    subprocess.run(["rm", "-r", self.path("in"), self.path(self.OUT)], check=True)
                    subprocess.run(["cp", "-a", kept, self.path("in")], check=True)
                    self.before = self.inputs()
                else:
                    for part in os.listdir(self.path("out")):  # of one that was killed before it had a journal
                        self.assertTrue(part.endswith(".part"), part)
                        os.remove(self.path("out", part))
                    self.check_undone()

    def test_one_that_had_only_begun_is_undone_by_the_next_save(self):
        for _ in range(20):
            process = self.begin()
            self.until(lambda: any(n.endswith(".jpart") for n in os.listdir(self.path("out"))), process)
            process.kill()
            process.communicate(timeout=300)
            saves = self.decant("recover", "out", "--json").document["saves"]
            if saves and saves[0]["stage"] == "begun":
                break
            self.works("recover", "--undo", "out")
        else:
            self.skipTest("it was never stopped early enough")
        words = [*self.INPUTS, "-o", self.OUT, "--consume"]
        before = self.tree()
        self.assertIn("undoes    1 interrupted save of it, first of all\n", self.works("plan", *words).out)
        self.assertEqual(self.tree(), before)
        self.refused(4, "recover", "--resume", "out", says="cannot be finished")
        self.assertIn("undone   1 interrupted save\n", self.works("convert", *words).err)
        self.check_finished()

    def recovered(self, result):
        """Goes the way that an interrupted save says that it can go; to the end where it can."""
        self.assertEqual(result.code, 5, result)
        stage = self.decant("recover", "out", "--json").document["saves"][0]["stage"]
        for flag in ["--resume", "--undo"]:
            if "decant recover %s out/o.bpk" % flag in result.err:
                self.assertIn(stage, ["moving", "complete"] if flag == "--resume" else ["moving", "undoing"])
        self.works("recover", "--resume" if stage == "complete" else "--undo", "out")

    def test_an_error_is_undone_and_can_be_tried_again(self):
        preload, kept = self.faulty(), self.path("kept")
        subprocess.run(["cp", "-a", self.path("in"), kept], check=True)
        for call in ["fdatasync", "fsync", "renameat2", "unlinkat"]:
            for nth in range(1, 40):
                process = self.begin(env={"FAULT": "%s %d" % (call, nth), **preload})
                out, err = process.communicate(timeout=300)
                result = support.Result(process.returncode, out, err)
                with self.subTest(call=call, nth=nth):
                    self.assertRegex(result.err, r"\A(decant: [^\n]*; [^\n]+|saved [^\n]*)\n\Z")
                    if result.code not in (0, 3, 4):
                        self.recovered(result)
                    if os.path.exists(self.path(self.OUT)):
                        self.check_finished()
                    else:
                        self.check_undone()
                if not os.path.exists(self.path(self.INPUTS[0])):
                    subprocess.run(["rm", "-rf", self.path("in"), self.path(self.OUT)], check=True)
                    subprocess.run(["cp", "-a", kept, self.path("in")], check=True)
                    self.before = self.inputs()
                if result.code == 0:
                    break
            self.assertEqual(result.code, 0)
            self.assertGreater(nth, 1, "no call of it was seen")

    def test_what_is_not_on_the_disk_as_it_was_written_is_not_given_up(self):
        process = self.begin("--verify", env={"CORRUPT": str(BIG * 3 // 4), **self.faulty()})
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 4, err)
        self.assertIn(b"are not on the disk as they were moved", err)
        self.check_undone()

    def test_a_journal_that_is_gone_is_named_and_nothing_is_touched(self):
        self.stopped()
        journal = next(n for n in os.listdir(self.path("out")) if n.endswith(".decant-journal"))
        os.rename(self.path("out", journal), self.path("away"))
        for place in ["in", "in/" + self.moving()[0]]:
            for way in [[], ["--resume"], ["--undo"]]:
                self.refused(5, "recover", place, *way, says=["its journal is not there", "out/" + journal])
        names = ["without its journal", "put its journal back, '%s'" % journal]
        self.refused(5, "recover", "out", says=[*names, "decant: out/o.bpk.decant-", "remove it only where there are none"])
        support.write_model(self.path("other.safetensors"), [])
        self.refused(5, "convert", "other.safetensors", "-o", self.OUT, says=names)
        os.remove(self.path("other.safetensors"))
        self.refused(5, "convert", self.INPUTS[0], "-o", self.OUT, "--consume")
        os.rename(self.path("away"), self.path("out", journal))
        self.works("recover", "--undo", "in")
        self.check_undone()

    def test_where_files_have_no_attributes_a_file_beside_an_input_says_where_the_journal_is(self):
        for way in ["--undo", "--resume"]:
            self.stopped(env={"LACKS": "xattr", **self.faulty()})
            name = self.moving()[0]
            self.assertIn(name + ".decant", os.listdir(self.path("in")))
            for command in ["inspect", "ls", "verify"]:
                self.refused(5, command, "in/" + name, says="may be incomplete")
                self.refused(5, command, "in/" + name[:-7], says="may be incomplete")
            self.assertIn("out/o.bpk: interrupted", self.decant("recover", "in").out)
            self.works("recover", way, "in/" + name)
            self.check_undone() if way == "--undo" else self.check_finished()

    def test_an_input_that_was_renamed_back_by_hand_stops_both_ways(self):
        self.stopped()
        name = self.moving()[0]
        os.rename(self.path("in", name), self.path("in", "elsewhere"))
        support.write(self.path("in", name[:-7]), b"another")
        for way in ["--resume", "--undo"]:
            self.refused(4, "recover", way, "out", says=name[:-7], begun=True)
        os.remove(self.path("in", name[:-7]))
        os.rename(self.path("in", "elsewhere"), self.path("in", name))
        self.works("recover", "--undo", "out")
        self.check_undone()


class Elsewhere(images.Case):
    """Where bytes cannot be moved they are shared or copied, and the inputs are gone all the same."""

    def put(self, path, size=3_000_000):
        support.write_model(path, [("t", "U8", [size], random.randbytes(size))])
        return path

    def consumed(self, source, out, *flags):
        """What became of the one input."""
        document = self.check_document(self.works("convert", source, "-o", out, "--consume", "--json", *flags))
        self.assertFalse(os.path.exists(source))
        self.assertTrue(os.path.exists(out))
        return document["inputs"][0]

    def test_to_another_file_system_it_is_copied_and_removed__19(self):
        there = self.mounted("tmpfs", 64 << 20)
        source = self.put(self.path("m.safetensors"))
        self.works("convert", source, "-o", "plain.bpk")
        self.assertIn("inputs    copied, gone afterwards (not on the file system of the output)\n",
                      self.works("plan", source, "-o", there + "/o.bpk", "--consume").out)
        became = self.consumed(source, there + "/o.bpk")
        self.assertEqual((became["route"], became["reason"]), ("copy", "not on the file system of the output"))
        with open(there + "/o.bpk", "rb") as f:
            self.assertEqual(f.read(), self.read("plain.bpk"))
        self.assertEqual(os.listdir(there), ["o.bpk"])

    def overlay(self, size=3_000_000):
        """An overlay in whose lower layer "m.safetensors" is: who has that open the system does not tell."""
        there = self.mounted("tmpfs", 512 << 20)
        for name in ["lower", "upper", "work", "merged"]:
            os.mkdir(os.path.join(there, name))
        options = "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work" % (there, there, there)
        merged = there + "/merged"
        self.put(there + "/lower/m.safetensors", size)
        if subprocess.run(["mount", "-t", "overlay", "none", "-o", options, merged], capture_output=True).returncode:
            self.skipTest("no overlay can be mounted here")
        self.addCleanup(subprocess.run, ["umount", merged], check=True)
        return merged

    def test_where_it_cannot_be_told_who_has_an_input_open_the_plan_says_so(self):
        merged = self.overlay()
        shown = self.works("plan", merged + "/m.safetensors", "-o", merged + "/o.bpk", "--consume").out
        self.assertIn("in use    not known", shown)
        document = self.check_document(self.works("convert", merged + "/m.safetensors", "-o", merged + "/o.bpk", "--consume", "--json"))
        self.assertEqual((document["unsure"], document["inputs"][0]["route"]), (True, "copy"))
        self.assertEqual((os.listdir(merged), os.listdir(os.path.dirname(merged) + "/lower")), (["o.bpk"], ["m.safetensors"]))

    def test_two_processes_do_not_give_the_same_input_up(self):
        there, kept, source = self.mounted("tmpfs", 512 << 20), self.path("kept"), self.put(self.path("m.safetensors"), 100 * MIB)
        subprocess.run(["cp", source, kept], check=True)
        for copied in [True, False]:
            out = there + "/o.bpk" if copied else self.path("o.bpk")
            first = self.start("convert", source, "-o", out, "--consume")
            self.addCleanup(first.communicate)
            self.addCleanup(first.kill)
            while not any(name.endswith("part") for name in os.listdir(os.path.dirname(out))):
                self.assertIsNone(first.poll(), "it was over too soon")
            support.freeze(first)
            for told, says in [({}, "somebody has the file open"), ({"LACKS": "lease", **self.faulty()}, "another process has locked it")]:
                if os.path.exists(source):
                    self.refused(4, "convert", source, "-o", "p.bpk", "--consume", env=told, says=["m.safetensors: " + says, "; "])
                else:
                    self.refused(5, "convert", source, "-o", "p.bpk", "--consume", env=told, says=["m.safetensors: ", "decant recover"])
            first.send_signal(signal.SIGCONT)
            first.communicate(timeout=300)
            self.assertEqual((first.returncode, os.path.exists(source)), (0, False))
            self.works("diff", kept, out)
            subprocess.run(["cp", kept, source], check=True)

    def test_where_files_cannot_be_locked_they_are_copied(self):
        source = self.put(self.path("m.safetensors"))
        told = {"LACKS": "flock", **self.faulty()}
        self.assertIn("copied, gone afterwards (files cannot be locked there)",
                      self.works("plan", source, "-o", "o.bpk", "--consume", env=told).out)
        document = self.check_document(self.works("convert", source, "-o", "o.bpk", "--consume", "--json", env=told))
        self.assertEqual([(i["route"], i["reason"]) for i in document["inputs"]], [("copy", "files cannot be locked there")])
        self.assertFalse(os.path.exists(source))

    def test_of_two_inputs_one_is_moved_and_one_is_copied(self):
        there = self.mounted("tmpfs", 64 << 20)
        support.write_model(there + "/a.safetensors", [("a", "U8", [300_000], None)])
        self.put(self.path("b.safetensors"))
        document = self.check_document(self.works("convert", there + "/a.safetensors", "b.safetensors", "-o", "o.bpk", "--consume", "--json"))
        self.assertEqual(sorted(i["route"] for i in document["inputs"]), ["copy", "drain"])
        self.assertEqual((os.listdir(there), self.names()), ([], ["o.bpk"]))

    def test_without_room_for_a_copy_it_is_refused_with_both_figures(self):
        there = self.mounted("tmpfs", 2 << 20)
        source = self.put(self.path("m.safetensors"))
        result = self.refused(4, "convert", source, "-o", there + "/o.bpk", "--consume", says=["no room", "found", "expected"])
        self.assertTrue(os.path.exists(source), result)
        self.assertEqual(os.listdir(there), [])

    def test_where_blocks_can_be_shared_nothing_is_moved(self):
        there = self.mounted("xfs")
        became = self.consumed(self.put(there + "/m.safetensors"), there + "/o.safetensors", "--layout", "congruent")
        self.assertEqual(became["route"], "clone")
        self.assertGreater(int(became["shared"]), 2_900_000)
        self.assertEqual(os.listdir(there), ["o.safetensors"])

    def test_on_file_systems_that_free_ranges_it_is_moved(self):
        for kind in ["ext4", "xfs", "btrfs", "tmpfs"]:
            with self.subTest(kind):
                there = self.mounted(kind)
                before = set(os.listdir(there))
                became = self.consumed(self.put(there + "/m.safetensors"), there + "/o.bpk")
                self.assertEqual(became["route"], "drain")
                self.assertEqual(set(os.listdir(there)) - before, {"o.bpk"})


if __name__ == "__main__":
    support.main()
