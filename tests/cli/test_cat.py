"""cat: files joined byte for byte."""

import os
import subprocess

import support


class Cat(support.Case):
    def setUp(self):
        super().setUp()
        self.parts = []
        for i, size in enumerate([5000, 0, 300_000, 1]):
            self.parts.append("part%d" % i)
            support.write(self.path(self.parts[-1]), os.urandom(size))
        self.joined = b"".join(self.read(name) for name in self.parts)

    def test_files_are_joined_in_their_order(self):
        for flags in [[], ["--verify"], ["-f"]]:
            result = self.works("cat", *self.parts, "-o", "out", *flags, *(["-f"] if flags else []))
            self.assertEqual(self.read("out"), self.joined)
            self.assertIn("4 files, 305,001 bytes", result.err)
        self.assertIn("read back and equal", self.works("cat", "part2", "-o", "one", "--verify").err)
        self.assertEqual(self.read("one"), self.read("part2"))
        self.works("cat", "part0", "part0", "-o", "twice")
        self.assertEqual(self.read("twice"), 2 * self.read("part0"))

    def test_a_dash_is_the_file_that_standard_input_comes_from(self):
        with open(self.path("part2"), "rb") as stdin:
            self.works("cat", "part0", "-", "-o", "out", stdin=stdin)
        self.assertEqual(self.read("out"), self.read("part0") + self.read("part2"))
        self.refused(3, "cat", "part0", "-", "-o", "piped", stdin=subprocess.PIPE, says="a pipe or device")

    def test_a_dry_run_says_what_would_be_done(self):
        result = self.works("cat", *self.parts, "-o", "out", "-n")
        self.assertIn("part2   300,000 bytes", result.out)
        self.assertIn("raw, 305,001 bytes", result.out)
        self.assertNotIn("out", self.names())
        document = self.check_document(self.works("cat", *self.parts, "-o", "out", "--json"))
        self.assertEqual(document["output"]["size"], "305001")

    def test_a_model_that_came_in_parts_is_one_again(self):
        self.model()
        whole = self.read("m.safetensors")
        support.write(self.path("a"), whole[:50])
        support.write(self.path("b"), whole[50:])
        self.works("cat", "a", "b", "-o", "n.safetensors")
        self.works("diff", "m.safetensors", "n.safetensors")

    def test_refusals(self):
        self.refused(2, "cat", "part0", says="no output given")
        self.refused(2, "cat", "-o", "out")
        self.refused(2, "cat", "part0", "-o", "-", says="standard output")
        self.refused(3, "cat", "part0", "none", "-o", "out", says="none")
        self.refused(3, "cat", "part0", ".", "-o", "out", says="name a file")
        self.refused(4, "cat", "part0", "part2", "-o", "part1", says="exists")
        self.refused(4, "cat", "part0", "part2", "-o", "part2", says="one of the inputs")
        self.works("cat", "part0", "part2", "-o", "part2", "-f")
        self.assertEqual(self.read("part2"), self.joined[:305_000])


if __name__ == "__main__":
    support.main()
