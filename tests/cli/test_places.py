"""Where the output goes, what stands there already, and what becomes of it."""

import contextlib
import os
import resource
import stat
import subprocess
import unittest

import support

IS_ROOT = os.geteuid() == 0


class Place(support.Case):
    def setUp(self):
        super().setUp()
        self.model("m.safetensors")
        self.works("convert", "m.safetensors", "-o", "good.bpk")
        self.good = self.read("good.bpk")

    def mode(self, name):
        return stat.S_IMODE(os.lstat(self.path(name)).st_mode)

    def as_nobody(self):
        """Arguments that run a program as somebody whom modes bind."""
        if not IS_ROOT:
            return {}
        os.chmod(self.folder, 0o777)
        try:
            subprocess.run([support.DECANT, "--version"], user=65534, capture_output=True, check=True)
        except (PermissionError, subprocess.CalledProcessError):
            self.skipTest("nobody but root may run %s" % support.DECANT)
        return {"user": 65534}


class What(Place):
    def test_nothing_is_replaced_unless_it_is_asked_for(self):
        support.write(self.path("there.bpk"), b"old")
        self.refused(4, "convert", "m.safetensors", "-o", "there.bpk", says="there.bpk: ")
        self.works("convert", "-f", "m.safetensors", "-o", "there.bpk")
        self.assertEqual(self.read("there.bpk"), self.good)
        self.assertEqual(self.names(), ["good.bpk", "m.safetensors", "there.bpk"])

    def test_a_link_at_the_output_is_replaced_and_never_written_through(self):
        support.write(self.path("kept"), b"kept")
        for target in ["kept", "nowhere", "link.bpk"]:
            os.symlink(target, self.path("link.bpk"))
            self.refused(4, "convert", "m.safetensors", "-o", "link.bpk")
            self.works("convert", "-f", "m.safetensors", "-o", "link.bpk")
            self.assertTrue(stat.S_ISREG(os.lstat(self.path("link.bpk")).st_mode))
            self.assertEqual(self.read("link.bpk"), self.good)
            os.remove(self.path("link.bpk"))
        self.assertEqual(self.read("kept"), b"kept")
        self.assertFalse(os.path.exists(self.path("nowhere")))

    def test_a_folder_is_never_replaced(self):
        os.mkdir(self.path("folder.bpk"))
        for out in ["folder.bpk", "folder.bpk/", ".", "./"]:
            self.refused(4, "convert", "m.safetensors", "-o", out, says="name a file")
            self.refused(4, "convert", "-f", "m.safetensors", "-o", out, says="name a file")

    def test_a_pipe_or_a_device_is_never_replaced(self):
        os.mkfifo(self.path("pipe.bpk"))
        self.refused(4, "convert", "m.safetensors", "-o", "pipe.bpk")
        self.refused(4, "convert", "-f", "m.safetensors", "-o", "pipe.bpk")
        if os.path.exists("/dev/full"):
            self.refused(4, "convert", "-f", "--to", "burnpack", "m.safetensors", "-o", "/dev/full")

    def test_a_pipe_or_a_folder_is_no_input_and_nobody_waits_for_it(self):
        os.mkfifo(self.path("pipe.safetensors"))
        os.mkdir(self.path("folder"))
        for name in ["pipe.safetensors", "folder"]:
            self.refused(3, "convert", name, "-o", "x.bpk", says=name + ": ")
            self.refused(3, "ls", name, says=name + ": ")

    def test_a_path_that_names_no_file_is_no_input(self):
        for name in ["", "m.safetensors/", "m.safetensors/.", "none/"]:
            self.refused(3, "ls", name, says="; name a file")
        os.mkdir(self.path("empty"))
        for name in ["empty", "empty/", "empty/.", "/"]:
            self.refused(3, "ls", name, says="a folder without a model that is read here; name the file")
        self.refused(3, "ls", "empty/..", says="several models, of which none is said to be meant, found good.bpk, m.safetensors")

    def test_a_path_longer_than_the_system_takes(self):
        path = "./" * 2100 + "m.safetensors"
        self.refused(3, "ls", path, says="; choose a shorter path")
        self.refused(4, "convert", "m.safetensors", "-o", path, says="; choose a shorter path")

    def test_the_last_name_may_have_255_bytes_and_no_more(self):
        self.works("convert", "m.safetensors", "-o", "x" * 251 + ".bpk")
        self.assertEqual(self.read("x" * 251 + ".bpk"), self.good)
        self.refused(4, "convert", "m.safetensors", "-o", "x" * 252 + ".bpk")

    def test_odd_names_of_files_are_made_safe_in_messages(self):
        name = "a\nb\x1b[2J.bpk"
        result = self.works("convert", "m.safetensors", "-o", name)
        self.assertIn("saved a\\x0ab\\x1b[2J.bpk: ", result.err)
        self.assertEqual(self.read(name), self.good)
        self.refused(4, "convert", "m.safetensors", "-o", name, says="a\\x0ab\\x1b[2J.bpk")


