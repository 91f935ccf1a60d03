"""Help, man pages, and wrong usage."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import support

SCHEMA = os.path.join(support.SOURCE, "docs/decant-1.schema.json")
COMMANDS = ["convert", "plan", "inspect", "ls", "diff", "digest", "verify", "extract", "recover", "edit", "cat", "formats"]
NOT_YET = ["devices"]


class Help(support.Case):
    def test_help_shows_examples_first(self):
        for command in COMMANDS:
            lines = self.works(command, "--help").out.splitlines()
            self.assertTrue(lines[0].startswith("decant %s: " % command))
            self.assertTrue(lines[2].startswith("  decant %s" % command), lines)

    def test_help_is_asked_for_in_any_of_its_ways(self):
        self.assertEqual(self.works("help").out, self.works("--help").out)
        self.assertEqual(self.works("help").out, self.works("-h").out)
        for command in COMMANDS:
            self.assertIn("  %s " % command, self.works("help").out)
            self.assertEqual(self.works("help", command).out, self.works(command, "-h").out)

    def test_help_and_version_are_text_whatever_else_is_asked_for(self):
        for words in [["--help"], ["--version"], ["help", "ls"], ["ls", "--help"], ["convert", "--version"]]:
            self.assertEqual(self.works(*words, "--json").out, self.works(*words).out)

    def test_version_is_one_line(self):
        with open(os.path.join(support.SOURCE, "include/decant/version.h")) as f:
            version = ".".join(re.findall(r"#define DECANT_VERSION_\w+ (\d+)", f.read()))
        self.assertEqual(self.works("--version").out, "decant %s\n" % version)
        self.assertEqual(self.works("ls", "--version").out, "decant %s\n" % version)

    def test_no_command_is_wrong_usage_and_shows_the_help(self):
        result = self.decant()
        self.assertEqual((result.code, result.out), (2, ""))
        self.assertEqual(result.err, self.works("help").out)

    def test_each_example_parses(self):
        for command in COMMANDS:
            for line in re.findall(r"^  (decant .*)", self.works(command, "--help").out, re.M):
                words = re.split(r"[|#&>]", line)[0].split()
                self.assertNotEqual(self.decant(*words[1:]).code, 2, line)


class ManPages(unittest.TestCase):
    def page(self, name):
        with open(os.path.join(support.SOURCE, "docs/man/%s.1" % name)) as f:
            return f.read()

    def test_each_command_has_a_page_with_the_flags_of_its_help(self):
        for command in COMMANDS:
            help_text = subprocess.run([support.DECANT, command, "--help"], capture_output=True, text=True, check=True).stdout
            in_help = {(short, long, value) for short, long, value in
                       re.findall(r"^  (?:-(\w),|   ) --([a-z-]+)(?: (\S+))?", help_text, re.M)}
            in_page = {(short, long, value) for short, long, value in
                       re.findall(r"^\.It (?:Fl (\w) , )?Fl -([a-z-]+)(?: Ar (\S+))?$", self.page("decant-" + command), re.M)}
            self.assertGreater(len(in_help), 4)
            self.assertEqual(in_help, in_page, command)

    def test_the_first_page_names_every_command_and_no_other(self):
        named = set(re.findall(r"^\.It Xr decant-(\w+) 1$", self.page("decant"), re.M))
        pages = {os.path.basename(p)[7:-2] for p in glob.glob(os.path.join(support.SOURCE, "docs/man/decant-*.1"))}
        self.assertEqual(named, set(COMMANDS))
        self.assertEqual(pages, set(COMMANDS))

    def test_each_field_of_json_is_documented_in_the_page_and_in_the_docs_and_no_other(self):
        page = self.page("decant").split("\n.Ss JSON\n")[1].split("\n.Sh ")[0]
        in_page = set()
        for line in re.findall(r"^\.(?:It )?(?:Pq .*)?Va (.*)$", page, re.M):
            in_page |= set(re.findall(r"\w+", line.replace("files[].", "")))
        with open(os.path.join(support.SOURCE, "docs/cli.md")) as f:
            table = f.read().split("| field | in | holds |")[1]
        in_docs = set(re.findall(r"`(?:files\[\]\.)?(\w+)`", table))
        self.assertEqual(in_page, in_docs)
        self.assertEqual(in_page, self.fields_given())

    def documents(self):
        """Some that have all there is."""
        data = os.path.join(support.SOURCE, "tests/data")
        ids, one = os.path.join(data, "param-ids.bpk"), os.path.join(data, "st-one.safetensors")
        found = []

        with tempfile.TemporaryDirectory() as folder:
            support.write_model(os.path.join(folder, "a.safetensors"), [("w", "U8", [2], b"ab")])
            support.write_model(os.path.join(folder, "b.safetensors"), [("w", "U8", [2], b"ac")])
            support.write_model(os.path.join(folder, "z.safetensors"), [("w", "U8", [2], b"\0\0")])
            with open(os.path.join(folder, "z.digest"), "wb") as f:
                f.write(support.safetensors([("w", "U8", [2], b"ab")]) + b"more")
            with open(os.path.join(folder, "a.digest"), "wb") as f:
                subprocess.run([support.DECANT, "digest", "a.safetensors"], stdout=f, cwd=folder, check=True)
            support.write(os.path.join(folder, "y-00001-of-00002.safetensors"), b"of an earlier save")
            with open(os.path.join(folder, "c.decant-journal"), "wb") as f:
                f.write(bytes(1024)) # a save that was stopped before it had begun
            for words in [["recover"], ["ls", ids, "none"], ["inspect", one], ["convert", one, "-o", "x.bpk"], ["convert", one, "-o", "y.safetensors"], ["formats"],
                          ["plan", "--prefix", "x.", one, "-o", "y.bpk"], ["plan", "--dtype", "f16", "a.safetensors", "-o", "y.bpk"],
                          ["diff", "a.safetensors", "b.safetensors"], ["digest", one], ["extract", one], ["verify", "--deep", "z.safetensors", "z.digest"], ["digest", "-c", "a.digest", "b.safetensors"]]:
                run = subprocess.run([support.DECANT, *words, "--json"], capture_output=True, cwd=folder)
                found.append(json.loads(run.stdout))
        return found

    def fields_given(self):
        found = set()

        def walk(value, name=None):
            if isinstance(value, dict) and name != "dtypes":
                found.update(value)
            for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []:
                walk(inner, key)

        walk(self.documents())
        return found

    def test_the_schema_describes_every_field_and_no_other(self):
        declared = set()

        def walk(schema):
            declared.update(schema.get("properties", {}))
            for inner in schema.values():
                for part in inner.values() if isinstance(inner, dict) else []:
                    if isinstance(part, dict):
                        walk(part)
            if isinstance(schema.get("items"), dict):
                walk(schema["items"])

        with open(SCHEMA) as f:
            walk(json.load(f))
        self.assertEqual(declared, self.fields_given())

    def test_documents_are_as_the_schema_says(self):
        python = next((p for p in [sys.executable, "/usr/bin/python3"] if not subprocess.run(
            [p, "-c", "import jsonschema"], capture_output=True).returncode), None)
        if not python:
            self.skipTest("no python3 here has jsonschema")
        check = "import json, jsonschema, sys; s = json.load(open(sys.argv[1])); v = jsonschema.Draft202012Validator(s); " \
            "v.check_schema(s); [v.validate(d) for d in json.load(sys.stdin)]"
        run = lambda documents: subprocess.run([python, "-c", check, SCHEMA], input=json.dumps(documents), text=True, capture_output=True)
        documents = self.documents()
        self.assertEqual(run(documents).stderr, "")
        documents[1]["files"][0]["tensors"][0]["bytes"] = 12 # a number, where a text is promised
        self.assertIn("12 is not of type 'string'", run(documents).stderr)

    @unittest.skipUnless(shutil.which("groff"), "groff is not installed")
    def test_pages_render_without_a_warning(self):
        for page in glob.glob(os.path.join(support.SOURCE, "docs/man/*.1")):
            result = subprocess.run(["groff", "-mandoc", "-Tutf8", "-ww", page], capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (0, ""), page)
            self.assertGreater(len(result.stdout), 500)


class WrongUsage(support.Case):
    def setUp(self):
        super().setUp()
        self.model("m.safetensors")

    def test_unknown_commands_are_refused_and_close_ones_suggested(self):
        self.refused(2, "convrt", says="did you mean decant convert?")
        for command in NOT_YET:
            self.refused(2, command, "m.safetensors", says="unknown command '%s'" % command)

    def test_unknown_flags_are_refused_and_close_ones_suggested(self):
        self.refused(2, "convert", "m.safetensors", "--ouput", "x.bpk", says="did you mean --output?")
        self.refused(2, "ls", "--verbos", "m.safetensors", says="did you mean --verbose?")
        for flag in ["--adopt", "-z"]:
            self.refused(2, "convert", flag, "m.safetensors", "-o", "x.bpk", says="unknown flag '%s'" % flag)
        for flag in ["--root=k", "--rules"]:
            self.refused(2, "convert", flag, "m.safetensors", "-o", "x.bpk", says=flag.split("=")[0] + " has a meaning in later")

    def test_flags_of_other_commands_are_unknown(self):
        self.refused(2, "ls", "-f", "m.safetensors", says="unknown flag")
        self.refused(2, "formats", "--lenient", says="unknown flag")

    def test_values_are_needed_where_they_belong_and_nowhere_else(self):
        self.refused(2, "convert", "m.safetensors", "-fo", says="decant: -o lacks its value; -o OUT")
        self.refused(2, "convert", "m.safetensors", "--output", says="decant: --output lacks its value; --output OUT")
        self.refused(2, "convert", "m.safetensors", "--force=yes", "-o", "x.bpk", says="takes no value")
        for twice in [["-o", "x.bpk"], ["--to", "burnpack"], ["--layout", "canonical"], ["--align", "4KiB"]]:
            self.refused(2, "convert", "m.safetensors", *twice, *twice, says="decant: %s is given twice;" % twice[0])
        self.refused(2, "convert", "m.safetensors", "-o", "x.bpk", "--allow", "limits,all", says="unknown word 'all'")
        self.refused(2, "convert", "m.safetensors", "-o", "x.bpk", "--allow", "", says="unknown word ''")

    def test_flags_are_written_in_any_of_their_ways(self):
        for words in [["-o", "x.bpk"], ["-ox.bpk"], ["-o=x.bpk"], ["--output", "x.bpk"], ["--output=x.bpk"], ["-fno", "x.bpk"]]:
            self.assertIn("to        x.bpk ", self.works("plan", "m.safetensors", *words).out)
            self.assertIn("to        x.bpk ", self.works("plan", *words, "m.safetensors").out)

    def test_a_name_that_begins_with_a_dash_stands_after_two(self):
        os.rename(self.path("m.safetensors"), self.path("-m"))
        self.works("ls", "--", "-m")
        self.refused(2, "ls", "-m")

    def test_the_number_of_files_is_checked(self):
        for words in [["ls"], ["inspect"], ["diff", "m.safetensors"], ["diff"] + 3 * ["m.safetensors"],
                      ["convert", "-o", "x.bpk"], ["formats", "m.safetensors"]]:
            self.refused(2, *words)

    def test_an_output_is_named_and_says_its_format(self):
        self.refused(2, "convert", "m.safetensors", says="-o OUT")
        self.refused(2, "convert", "m.safetensors", "-o", "", says="-o OUT")
        self.refused(2, "convert", "m.safetensors", "-o", "x", says=[".bpk", ".safetensors", "--to"])
        self.refused(2, "convert", "m.safetensors", "-o", "x.pt", says=[".bpk", ".safetensors", "--to"])
        self.refused(2, "convert", "m.safetensors", "-o", "x.bpk", "--to", "zip", says=["burnpack", "safetensors"])


if __name__ == "__main__":
    support.main()
