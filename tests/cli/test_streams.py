"""Standard input and output as files."""

import os
import signal

import support


class Streams(support.Case):
    def setUp(self):
        super().setUp()
        self.model("m.safetensors")

    def test_standard_output_gets_what_a_file_would(self):
        for name, extension in [("burnpack", "bpk"), ("safetensors", "safetensors")]:
            self.works("convert", "m.safetensors", "-o", "file." + extension)
            result = self.works("convert", "m.safetensors", "-o", "-", "--to", name)
            self.assertEqual(result.raw_out, self.read("file." + extension))
            self.assertIn("saved standard output: 3 tensors", result.err)
        self.assertEqual(self.names(), ["file.bpk", "file.safetensors", "m.safetensors"])

    def test_a_plan_of_standard_output_writes_nothing_there(self):
        for words in [["plan"], ["convert", "-n"]]:
            result = self.works(*words, "m.safetensors", "-o", "-", "--to", "burnpack")
            self.assertIn("standard output   burnpack", result.out)

    def test_what_standard_output_cannot_be(self):
        self.refused(2, "convert", "m.safetensors", "-o", "-", says="--to FORMAT")
        result = self.decant("convert", "m.safetensors", "-o", "-", "--to", "burnpack", "--json")
        self.assertEqual(result.code, 2)
        result = self.decant("convert", "m.safetensors", "-o", "-", "--to", "burnpack", "--prune")
        self.assertEqual((result.code, result.raw_out), (2, b""))
        result = self.decant("convert", "m.safetensors", "-o", "-", "--to", "burnpack", "--verify")
        self.assertEqual((result.code, result.raw_out), (4, b""))
        self.assertIn("; save it to a path", result.err)

    def test_standard_output_that_is_an_input_is_refused(self):
        before = self.read("m.safetensors")
        for word in ["m.safetensors", "-"]:
            with open(self.path("m.safetensors"), "ab") as out, open(self.path("m.safetensors"), "rb") as stdin:
                result = self.decant("convert", word, "-o", "-", "--to", "safetensors", stdin=stdin, stdout=out)
            self.assertEqual((result.code, self.read("m.safetensors")), (4, before))
            self.assertRegex(result.err, r"\Adecant: standard output: [^\n]*one of the inputs; [^\n]*\n\Z")

    def test_standard_output_that_is_full_is_a_failure(self):
        with open("/dev/full", "wb") as full:
            result = self.decant("convert", "m.safetensors", "-o", "-", "--to", "burnpack", stdout=full)
        self.assertEqual(result.code, 4)
        self.assertRegex(result.err, r"\Adecant: standard output: could not be written: [^\n]*; [^\n]*\n\Z")

    def test_nothing_is_put_behind_a_part_of_an_input(self):
        self.works("convert", "m.safetensors", "-o", "set.safetensors", "--max-shard-size", "20")
        part = next(name for name in self.names() if name.startswith("set-00002"))
        before = self.read(part)
        for words in [["convert", "set.safetensors.index.json", "-o", "-", "--to", "burnpack"],
                      ["extract", "set.safetensors.index.json", "bias", "-o", "-"]]:
            with open(self.path(part), "ab") as out:
                result = self.decant(*words, stdout=out)
            self.assertEqual(result.code, 4, result)
            self.assertIn("sent into one of the inputs", result.err)
            self.assertEqual(self.read(part), before)

    def test_a_closed_pipe_ends_it_without_a_word(self):
        support.write_sparse(self.path("large.safetensors"), 8 << 20)
        process = self.start("convert", "large.safetensors", "-o", "-", "--to", "burnpack")
        process.stdout.read(100)
        process.stdout.close()
        self.assertEqual(process.wait(60), -signal.SIGPIPE)
        self.assertEqual(process.stderr.read(), b"")
        process.stderr.close()

    def test_standard_input_that_comes_from_a_file_is_read(self):
        wanted = self.works("ls", "m.safetensors").out
        with open(self.path("m.safetensors"), "rb") as stdin:
            self.assertEqual(self.works("ls", "-", stdin=stdin).out, wanted)
        with open(self.path("m.safetensors"), "rb") as stdin:
            self.works("convert", "-", "-o", "x.bpk", stdin=stdin)
        self.works("diff", "m.safetensors", "x.bpk")
        with open(self.path("m.safetensors"), "rb") as stdin:
            self.works("verify", "-", stdin=stdin)

    def test_a_pipe_as_standard_input_is_refused(self):
        for words in [["ls", "-"], ["verify", "-"], ["convert", "-", "-o", "x.bpk"]]:
            reader, writer = os.pipe()
            os.write(writer, self.read("m.safetensors"))
            os.close(writer)
            result = self.decant(*words, stdin=reader)
            os.close(reader)
            self.assertEqual(result.code, 3, result)
            self.assertRegex(result.err, r"\Adecant: [^\n]*is a pipe[^\n]*; [^\n]*\n\Z")
        self.assertEqual(self.names(), ["m.safetensors"])


if __name__ == "__main__":
    support.main()
