"""decant digest: what it prints, that anyone can compute it again, and comparing with it."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import unittest

import support

NASTY = ["plain", "new\nline", "back\\slash", "a\\x0a", "quote\"", "col:on", "bidi\u202e", "\u00e9", "\U0001f600", "tab\t", "\x7f", " "]


def tensors(names):
    return [(name, "U8", [3], bytes([i, 2, 3])) for i, name in enumerate(names)]


class Digest(support.Case):
    def test_it_prints_a_line_a_tensor_and_one_of_the_model(self):
        self.model("m.safetensors", [("a", "U8", [3], b"abc"), ("b", "F32", [], b"\0" * 4)])
        a, b = hashlib.sha256(b"abc").hexdigest(), hashlib.sha256(b"\0" * 4).hexdigest()
        lines = sorted(['%s U8 [3] "a"\n' % a, '%s F32 [] "b"\n' % b])
        model = hashlib.sha256("".join(lines).encode()).hexdigest()
        result = self.works("digest", "m.safetensors")
        self.assertEqual(result.out, "sha256  %s  m.safetensors:a\nsha256  %s  m.safetensors:b\nmodel  %s  m.safetensors\n" % (a, b, model))
        self.assertEqual(result.err, "")

    def test_the_model_line_is_recomputed_with_sort_and_sha256sum(self):
        shutil.copy(os.path.join(support.SOURCE, "tests/data/sizes-around-256.bpk"), self.path("m.bpk"))
        script = r"""
            set -euo pipefail
            "$DECANT" digest m.bpk > manifest
            paste -d ' ' <(sed -n 's/^sha256  \([0-9a-f]*\)  .*/\1/p' manifest) <("$DECANT" ls m.bpk | tr -d ' ' |
                awk -F '\t' '{ printf "%s %s \"%s\"\n", $2, $3, $1 }') | LC_ALL=C sort | sha256sum | cut -d ' ' -f 1
            sed -n 's/^model  \([0-9a-f]*\)  .*/\1/p' manifest"""
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True,
                              env={"PATH": os.environ["PATH"], "DECANT": support.DECANT})
        self.assertEqual(done.stderr, "")
        ours, theirs = done.stdout.split()
        self.assertEqual(ours, theirs)

    def test_python_computes_the_same_of_names_with_everything_in_them(self):
        self.model("m.safetensors", tensors(NASTY))
        lines = ["%s U8 [3] %s\n" % (hashlib.sha256(data).hexdigest(), json.dumps(name, ensure_ascii=False))
                 for name, _, _, data in tensors(NASTY)]
        wanted = hashlib.sha256(b"".join(sorted(line.encode() for line in lines))).hexdigest()
        self.assertEqual(self.works("digest", "m.safetensors").out.splitlines()[-1].split()[1], wanted)

    def test_order_container_and_metadata_do_not_count(self):
        self.model("m.safetensors")
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        self.model("n.safetensors", [("step", "I64", [], None), ("bias", "BF16", [4], None), ("weight", "F32", [3, 4], None)],
                   {"some": "thing"})
        models = {self.works("digest", file).out.splitlines()[-1].split()[1] for file in ["m.safetensors", "m.bpk", "n.safetensors"]}
        self.assertEqual(len(models), 1)

    def test_json_has_the_exact_names_and_the_sums(self):
        self.model("m.safetensors", tensors(NASTY))
        file = self.works("digest", "m.safetensors", "--json").document["files"][0]
        self.assertEqual([t["name"] for t in file["tensors"]], NASTY)
        self.assertEqual([t["sha256"] for t in file["tensors"]], [hashlib.sha256(t[3]).hexdigest() for t in tensors(NASTY)])
        self.assertEqual(file["model"], self.works("digest", "m.safetensors").out.splitlines()[-1].split()[1])

    def test_a_file_that_fails_does_not_stop_the_others(self):
        self.model("m.safetensors")
        result = self.decant("digest", "none.safetensors", "m.safetensors")
        self.assertEqual(result.code, 3)
        self.assertIn("model  ", result.out)
        files = self.decant("digest", "none.safetensors", "m.safetensors", "--json").document["files"]
        self.assertEqual([f["error"] is None for f in files], [False, True])


class Check(support.Case):
    def setUp(self):
        super().setUp()
        self.model("m.safetensors")
        self.keep("m.safetensors", "m.digest")

    def keep(self, *files):
        *files, to = files
        support.write(self.path(to), self.works("digest", *files).raw_out)

    def check(self, code, *words):
        result = self.decant("digest", "-c", *words)
        self.assertEqual(result.code, code, result)
        as_json = self.decant("digest", "-c", *words, "--json")
        self.assertEqual(as_json.code, code)
        document = self.check_document(as_json)
        if code < 2:
            self.assertIs(document["same"], code == 0)
            self.assertEqual(len(document["differences"]), len(result.out.splitlines()) if code else 0)
        return result

    def test_a_converted_file_holds_the_same(self):
        self.works("convert", "m.safetensors", "-o", "elsewhere.bpk")
        self.assertEqual(self.check(0, "m.digest", "elsewhere.bpk").out, "same: 3 tensors as in m.digest\n")
        with open(self.path("m.digest"), "rb") as f:
            self.assertEqual(self.decant("digest", "-c", "-", "elsewhere.bpk", stdin=f).code, 0)

    def test_the_file_may_lie_elsewhere(self):
        os.mkdir(self.path("other"))
        shutil.move(self.path("m.safetensors"), self.path("other", "m.safetensors"))
        self.check(0, "m.digest", "other/m.safetensors")

    def test_each_difference_is_told(self):
        self.model("n.safetensors", [("weight", "F32", [3, 4], b"\1" * 48), ("bias", "BF16", [4], None), ("new", "U8", [1], None)])
        out = self.check(1, "m.digest", "n.safetensors").out
        self.assertRegex(out, r"\Avalues     weight   [0-9a-f]{64}, expected [0-9a-f]{64}\nnot listed new\nmissing    step\n\Z")

    def test_a_dtype_or_shape_that_changed_is_told_though_no_byte_has(self):
        data = support.safetensors([("weight", "F32", [3, 4], None), ("bias", "BF16", [4], None), ("step", "I64", [], None)])
        support.write(self.path("n.safetensors"), data.replace(b'"BF16"', b'"F16" '))
        self.assertRegex(self.check(1, "m.digest", "n.safetensors").out, r"\Amodel      n.safetensors   \w{64}, expected \w{64}\n\Z")
        support.write(self.path("n.safetensors"), data.replace(b"[3,4]", b"[4,3]"))
        self.check(1, "m.digest", "n.safetensors")

    def test_names_with_everything_in_them_are_read_back(self):
        file = "a:b\\ c\n\u202e.safetensors"
        self.model(file, tensors(NASTY))
        self.keep(file, "nasty.digest")
        self.assertEqual(self.read("nasty.digest").count(b"\n"), len(NASTY) + 1)
        self.assertEqual(self.check(0, "nasty.digest", file).out, "same: %d tensors as in nasty.digest\n" % len(NASTY))
        swapped = list(NASTY)
        swapped[1], swapped[3] = swapped[3], swapped[1]  # a newline is not its escape
        self.model(file, tensors(swapped))
        self.check(1, "nasty.digest", file)

    def test_of_a_manifest_of_several_files_each_is_compared_with_its_own(self):
        self.model("a.safetensors", [("w", "U8", [1], b"a")])
        self.model("b.safetensors", [("w", "U8", [1], b"b")])
        self.keep("a.safetensors", "b.safetensors", "ab.digest")
        self.check(0, "ab.digest", "a.safetensors", "b.safetensors")
        self.check(0, "ab.digest", "b.safetensors")
        os.rename(self.path("a.safetensors"), self.path("c.safetensors"))
        os.rename(self.path("b.safetensors"), self.path("a.safetensors"))
        self.assertIn("values     w   ", self.check(1, "ab.digest", "a.safetensors").out)

    def test_a_merged_file_is_compared_with_all_that_is_listed(self):
        self.model("a.safetensors", [("x", "U8", [1], b"a")])
        self.model("b.safetensors", [("y", "U8", [1], b"b")])
        self.keep("a.safetensors", "b.safetensors", "ab.digest")
        self.model("merged.safetensors", [("x", "U8", [1], b"a"), ("y", "U8", [1], b"b")])
        self.assertIn("by their bytes", self.check(0, "ab.digest", "merged.safetensors").out)
        self.model("part.safetensors", [("x", "U8", [1], b"a")])
        self.assertEqual(self.check(1, "ab.digest", "part.safetensors").out, "missing    y\n")

    def test_what_digest_did_not_print_is_refused(self):
        lines = self.read("m.digest").splitlines(keepends=True)
        for text, says in [(b"", "does not end"), (b"".join(lines[:-1]), "does not end"), (b"".join(lines)[:-1], "line 4 is cut"),
                           (b"hello\n", "line 1 is none"), (b"".join(lines[:1]) + lines[-1].replace(b"m.safe", b"n.safe"), "names another file"),
                           (lines[0].replace(b":", b":\\q") + lines[-1], "an escape"), (lines[0].replace(b":", b":\\") + lines[-1], None),
                           (lines[0].replace(b":", b":\0") + lines[-1], "is cut"), (lines[0][:30] + b"\n" + lines[-1], "line 1 is none"),
                           (lines[0].replace(b":", b":\\x1\n") + lines[-1], None), (lines[-1].replace(b"m.", b"\\u{20"), "escape")]:
            support.write(self.path("bad.digest"), text)
            self.refused(3, "digest", "-c", "bad.digest", "m.safetensors", says=says or "bad.digest")
        self.refused(3, "digest", "-c", "none.digest", "m.safetensors", says="none.digest")

    def test_a_file_that_cannot_be_read_is_no_answer(self):
        result = self.decant("digest", "-c", "m.digest", "none.safetensors")
        self.assertEqual((result.code, result.out), (3, ""))


if __name__ == "__main__":
    support.main()
