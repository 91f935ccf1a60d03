"""What the program asks of the system, as strace sees it: what makes a save safe, in its order, and how many calls."""

import collections
import os
import re
import shutil
import subprocess
import sys
import unittest

import support

SLOT = 1 << 20  # bytes that are read, and written, together
OPENING = 3     # reads
LISTED = 100    # tensors, at the least, that one read is for

READS = "read pread64 readv preadv preadv2".split()
WRITES = "write pwrite64 writev pwritev pwritev2 copy_file_range sendfile splice".split()
CHANGES = {
    "create": ["creat", "mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat"],
    "fill": ["truncate", "ftruncate", "fallocate", *WRITES],
    "dress": ["chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat", "utime", "utimes",
              "futimesat", "utimensat", "setxattr", "fsetxattr", "lsetxattr", "removexattr", "fremovexattr", "lremovexattr"],
    "sync": ["fsync", "fdatasync"],
    "sync all": ["sync", "syncfs"],
    "rename": ["rename", "renameat", "renameat2"],
    "link": ["link", "linkat"],
    "remove": ["unlink", "unlinkat", "rmdir"],
    "talk": ["socket", "socketpair", "connect", "bind", "sendto", "sendmsg"],
}
CHANGE_OF = {name: change for change, names in CHANGES.items() for name in names}

Call = collections.namedtuple("Call", "name paths arguments")


def change_of(call):
    """What a call does to the system's files or to others; None: nothing."""
    if call.name in ("open", "openat", "openat2"):
        return "create" if "O_CREAT" in call.arguments else \
            "open to write" if re.search("O_WRONLY|O_RDWR|O_TRUNC", call.arguments) else None
    return CHANGE_OF.get(call.name)


def story_of(calls):
    """The changes, in their order: "fill x.part". What fills one file, or dresses it, counts once as long as nothing else comes."""
    story = []
    for call in calls:
        change = change_of(call)
        line = "%s %s" % (change, " ".join(call.paths))
        if change and not (change in ("fill", "dress") and story and story[-1] == line):
            story.append(line)
    # on a file system without an exclusive rename
    return re.sub(r"link (\S+ \S+)\nremove \S+$", r"rename \1", "\n".join(story), flags=re.M).splitlines()


def count(calls, names, path):
    return sum(call.name in names and path in call.paths for call in calls)


class Traced(support.Case):
    def trace(self, *words):
        """The calls that succeed, of a run that does, but for those on pipes, which is where it prints to."""
        log = self.path("trace")
        # names are always told in full, other texts not at all
        result = self.decant("-f", "-y", "-s", "0", "-o", log, support.DECANT, *words, program=shutil.which("strace"),
                             env={"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})  # that traces too
        self.assertEqual(result.code, 0, result)
        with open(log) as f:
            lines = f.read().splitlines()
        os.remove(log)
        calls = []
        for line in lines:
            parts = re.fullmatch(r"(?:\d+ +)?(?:\+\+\+.*|---.*|(\w+)\((.*)\) += (-1|[\w?]+).*)", line)
            self.assertTrue(parts, "strace says what this test cannot read: " + line)
            name, arguments, result = parts.groups()
            if name and result != "-1" and "<pipe:" not in arguments:
                calls.append(Call(name, self.paths(arguments), arguments))
        return calls

    def paths(self, arguments):
        """What a call is about: names, and descriptors as strace explains them. Those in the test's folder relative to it."""
        base = os.path.realpath(self.folder)
        if arguments.startswith('"'):
            found = [("", name) for name in re.findall(r'"([^"]*)"', arguments)]
        else:
            found = re.findall(r'(?:AT_FDCWD(?:<[^>]*>)?|\d+<([^>]*)>)(?:, "([^"]*)")?', arguments)
        full = [os.path.normpath(os.path.join(base, *parts)) for parts in found]
        names = [os.path.relpath(path, base) if (path + "/").startswith(base + "/") else path for path in full]
        return [re.sub(r"\.decant-[0-9a-f]{16}\.part$", ".part", name) for name in names]


class Saving(Traced):
    def test_the_data_is_safe_before_its_name_and_nothing_else_is_touched(self):
        self.model("m.safetensors")
        for source, out in [("m.safetensors", "out.bpk"), ("out.bpk", "out.safetensors")]:
            part = out + ".part"
            calls = self.trace("convert", source, "-o", out)
            self.assertEqual(story_of(calls), ["create " + part, "fill " + part, "sync " + part, "rename %s %s" % (part, out),
                                               "sync ."])
            self.assertEqual(count(calls, ["open", "openat"], source), 1)

    def test_what_is_replaced_gives_its_attributes_before_the_sync(self):
        self.model("m.safetensors")
        support.write(self.path("out.bpk"), b"old")
        self.assertEqual(story_of(self.trace("convert", "-f", "m.safetensors", "-o", "out.bpk")),
                         ["create out.bpk.part", "fill out.bpk.part", "dress out.bpk.part", "sync out.bpk.part",
                          "rename out.bpk.part out.bpk", "sync ."])

    def test_reads_and_writes_are_as_many_as_slots_not_as_tensors(self):
        for tensors in [20, 2000]:
            shape = [1600 * 2000 // tensors - 1]  # which leaves gaps in a Burnpack file
            self.model("0.safetensors", [("layers.%04d.weight" % i, "U8", shape, None) for i in range(tensors)])
            for source, out in [("0.safetensors", "1.bpk"), ("1.bpk", "2.safetensors")]:
                calls = self.trace("convert", source, "-o", out)
                slots = os.path.getsize(self.path(out)) // SLOT + 1
                self.assertLessEqual(count(calls, READS, source), OPENING + slots + tensors // LISTED)
                self.assertLessEqual(count(calls, WRITES, out + ".part"), slots + 1)  # the first bytes go last
                os.remove(self.path(source))
            os.remove(self.path(out))

    @unittest.skipUnless(os.path.exists("/sys/kernel/mm/transparent_hugepage"), "there are no huge pages")
    def test_large_headers_are_to_lie_in_huge_pages(self):
        for tensors, headers in [(2, 0), (1500, 2)]:  # 4 KiB each, in both files
            self.model("m.safetensors", [("%04d" % i + "x" * 4000, "U8", [1], None) for i in range(tensors)])
            calls = self.trace("convert", "-f", "m.safetensors", "-o", "out.bpk")
            self.assertEqual(sum("MADV_HUGEPAGE" in call.arguments for call in calls), headers)


class Asking(Traced):
    def test_a_question_changes_nothing(self):
        self.model("m.safetensors")
        self.works("convert", "m.safetensors", "-o", "m.bpk")
        for words in [["plan", "m.safetensors", "-o", "out.bpk"], ["convert", "-n", "m.safetensors", "-o", "out.bpk"],
                      ["plan", "-f", "m.safetensors", "-o", "m.bpk"], ["inspect", "m.bpk"], ["ls", "m.bpk"],
                      ["diff", "m.safetensors", "m.bpk"], ["formats"]]:
            self.assertEqual(story_of(self.trace(*words)), [], words)


def why_not():
    """What keeps this test from running; None: nothing."""
    if "LLVM_PROFILE_FILE" in os.environ:
        return "a program that tells what of it has run writes files for that"
    if not shutil.which("strace"):
        return None if os.environ.get("CI") == "true" else "there is no strace"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, text=True)
    return tried.stderr.splitlines()[0] if tried.returncode else None


if __name__ == "__main__":
    if why := why_not():
        print("skipped: " + why)
        sys.exit(77)
    support.main()
