"""What the tests of the command line share: running decant in a folder of its own, and small model files."""

import hashlib
import json
import os
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest

DECANT = os.path.abspath(os.environ.get("DECANT", "build/dev/decant"))
SOURCE = os.path.abspath(os.environ.get("DECANT_SOURCE", "."))

BITS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "I16": 16, "I8": 8, "U64": 64, "U32": 32,
        "U16": 16, "U8": 8, "BOOL": 8, "C64": 64, "F8_E5M2": 8}


def byte_count(dtype, shape):
    count = 1
    for extent in shape:
        count *= extent
    return count * BITS[dtype] // 8


def safetensors(tensors, metadata=None):
    """The bytes of a safetensors file. `tensors` are (name, dtype, shape, data), data None for a pattern of bytes."""
    header, body = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, data in tensors:
        size = byte_count(dtype, shape)
        if data is None:
            data = bytes((i * 7 + len(name)) & 1 if dtype == "BOOL" else (i * 7 + len(name)) & 0xFF for i in range(size))
        assert len(data) == size, (name, len(data), size)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(body), len(body) + size]}
        body += data
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def write_model(path, tensors=None, metadata=None):
    if tensors is None:
        tensors = [("weight", "F32", [3, 4], None), ("bias", "BF16", [4], None), ("step", "I64", [], None)]
    write(path, safetensors(tensors, metadata))


def write_sparse(path, size, count=4):
    """A model of `size` bytes of zeros that takes no room."""
    each = size // count // 4096 * 4096
    header = {"t%d" % i: {"dtype": "U8", "shape": [each], "data_offsets": [i * each, (i + 1) * each]} for i in range(count)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.truncate(8 + len(text) + each * count)


def with_unknown_key(source, path, pair):
    """A Burnpack file of the repository with one more key, in CBOR, in its outermost map, which is small."""
    with open(os.path.join(SOURCE, source), "rb") as f:
        file = f.read()
    size = struct.unpack("<I", file[6:10])[0]
    data = file[(10 + size + 255) // 256 * 256:]
    metadata = bytes([file[10] + 1]) + file[11:10 + size] + pair
    head = file[:6] + struct.pack("<I", len(metadata)) + metadata
    write(path, head + bytes(-len(head) % 256) + data)


def freeze(process):
    """Stops a process, and waits until all of its threads stand still: a call of the system that is under way ends first."""
    process.send_signal(signal.SIGSTOP)
    tasks = "/proc/%d/task" % process.pid
    while process.poll() is None and any(state(os.path.join(tasks, task)) not in "TZ" for task in os.listdir(tasks)):
        time.sleep(0.0005)


def state(task):
    try:
        with open(os.path.join(task, "stat")) as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"  # it has ended meanwhile


class Result:
    def __init__(self, code, out, err):
        self.code, self.raw_out, self.raw_err = code, out, err
        self.err = err.decode("utf-8")

    @property
    def out(self):
        return self.raw_out.decode("utf-8")

    def __repr__(self):
        return "exit %s\nstdout: %s\nstderr: %s" % (self.code, self.raw_out.decode("utf-8", "replace"), self.err)

    @property
    def document(self):
        return json.loads(self.out)


class Case(unittest.TestCase):
    """Each test has an empty folder, where decant runs."""

    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="decant-cli-")
        self.addCleanup(self.remove_folder)

    def remove_folder(self):
        for path, names, _ in os.walk(self.folder):
            for name in names:
                if not os.path.islink(os.path.join(path, name)):
                    os.chmod(os.path.join(path, name), 0o700)
        shutil.rmtree(self.folder)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def model(self, name="m.safetensors", tensors=None, metadata=None):
        write_model(self.path(name), tensors, metadata)
        return name

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def start(self, *words, env=None, **more):
        environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8", "TERM": "xterm"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LLVM_PROFILE_FILE"):
            if name in os.environ:
                environment[name] = os.environ[name]
        environment.update(env or {})
        more = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, **more}
        return subprocess.Popen([more.pop("program", DECANT), *words], env=environment, **more)

    def decant(self, *words, **more):
        process = self.start(*words, **more)
        out, err = process.communicate(timeout=300)
        return Result(process.returncode, out or b"", err or b"")

    def works(self, *words, **more):
        result = self.decant(*words, **more)
        self.assertEqual(result.code, 0, result)
        return result

    def refused(self, code, *words, says=(), begun=False, **more):
        """
        Fails with `code`, in one line that names a remedy; says the same under --json; leaves every file as it was. Unless it
        was `begun`, nothing was made in the folder meanwhile either.
        """
        before = self.tree(begun)
        result = self.decant(*words, **more)
        self.assertEqual(result.code, code, result)
        self.assertRegex(result.err, r"\Adecant: [^\n]*[^\n ]; [^\n ][^\n]*\n\Z")
        self.assertNotIn("bug of decant", result.err)
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, result.err)
        self.assertEqual(self.tree(begun), before)

        as_json = self.decant(*words, "--json", **more)
        self.assertEqual(as_json.code, code, as_json)
        self.assertEqual(as_json.err, "")
        self.check_document(as_json)
        self.assertTrue(as_json.document["error"]["hint"])
        self.assertEqual(self.tree(begun), before)
        return result

    def faulty(self):
        """An environment in which calls of the system can be made to fail: tests/cli/faulty.c says how."""
        if not shutil.which("cc"):
            self.skipTest("there is no compiler")
        os.makedirs(self.path("tools"), exist_ok=True)
        shim = self.path("tools", "faulty.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, os.path.join(SOURCE, "tests/cli/faulty.c"), "-ldl"], check=True)
        if self.decant("--version", env={"LD_PRELOAD": shim}).code:
            self.skipTest("this build of decant does not bear LD_PRELOAD")
        return {"LD_PRELOAD": shim}

    def check_document(self, result):
        document = result.document
        self.assertEqual(document["schema"], "decant/1")
        self.assertEqual(document["exit"], result.code if result.code >= 0 else 128 - result.code)
        self.assertIs(document["ok"], result.code == 0)
        if document["error"] is not None:
            self.assertLessEqual({"code", "file", "tensor", "found", "expected", "hint"}, set(document["error"]))
        return document

    def tree(self, begun=False):
        """Everything in the folder: names, kinds, modes, times, contents; and its own time, which tells of scratch files."""
        found = {} if begun else {".": os.lstat(self.folder).st_mtime_ns}
        for path, folders, files in os.walk(self.folder):
            for name in folders + files:
                full = os.path.join(path, name)
                status = os.lstat(full)
                entry = [status.st_mode, status.st_ino, status.st_mtime_ns, status.st_size]
                if stat.S_ISREG(status.st_mode) and status.st_size < 1 << 24 and os.access(full, os.R_OK):
                    with open(full, "rb") as f:
                        entry.append(hashlib.sha256(f.read()).hexdigest())
                found[os.path.relpath(full, self.folder)] = entry
        return found

    def names(self):
        return sorted(os.listdir(self.folder))


def main():
    if not os.access(DECANT, os.X_OK):
        sys.exit("there is no program at %s; set DECANT" % DECANT)
    unittest.main(verbosity=1)
