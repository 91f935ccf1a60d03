"""The tree keeps the order of includes, and the check that says so bites."""

import os
import tempfile
import unittest
from pathlib import Path

from include_order import complaints

HEADERS = {
    "include/decant/decant.h": "#include <decant/error.h>\n",
    "include/decant/error.h": "",
    "src/base/error.h": "#include <decant/error.h>\n",
    "src/pour/pour.h": '#include "base/error.h"\n',
    "src/format/format.h": '#include "base/error.h"\n',
    "src/format/burnpack/layout.h": '#include "format/format.h"\n',
    "src/format/safetensors/layout.h": "",
    "src/format/registry.c": '#include "format/burnpack/layout.h"\n#include "format/safetensors/layout.h"\n',
    "cli/cli.h": "#include <decant/decant.h>\n#include <stdio.h>\n",
}


def tree(extra):
    """A small tree that is in order, with more files in it."""
    folder = tempfile.TemporaryDirectory()
    root = Path(folder.name).resolve()
    for name, text in {**HEADERS, **extra}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return folder, root


class IncludeOrder(unittest.TestCase):
    def check(self, extra, *words):
        folder, root = tree(extra)
        with folder:
            found, _ = complaints(root)
        self.assertEqual(len(found), len(words), found)
        for line, word in zip(found, words):
            self.assertIn(word, line)

    def test_this_tree_is_in_order(self):
        found, seen = complaints(Path(os.environ["DECANT_SOURCE"]).resolve())
        self.assertEqual(found, [])
        self.assertGreater(seen, 0)

    def test_a_tree_in_order_has_no_complaint(self):
        self.check({"src/api/api.c": '#include "pour/pour.h"\n', "src/format/burnpack/emit.c": '#include "layout.h"\n'})

    def test_a_folder_may_not_include_a_later_one(self):
        self.check({"src/base/error.c": '#include "pour/pour.h"\n'}, "pour/ comes after base/")

    def test_a_path_upwards_is_no_way_around(self):
        self.check({"src/base/error.c": '# include "../pour/pour.h"\n'}, "pour/ comes after base/")

    def test_a_format_may_not_include_another(self):
        self.check({"src/format/burnpack/emit.c": '#include "format/safetensors/layout.h"\n'}, "stays in its folder")

    def test_nobody_but_the_registry_may_include_a_format(self):
        self.check({"src/pour/pour.c": '#include "format/burnpack/layout.h"\n'}, "stays in its folder")

    def test_a_folder_outside_the_order_is_refused(self):
        self.check({"src/misc/misc.c": ""}, "in no folder of the order")

    def test_the_program_sees_public_headers_only(self):
        self.check({"cli/main.c": '#include "base/error.h"\n', "cli/ls.c": "#include <decant/error.h>\n",
                    "cli/plan.c": '#include "cli.h"\n#include "../src/base/error.h"\n'},
                   "cli/ls.c", "cli/main.c", "cli/plan.c")

    def test_a_public_header_does_not_include_an_internal_one(self):
        self.check({"include/decant/save.h": '#include "base/error.h"\n'}, "public headers alone")

    def test_the_library_does_not_include_the_program(self):
        self.check({"src/api/api.c": '#include "../../cli/cli.h"\n'}, "its own headers alone")

    def test_a_header_that_is_not_there_is_named(self):
        self.check({"src/api/api.c": '#include "api/gone.h"\n'}, "api/gone.h: is neither")


if __name__ == "__main__":
    unittest.main()
