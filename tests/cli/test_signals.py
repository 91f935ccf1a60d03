"""Signals in the middle of a save."""

import os
import signal
import time

import support

SIZE = 1 << 28


class Signals(support.Case):
    def setUp(self):
        super().setUp()
        support.write_sparse(self.path("big.safetensors"), SIZE)
        support.write(self.path("old.bpk"), b"old")

    def begin(self, *words, **more):
        """Starts a save, and stops it where it has begun to write."""
        process = self.start("convert", "-f", "big.safetensors", "-o", "old.bpk", *words, **more)
        while self.names() == ["big.safetensors", "old.bpk"] and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        self.assertEqual(len(self.names()), 3, "the save was over before it could be stopped")
        return process

    def end(self, process):
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        return support.Result(process.returncode, out, err)

    def test_a_signal_stops_it_and_leaves_nothing(self):
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            process = self.begin()
            process.send_signal(number)
            result = self.end(process)
            self.assertEqual(result.code, -number, result)
            self.assertRegex(result.err, r"\Adecant: old\.bpk: .*; .*\n\Z")
            self.assertEqual(self.names(), ["big.safetensors", "old.bpk"])
            self.assertEqual(self.read("old.bpk"), b"old")

    def test_under_json_the_document_says_so(self):
        process = self.begin("--json")
        process.send_signal(signal.SIGINT)
        result = self.end(process)
        self.assertEqual((result.code, result.err), (-signal.SIGINT, ""))
        self.assertEqual(self.check_document(result)["error"]["code"], "cancelled")

    def test_a_second_signal_does_not_wait(self):
        process = self.begin()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        result = self.end(process)
        self.assertIn(result.code, [-signal.SIGINT, -signal.SIGTERM])
        self.assertEqual(result.err, "")
        self.assertEqual(self.read("old.bpk"), b"old")
        self.assertEqual(len(self.names()), 3)

    def test_a_killed_save_leaves_the_old_file_whole_and_a_part_until_the_next_one__DA_01(self):
        process = self.begin()
        process.kill()
        self.end(process)
        self.assertEqual(self.read("old.bpk"), b"old")
        part = self.names()[-1]
        self.assertRegex(part, r"\Aold\.bpk\.decant-[0-9a-f]{16}\.part\Z")
        self.refused(3, "ls", part, says=part + ": ")
        self.works("convert", "-f", "big.safetensors", "-o", "old.bpk")
        self.assertEqual(self.names(), ["big.safetensors", "old.bpk"])

    def test_a_signal_that_was_ignored_stays_ignored(self):
        process = self.begin(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        self.assertEqual(self.end(process).code, 0)
        self.assertGreater(os.path.getsize(self.path("old.bpk")), SIZE)

    def test_a_question_is_stopped_at_once(self):
        for name in ["a.safetensors", "b.safetensors"]:
            support.write_sparse(self.path(name), SIZE << 6)
        for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
            process = self.start("diff", "a.safetensors", "b.safetensors")
            while not self.handles(process, number) and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(number)
            self.assertEqual(self.end(process).code, -number)

    def handles(self, process, number):
        with open("/proc/%d/status" % process.pid) as f:
            caught = next(int(line.split()[1], 16) for line in f if line.startswith("SigCgt:"))
        return caught >> (number - 1) & 1


if __name__ == "__main__":
    support.main()