class Itself(Place):
    """DA-04, DA-05: the output is the input."""

    def ways(self):
        os.mkdir(self.path("sub"))
        os.symlink("m.safetensors", self.path("symlink.safetensors"))
        os.link(self.path("m.safetensors"), self.path("hard.safetensors"))
        os.symlink(".", self.path("loop"))
        return ["m.safetensors", "./m.safetensors", "sub/../m.safetensors", self.path("m.safetensors"), "symlink.safetensors",
                "hard.safetensors", "loop/m.safetensors"]

    def test_it_is_refused_by_whatever_path__DA_05(self):
        for out in self.ways():
            self.refused(4, "convert", "m.safetensors", "-o", out)
            self.refused(4, "plan", "m.safetensors", "-o", out)

    def test_with_force_it_is_replaced_when_the_new_one_is_complete__DA_04(self):
        before = self.read("m.safetensors")
        with open(self.path("m.safetensors"), "rb") as reader:
            self.works("convert", "-f", "m.safetensors", "-o", "m.safetensors", "--to", "burnpack")
            self.assertEqual(reader.read(), before)
        self.assertEqual(self.read("m.safetensors"), self.good)

    @unittest.skipUnless(IS_ROOT, "mounting takes root")
    def test_a_file_that_is_mounted_is_refused_before_the_work__DA_05(self):
        self.model("other.safetensors")
        support.write(self.path("mounted.bpk"), b"")
        if subprocess.run(["mount", "--bind", "m.safetensors", "mounted.bpk"], cwd=self.folder, capture_output=True).returncode:
            self.skipTest("may not mount here")
        self.addCleanup(subprocess.run, ["umount", self.path("mounted.bpk")], check=True)
        for command in [["plan"], ["plan", "-f"], ["convert", "-f"]]:
            for name in ["m.safetensors", "other.safetensors"]:
                self.refused(4, *command, name, "-o", "mounted.bpk", says="mounted here")

    def test_with_force_a_second_name_keeps_the_old_file(self):
        before = self.read("m.safetensors")
        os.link(self.path("m.safetensors"), self.path("hard.safetensors"))
        self.works("convert", "-f", "m.safetensors", "-o", "hard.safetensors", "--to", "burnpack")
        self.assertEqual((self.read("hard.safetensors"), self.read("m.safetensors")), (self.good, before))


