"""What the system does wrong, beneath a program that runs as it is: DA-03."""

import os
import signal
import subprocess

import support


class Faults(support.Case):
    def setUp(self):
        super().setUp()
        self.preload = self.faulty()
        self.model("m.safetensors", [("t%02d" % i, "U8", [1000 + i], None) for i in range(50)])
        self.works("convert", "m.safetensors", "-o", "good.bpk")
        self.good = self.read("good.bpk")

    def outcomes(self, function, *words):
        """The exit status for each call of a function that fails, the output checked; the last is that of no failure."""
        codes = []
        while not codes or codes[-1]:
            support.write(self.path("out.bpk"), b"old")
            if "-f" not in words:
                os.remove(self.path("out.bpk"))
            names = self.names()
            result = self.decant("convert", *words, "m.safetensors", "-o", "out.bpk",
                                 env={"FAULT": "%s %d" % (function, len(codes) + 1), **self.preload})
            codes.append(result.code)
            if result.code in (0, 6):
                self.assertEqual(self.read("out.bpk"), self.good)
                self.assertEqual(self.names(), sorted(set(names) | {"out.bpk"}))
                os.remove(self.path("out.bpk"))
            else:
                self.assertEqual(self.names(), names)
            if result.code:
                self.assertRegex(result.err.splitlines()[-1], r"\Adecant: out\.bpk: .*; .*\Z")
            self.assertLess(len(codes), 100)
        return codes

    def test_a_write_that_fails_leaves_what_was_there(self):
        for words in [[], ["-f"]]:
            codes = self.outcomes("write", *words)
            self.assertEqual(codes, [4] * (len(codes) - 1) + [0])
            self.assertGreater(len(codes), 1)

    def test_a_sync_of_the_data_that_fails_leaves_what_was_there_and_one_of_the_folder_is_told(self):
        for words in [[], ["-f"]]:
            codes = self.outcomes("fsync", *words)[:-1] + self.outcomes("fdatasync", *words)[:-1]
            self.assertEqual(sorted(codes), [4, 6])

    def test_an_error_at_close_alone_has_lost_nothing__DA_03(self):
        for nth in range(1, 12):
            self.works("convert", "-f", "m.safetensors", "-o", "out.bpk", env={"FAULT": "close %d" % nth, **self.preload})
            self.assertEqual(self.read("out.bpk"), self.good)

    def test_a_name_that_is_not_given_leaves_what_was_there(self):
        self.assertEqual(self.outcomes("renameat2"), [4, 0])
        self.assertEqual(self.outcomes("renameat", "-f"), [4, 0])

    def test_a_reservation_is_told_under_json_too(self):
        codes = self.outcomes("fsync")
        result = self.decant("convert", "--json", "m.safetensors", "-o", "out.bpk",
                             env={"FAULT": "fsync %d" % (codes.index(6) + 1), **self.preload})
        document = self.check_document(result)
        self.assertEqual((result.code, result.err), (6, ""))
        self.assertEqual((document["output"]["published"], document["output"]["durable"]), (True, False))
        self.assertEqual(document["error"]["code"], "not_durable")

    def test_a_signal_in_the_sync_undoes_the_save_and_one_in_the_clean_up_does_not_stop_that(self):
        support.write(self.path("out.bpk"), b"old")
        before = self.tree(begun=True)
        for calls in ["fdatasync fsync", "fdatasync fsync unlinkat"]:
            result = self.decant("convert", "-f", "m.safetensors", "-o", "out.bpk", env={"SIGNAL": calls, **self.preload})
            self.assertEqual(result.code, -signal.SIGINT, result)
            self.assertRegex(result.err, r"\Adecant: out\.bpk: stopped by a signal; .*\n\Z")
            self.assertEqual(self.tree(begun=True), before)

    def test_a_shell_sees_the_number_of_a_signal(self):
        result = self.decant("-c", '"$0" convert m.safetensors -o out.bpk; echo $?', support.DECANT, program="sh",
                             env={"SIGNAL": "fdatasync fsync", **self.preload})
        self.assertEqual(result.out, "130\n")

    def test_a_signal_that_comes_when_all_is_done_changes_nothing(self):
        result = self.works("convert", "m.safetensors", "-o", "out.bpk", env={"SIGNAL": "renameat2", **self.preload})
        self.assertRegex(result.err, r"\Asaved out\.bpk: ")
        self.assertEqual(self.read("out.bpk"), self.good)

    def test_what_the_disk_did_not_keep_is_found_and_not_published__DA_03(self):
        size = len(self.good)
        for at in [0, 9, 300, size // 2, size - 1]:
            support.write(self.path("out.bpk"), b"old")
            before = self.tree(begun=True)
            result = self.decant("convert", "-f", "--verify", "m.safetensors", "-o", "out.bpk",
                                 env={"CORRUPT": str(at), **self.preload})
            self.assertEqual(result.code, 4, result)
            self.assertRegex(result.err, r"\Adecant: out\.bpk: what was read back differs from what was written, in bytes "
                                         r"\d+ to \d+; nothing was published: [^\n]+\n\Z")
            self.assertEqual(self.tree(begun=True), before)
            self.works("convert", "-f", "m.safetensors", "-o", "out.bpk", env={"CORRUPT": str(at), **self.preload})
            self.assertNotEqual(self.read("out.bpk"), self.good)  # which is what it is for

    def test_what_recover_prints_can_be_typed(self):
        os.mkdir(self.path("my set"))
        out = "my set/it's.safetensors"
        result = self.decant("convert", "m.safetensors", "-o", out, "--max-shard-size", "30kB",
                             env={"FAULT": "renameat2 2", **self.preload})
        self.assertEqual(result.code, 5, result)
        for path in ["my set", out, out + ".index.json", "my set/it's-00002-of-00002.safetensors"]:
            shown = self.decant("recover", path)
            self.assertEqual(shown.code, 5, path)
            self.assertIn("interrupted when all was written", shown.out)
            self.refused(4, "recover", "--undo", path, says="--resume")
        self.works("recover", "my set/it") # which only begins like it
        line = next(line for line in shown.out.splitlines() if line.startswith("  finish ")).removesuffix("     all in place")
        environment = {"PATH": os.path.dirname(support.DECANT) + ":" + os.environ["PATH"]}
        subprocess.run(["sh", "-c", line.split(None, 1)[1]], check=True, cwd=self.folder, env=environment, capture_output=True)
        self.works("diff", "m.safetensors", out + ".index.json")

    def test_short_and_interrupted_writes_are_finished__FW_04(self):
        for most in ["1", "1000"]:
            self.works("convert", "-f", "m.safetensors", "-o", "out.bpk", env={"SHORT": most, **self.preload})
            self.assertEqual(self.read("out.bpk"), self.good)

    def test_prune_removes_nothing_that_is_all_there_is_of_an_interrupted_save(self):
        stop = ["convert", "m.safetensors", "-o", "o.safetensors", "--max-shard-size", "30kB"]
        self.assertEqual(self.decant(*stop, env={"FAULT": "renameat2 2", **self.preload}).code, 5)
        self.assertIn("o-00001-of-00002.safetensors", self.names())
        over = ["m.safetensors", "-o", "o.safetensors", "--prune"]
        for command in ["convert", "plan"]:
            self.refused(5, command, *over, says=["o-00001-of-00002.safetensors", "recover --resume"])
        self.works("recover", "--resume")
        self.works("diff", "m.safetensors", "o.safetensors.index.json")
        self.works("convert", *over)
        self.assertNotIn("o-00001-of-00002.safetensors", self.names())

    def test_what_is_finished_says_how_much_of_it_is_in_place(self):
        stop = ["convert", "m.safetensors", "-o", "o.safetensors", "--max-shard-size", "30kB"]
        self.assertEqual(self.decant(*stop, env={"FAULT": "renameat2 2", **self.preload}).code, 5)
        os.remove(self.path("o-00001-of-00002.safetensors"))
        self.assertIn(": finished, 2 of 3 files are in place; the others were replaced or moved away since",
                      self.works("recover", "--resume").err)


if __name__ == "__main__":
    support.main()
