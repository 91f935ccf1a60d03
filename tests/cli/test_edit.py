"""edit: a file replaced by one with other metadata, names or tensors."""

import os

import support


class Edit(support.Case):
    def setUp(self):
        super().setUp()
        self.model("m.safetensors", [("a.w", "U8", [4], b"abcd"), ("b=c", "U8", [2], b"xy"), ("re:[d]*", "U8", [1], b"z")],
                   {"k": "v"})

    def table(self, name):
        return self.works("ls", name).out.splitlines()

    def test_the_file_is_replaced_whole(self):
        os.link(self.path("m.safetensors"), self.path("old.safetensors"))
        self.works("edit", "m.safetensors", "--set", "format=pt", "--unset", "k")
        out = self.works("inspect", "m.safetensors").out
        self.assertIn("format = pt", out)
        self.assertNotIn("k = v", out)
        self.works("diff", "m.safetensors", "old.safetensors")
        self.assertIn("k = v", self.works("inspect", "old.safetensors").out)

    def test_a_tensor_gets_other_bytes(self):
        support.write(self.path("new=bytes"), b"EFGH")
        self.works("edit", "m.safetensors", "--put", "a.w=new=bytes", "-o", "n.safetensors")
        self.assertIn(b"EFGH", self.read("n.safetensors"))
        self.assertIn(b"abcd", self.read("m.safetensors"))
        support.write(self.path("two"), b"XY")
        self.works("edit", "m.safetensors", "--put", "b=c=two")
        self.assertIn(b"XY", self.read("m.safetensors"))

    def test_tensors_go_and_get_other_names(self):
        self.works("edit", "m.safetensors", "--drop", "re:[d]*", "--drop", "b=c", "--rename", "s/^a/z/")
        self.assertEqual(self.table("m.safetensors"), ["z.w\tU8\t[4]\t4"])

    def test_another_file_has_the_format_of_its_extension(self):
        self.works("edit", "m.safetensors", "--set", "k=w", "-o", "n.bpk")
        self.assertIn("burnpack", self.works("inspect", "n.bpk").out)
        self.works("diff", "m.safetensors", "n.bpk")
        self.refused(4, "edit", "m.safetensors", "--set", "k=w", "-o", "n", says=["extension", "end in one of .bpk, .safetensors"])
        os.rename(self.path("m.safetensors"), self.path("m"))
        self.works("edit", "m", "--set", "k=w") # what is replaced keeps its format, whatever it is called
        self.assertIn("safetensors", self.works("inspect", "m").out)

    def test_a_dry_run_changes_nothing(self):
        before = self.tree()
        result = self.works("edit", "-n", "m.safetensors", "--rename", "s/^a/z/", "--set", "k=w")
        self.assertIn("z.w", result.out)
        self.assertIn("sets      k=w\n", result.out)
        self.assertIn("nothing was written", result.out)
        support.write(self.path("four"), b"EFGH")
        words = ["edit", "-n", "m.safetensors", "--put", "a.w=four", "--set", "l=" + 200 * "w", "--set", "m=\n", "--unset", "k"]
        before = self.tree()
        out = self.works(*words).out
        self.assertIn("puts      a.w=four\n", out)
        self.assertRegex(out, r"sets      l=w{50,98}\.\.\.\n          m=\\x0a\nunsets    k\n")
        self.assertIn("sets      l=%s\n" % (200 * "w"), self.works(*words, "-v").out)
        document = self.check_document(self.works(*words, "--json"))
        self.assertEqual((document["puts"], document["sets"][1:], document["unsets"]), (["a.w=four"], ["m=\n"], ["k"]))
        self.assertEqual(self.tree(), before)

    def test_refusals(self):
        support.write(self.path("five"), b"12345")
        self.refused(2, "edit", "m.safetensors", says="nothing to change")
        self.refused(2, "edit", "m.safetensors", "--put", "a.w", says="NAME=FILE")
        self.refused(3, "edit", "m.safetensors", "--put", "a.w=five", says=["another length", "5 bytes"])
        self.refused(3, "edit", "m.safetensors", "--put", "a.w=none", says="none")
        self.refused(2, "edit", "m.safetensors", "--put", "a.w=", says="NAME=FILE")
        self.refused(3, "edit", "m.safetensors", "--put", "no=five", says="matches no tensor")
        self.refused(3, "edit", "m.safetensors", "--drop", "no", says=["m.safetensors: tensor 'no'", "no tensor has this name"])
        self.refused(3, "edit", "m.safetensors", "--drop", "a.v", says="did you mean 'a.w'?")
        self.refused(3, "edit", "none.safetensors", "--set", "a=b", says="none.safetensors")
        self.model("there.safetensors")
        self.refused(4, "edit", "m.safetensors", "--set", "a=b", "-o", "there.safetensors", says="exists")

    def test_contradictions_are_refused_for_what_they_are(self):
        support.write(self.path("four"), b"EFGH")
        self.refused(2, "edit", "m.safetensors", "--put", "a.w=four", "--drop", "a.w",
                     says=["m.safetensors", "tensor 'a.w'", "new content and left out"])
        self.refused(2, "edit", "m.safetensors", "--put", "a.w=four", "--put", "a.w=four", says=["tensor 'a.w'", "twice"])
        self.refused(2, "edit", "m.safetensors", "--set", "k=w", "--unset", "k", says="both set and unset")
        self.refused(2, "edit", "m.safetensors", "--set", "k=w", "--set", "k=x", says="set twice")


if __name__ == "__main__":
    support.main()