class Modes(Place):
    def test_a_new_file_has_the_mode_of_any_new_file__DA_07(self):
        for umask in [0o077, 0o022, 0o002]:
            name = "%o.bpk" % umask
            self.works("convert", "m.safetensors", "-o", name, preexec_fn=lambda u=umask: os.umask(u))
            self.assertEqual(self.mode(name), 0o666 & ~umask)

    def test_a_replaced_file_gives_its_mode_to_the_new_one__DA_08(self):
        for mode in [0o640, 0o600, 0o444, 0o664]:
            support.write(self.path("old.bpk"), b"old")
            os.chmod(self.path("old.bpk"), mode)
            self.works("convert", "-f", "m.safetensors", "-o", "old.bpk", preexec_fn=lambda: os.umask(0o022))
            self.assertEqual(self.mode("old.bpk"), mode)
            self.assertEqual(self.read("old.bpk"), self.good)
            os.remove(self.path("old.bpk"))

    @unittest.skipUnless(IS_ROOT, "giving files to another user takes root")
    def test_a_replaced_file_gives_its_owner_to_the_new_one__DA_08(self):
        support.write(self.path("old.bpk"), b"old")
        os.chown(self.path("old.bpk"), 65534, 65534)
        self.works("convert", "-f", "m.safetensors", "-o", "old.bpk")
        self.assertEqual((os.stat(self.path("old.bpk")).st_uid, os.stat(self.path("old.bpk")).st_gid), (65534, 65534))

    def test_what_replacing_changes_is_told__DA_08(self):
        support.write(self.path("old.bpk"), b"old")
        os.link(self.path("old.bpk"), self.path("other.bpk"))
        os.symlink("old.bpk", self.path("link.bpk"))
        for out, text in [("old.bpk", "a file with other names, which keep it"),
                          ("link.bpk", "a symbolic link; what it leads to stays")]:
            self.assertIn("\nreplaces  %s\n" % text, self.works("plan", "-f", "m.safetensors", "-o", out).out)
            document = self.works("plan", "--json", "-f", "m.safetensors", "-o", out).document
            self.assertEqual(document["replaces"], [text])
            self.assertIn("\n  replaced %s\n" % text, self.works("convert", "-f", "m.safetensors", "-o", out).err)
            self.assertNotIn("replaced", self.works("convert", "-f", "m.safetensors", "-o", out).err)
        self.assertEqual(self.read("other.bpk"), b"old")

    @unittest.skipUnless(IS_ROOT, "files of two users take root")
    def test_an_owner_who_changes_is_told__DA_08(self):
        support.write(self.path("old.bpk"), b"old")
        os.chmod(self.path("old.bpk"), 0o666)
        result = self.works("convert", "-f", "m.safetensors", "-o", "old.bpk", **self.as_nobody())
        self.assertIn("\n  replaced a file of another user; the new one is yours\n", result.err)
        self.assertEqual(os.stat(self.path("old.bpk")).st_uid, 65534)

    def test_in_a_folder_that_passes_its_group_on_the_file_has_it__DA_07(self):
        os.mkdir(self.path("shared"))
        if IS_ROOT:
            os.chown(self.path("shared"), -1, 12345)
        os.chmod(self.path("shared"), 0o2775)
        self.works("convert", "m.safetensors", "-o", "shared/m.bpk")
        self.assertEqual(os.stat(self.path("shared/m.bpk")).st_gid, os.stat(self.path("shared")).st_gid)


class Refusing(Place):
    """Folders and disks that do not take the output."""

    def test_a_folder_that_cannot_be_written_to(self):
        os.mkdir(self.path("closed"), 0o555)
        nobody = self.as_nobody()
        self.refused(4, "convert", "m.safetensors", "-o", "closed/m.bpk", says="closed/m.bpk: ", **nobody)
        self.refused(4, "plan", "m.safetensors", "-o", "closed/m.bpk", **nobody)
        os.mkdir(self.path("locked"))
        os.chmod(self.path("locked"), 0o600)
        self.refused(4, "plan", "m.safetensors", "-o", "locked/m.bpk", says="decant: locked: cannot ", **nobody)

    @unittest.skipUnless(IS_ROOT, "a file of another user's takes root")
    def test_another_users_file_in_a_folder_where_only_he_may_replace_it(self):
        support.write(self.path("theirs.bpk"), b"theirs")
        nobody = self.as_nobody()
        os.chmod(self.folder, 0o1777)
        for command in ["convert", "plan"]:
            self.refused(4, command, "-f", "m.safetensors", "-o", "theirs.bpk", says="theirs.bpk: the file is another user's",
                         **nobody)
        self.works("convert", "m.safetensors", "-o", "own.bpk", **nobody)
        self.works("convert", "-f", "m.safetensors", "-o", "own.bpk", **nobody)
        self.works("convert", "-f", "m.safetensors", "-o", "own.bpk")

    def test_an_input_that_cannot_be_read(self):
        os.chmod(self.path("m.safetensors"), 0)
        self.refused(3, "convert", "m.safetensors", "-o", "x.bpk", says="m.safetensors: ", **self.as_nobody())

    def test_a_file_where_a_folder_should_be(self):
        self.refused(4, "convert", "m.safetensors", "-o", "m.safetensors/x.bpk", says="it is a file: name a folder")

    def test_a_folder_that_is_not_there_is_told_before_the_input_is_read__CL_04(self):
        os.mkdir(self.path("models"))
        support.write(self.path("modles."), b"no folder")
        self.refused(4, "convert", "no such input", "-o", "modles/m.bpk", says=["'modles'", "did you mean 'models'?"])
        self.refused(4, "convert", "m.safetensors", "-o", "nothing/like/it/m.bpk", says="'nothing/like/it'")
        self.refused(4, "convert", "m.safetensors", "-o", "m.safetensors/x.bpk", says="m.safetensors")

    def test_a_limit_of_file_size_is_an_error_and_leaves_nothing__DA_02(self):
        self.model("big.safetensors", [("t", "U8", [1 << 20], None)])
        limit = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))}
        self.refused(4, "convert", "big.safetensors", "-o", "x.bpk", says="x.bpk: ", begun=True, **limit)

    def test_a_disk_without_room_is_told_before_the_first_byte__DA_02(self):
        with self.small_disk() as disk:
            self.model("big.safetensors", [("t", "U8", [1 << 21], None)])
            support.write(os.path.join(disk, "old.bpk"), b"old")
            before = sorted(os.listdir(disk))
            for words in [["-o", os.path.join(disk, "new.bpk")], ["-f", "-o", os.path.join(disk, "old.bpk")]]:
                for command in ["plan", "convert"]:
                    result = self.decant(command, "big.safetensors", *words)
                    self.assertEqual(result.code, 4, result)
                    self.assertRegex(result.err, r"\Adecant: .* free .*; .*\n\Z")
            self.assertEqual(sorted(os.listdir(disk)), before)
            with open(os.path.join(disk, "old.bpk"), "rb") as f:
                self.assertEqual(f.read(), b"old")

    def test_a_full_disk_stops_a_pipeline_where_it_is_full__DA_11(self):
        with self.small_disk() as disk:
            self.model("big.safetensors", [("t", "U8", [1 << 21], None)])
            between = os.path.join(disk, "between.bpk")
            self.assertEqual(self.decant("convert", "big.safetensors", "-o", between).code, 4)
            self.assertEqual(os.listdir(disk), [])
            self.refused(3, "convert", between, "-o", "end.safetensors", says=between + ": ")
        whole = self.read("good.bpk")
        for size, says in [(0, "the file is empty"), (5, "the file has 5 bytes, "), (len(whole) - 1, "the file has %d bytes, ")]:
            support.write(self.path("between.bpk"), whole[:size])
            self.refused(3, "convert", "between.bpk", "-o", "end.safetensors", says=says % size if "%" in says else says)

    @contextlib.contextmanager
    def small_disk(self):
        """A file system of 1 MiB."""
        disk = self.path("disk")
        os.mkdir(disk)
        if not IS_ROOT or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("mounting a small file system takes root")
        try:
            yield disk
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_nothing_is_written_anywhere_but_beside_the_output__DA_10(self):
        os.mkdir(self.path("tmp"))
        os.mkdir(self.path("out"))
        before = os.stat(self.path("tmp")).st_mtime_ns
        self.works("convert", "m.safetensors", "-o", "out/m.bpk", env={"TMPDIR": self.path("tmp")})
        self.assertEqual(os.stat(self.path("tmp")).st_mtime_ns, before)
        self.assertEqual(os.listdir(self.path("out")), ["m.bpk"])


if __name__ == "__main__":
    support.main()
