#!/usr/bin/env python3
"""decant beside the crates that define the formats, and Python's safetensors.

On models that the oracle makes up, on the golden files and on a real model, each writes what the other writes and reads what
the other reads. With NIGHTLY=1 on 10,000 models.
"""

import collections
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

try:
    import safetensors
    import safetensors.numpy
except ImportError:
    safetensors = None

SOURCE = Path(__file__).resolve().parent.parent.parent
DATA = SOURCE / "tests" / "data"
BUILD = Path(os.environ.get("DECANT_BUILD", SOURCE / "build" / "dev"))
DECANT = os.environ.get("DECANT", str(BUILD / "decant"))
ORACLE = os.environ.get("DECANT_ORACLE")
# Models made up, a seed each time. The last two of 64 have 10,000 tensors.
COUNTS = [128] + [62] * (160 if os.environ.get("NIGHTLY") else 2)
SEED = int(os.environ.get("SEED", 1))

# What both formats have, under their names in each.
BOTH = {name: name for name in "F64 F32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8".split()}
BOTH["BOOL"] = {"Bool": "Native"}
# What only Burnpack has, and how safetensors stores it.
KEPT = {"Flex32": "F32", "Bool(U8)": "U8", "Bool(U32)": "U32"}
# What NumPy has.
NUMPY = {"F64": "f8", "F32": "f4", "F16": "f2", "I64": "i8", "I32": "i4", "I16": "i2", "I8": "i1", "U64": "u8", "U32": "u4",
         "U16": "u2", "U8": "u1", "BOOL": "?", "C64": "c8"}


def decant(*words):
    done = subprocess.run([DECANT, *map(str, words), "--json", "--allow", "limits"], capture_output=True)
    if done.stderr or not done.stdout:
        raise AssertionError(f"{words} ends with {done.returncode} and says {done.stderr.decode()}")
    return json.loads(done.stdout)


def oracle(commands):
    """The answer to each of these commands."""
    lines = "".join("\t".join(map(str, command)) + "\n" for command in commands)
    done = subprocess.run([ORACLE, "batch"], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def dtype_name(dtype):
    """What decant calls a dtype of a spec or a report."""
    if isinstance(dtype, str):
        return dtype
    if "QFloat" in dtype:
        return "QFloat"
    return "BOOL" if dtype["Bool"] == "Native" else "Bool(%s)" % dtype["Bool"]


def place(tensor):
    """Where a tensor of a safetensors file stands in the order of the data."""
    begin, end = tensor["data_offsets"]
    return begin, begin != end, tensor["name"].encode()


def parts(path):
    """Of a safetensors file: metadata and tensors as pairs in their order, the length of the header, the data."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length], object_pairs_hook=list)
    metadata = header.pop(0)[1] if header and header[0][0] == "__metadata__" else None
    return metadata, header, length, content[8 + length:]


class Live(unittest.TestCase):
    maxDiff = 2000

    def same_file(self, ours, theirs, unordered=False):
        """Byte for byte; `unordered`: but for the order of the metadata, which is sorted in ours."""
        if not unordered:
            if ours.read_bytes() != theirs.read_bytes():
                self.fail(f"{ours.name} differs from the reference's")
            return
        (metadata, *rest), (their_metadata, *their_rest) = parts(ours), parts(theirs)
        self.assertEqual(metadata, sorted(their_metadata, key=lambda pair: pair[0].encode()), ours.name)
        if rest != their_rest:
            self.fail(f"{ours.name} differs from the reference's in more than the order of its metadata")

    def check_reading(self, reports):
        """What decant says of these files is what the reference says of them."""
        listed, inspected = decant("ls", *reports)["files"], decant("inspect", *reports)["files"]
        self.assertEqual(len(listed), len(reports))
        for (path, report), ls, inspect in zip(reports.items(), listed, inspected):
            with self.subTest(file=path.name):
                self.assertIsNone(ls["error"])
                self.check_tensors(ls["tensors"], report)
                self.check_summary(inspect, report)
                self.check_values(inspect["values"], report)
                self.assertEqual(inspect["size"], str(path.stat().st_size))

    def check_tensors(self, found, report):
        wanted = []
        for tensor in report["tensors"]:
            row = {"name": tensor["name"], "dtype": dtype_name(tensor["dtype"]), "shape": tensor["shape"],
                   "bytes": str(tensor["len"])}
            if tensor.get("param_id") is not None:
                row["id"] = tensor["param_id"]
            wanted.append(row)
        if "header_len" in report:
            order = {tensor["name"]: place(tensor) for tensor in report["tensors"]}
            self.assertEqual(found, sorted(wanted, key=lambda row: order[row["name"]]))
        else:
            self.assertEqual(sorted(found, key=lambda row: row["name"].encode()), wanted)

    def check_summary(self, inspect, report):
        tensors = report["tensors"]
        self.assertEqual(inspect["tensor_count"], len(tensors))
        self.assertEqual(inspect["data"], str(sum(tensor["len"] for tensor in tensors)))
        self.assertEqual(inspect["dtypes"], collections.Counter(dtype_name(tensor["dtype"]) for tensor in tensors))
        self.assertEqual(inspect["param_ids"], sum(tensor.get("param_id") is not None for tensor in tensors))

    def check_values(self, found, report):
        scalars, metadata = {}, {}
        for value in found:
            kind, text = value["type"], value["value"]
            if kind == "text":
                metadata[value["key"]] = text
            elif kind == "f64" and text.lstrip("-") == "nan":  # its bits are compared where it is written again
                self.assertRegex(report["scalars"][value["key"]]["Float"], "^[7f]f[f8-9a-e]|^[7f]ff")
                scalars[value["key"]] = report["scalars"][value["key"]]
            elif kind == "f64":
                scalars[value["key"]] = {"Float": struct.pack(">d", float(text)).hex()}
            else:
                scalars[value["key"]] = {{"bool": "Bool", "i64": "Int", "u64": "UInt"}[kind]: text}
        self.assertEqual(len(scalars) + len(metadata), len(found))
        self.assertEqual(metadata, report["metadata"] or {})
        self.assertEqual(scalars, report.get("scalars", {}))
        keys = [value["key"].encode() for value in found]
        self.assertEqual(keys, sorted(keys))

    def same(self, a, b, report):
        answer = decant("diff", a, b)
        self.assertIs(answer["same"], True, answer["differences"][:3])
        self.assertEqual(answer["tensor_count"], len(report["tensors"]))
        self.assertEqual(answer["bytes"], str(sum(tensor["len"] for tensor in report["tensors"])))

    def convert(self, source, out, *more):
        answer = decant("convert", source, "-o", out, *more)
        self.assertEqual(answer["exit"], 0, answer["error"])

    def refused(self, source, out, losses):
        """Nothing is lost without a word: the refusal counts what has no place."""
        answer = decant("convert", source, "-o", out)
        self.assertEqual((answer["exit"], answer["error"]["code"]), (3, "loss"), source)
        message = answer["error"]["message"]
        if len(losses) == 1:
            self.assertIn(f"has no place for {losses[0]}, first of '", message)
        else:
            self.assertEqual(set(re.split(r", | and ", message.split(" has no place for ")[1])), set(losses))
        self.assertFalse(out.exists())


def writable(metadata, tensors):
    """With neither a tensor nor a key, in metadata that is there, safetensors 0.8.0 writes what nobody reads."""
    return metadata if metadata or tensors else None


def counted(kinds):
    return [f"{count} {what}" + "s" * (count > 1) for what, count in kinds.items() if count]


def scalar_text(scalar):
    ((kind, value),) = scalar.items()
    return {"Int": "i64 %s", "UInt": "u64 %s", "Float": "f64 %s", "Bool": "bool %s"}[kind] % str(value).lower()


def kept(tensors, scalars, metadata):
    """The metadata of a safetensors file that is made of a Burnpack file with these tensors, in its order."""
    names = sorted((tensor["name"] for tensor in tensors), key=str.encode)
    place = {name: i for i, name in enumerate(names)}
    out = {}
    for key, text in (metadata or {}).items():
        ours = key in ("decant.order", "decant.added") or key.startswith(
            ("decant.id.", "decant.dtype.", "decant.scalar.", "decant.text."))
        out["decant.text." + key if ours else key] = text
    out.update(("decant.scalar." + key, scalar_text(scalar)) for key, scalar in scalars.items())
    out.update(("decant.id." + tensor["name"], tensor["param_id"]) for tensor in tensors if "param_id" in tensor)
    out.update(("decant.dtype." + tensor["name"], dtype_name(tensor["dtype"])) for tensor in tensors
               if dtype_name(tensor["dtype"]) in KEPT)
    if "format" not in out:
        out.update({"format": "pt", "decant.added": "format"})
    return out, ",".join(str(place[tensor["name"]]) for tensor in in_order_of_data(tensors))


def in_order_of_data(tensors):
    """Tensors without bytes that lie at one place stand by name: their file does not say which was first."""
    out, empty = [], []
    for tensor in tensors:
        if 0 in tensor["shape"]:
            empty.append(tensor)
        else:
            out += sorted(empty, key=lambda t: t["name"].encode()) + [tensor]
            empty = []
    return out + sorted(empty, key=lambda t: t["name"].encode())


def scratch():
    """Memory if there is enough, as saving waits for disks. None: the system's choice."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > 2 << 30 else None


class Model:
    """One that the oracle made: its spec, its file, and what the reader says of that."""

    def __init__(self, path, report):
        self.theirs, self.report = path, report
        self.spec = json.loads(path.with_suffix(".spec.json").read_text())
        self.is_safetensors = self.spec["format"] == "safetensors"
        self.is_unordered = "-manykeys" in path.name
        self.ours = path.parent / "ours" / path.name
        lengths = {tensor["name"]: tensor["len"] for tensor in report["tensors"]}
        for tensor in self.spec["tensors"]:
            tensor["len"] = lengths[tensor["name"]]


class Models(Live):
    """A folder of generated models; subclasses have a seed and a count."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="decant-live-", dir=scratch()))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        subprocess.run([ORACLE, "generate", str(cls.seed), str(cls.count), cls.folder], check=True)
        reports = [json.loads(line) for line in (cls.folder / "read.jsonl").read_text().splitlines()]
        cls.models = [Model(cls.folder / report["file"], report) for report in reports]
        cls.write([(model.spec, model.ours) for model in cls.models])

    @classmethod
    def write(cls, specs):
        """With decant, given values in another order than sorted."""
        lines = ""
        for spec, out in specs:
            out.parent.mkdir(exist_ok=True)
            spec = {**spec, "out": str(out)}
            for key in "metadata", "scalars":
                spec[key] = dict(reversed((spec.get(key) or {}).items()))
            lines += json.dumps(spec) + "\n"
        done = subprocess.run([BUILD / "tests" / "write_spec"], input=lines, capture_output=True, text=True, check=True)
        wrong = [(out.name, answer) for (_, out), answer in zip(specs, done.stdout.splitlines()) if answer]
        assert not wrong and done.stdout.count("\n") == len(specs), wrong

    def of(self, model):
        return self.subTest(model=model.theirs.name, seed=self.seed)

    def test_decant_writes_what_the_crates_write(self):
        for model in self.models:
            with self.of(model):
                if model.spec.get("metadata") == {} and model.is_safetensors:
                    # A model built by hand cannot say that its metadata is there and empty.
                    metadata, *rest = parts(model.theirs)
                    self.assertEqual(metadata, [])
                    ours = parts(model.ours)
                    self.assertEqual((ours[0], ours[1], ours[3]), (None, rest[0], rest[2]))
                else:
                    self.same_file(model.ours, model.theirs, model.is_unordered)

    def test_the_crates_read_what_decant_writes(self):
        answers = oracle(("read", model.ours) for model in self.models)
        for model, answer in zip(self.models, answers):
            with self.of(model):
                if model.spec.get("metadata") == {} and model.is_safetensors:
                    answer.update(metadata={}, header_len=model.report["header_len"])
                self.assertEqual(answer, model.report)

    def test_decant_reads_what_the_crates_read(self):
        self.check_reading({model.theirs: model.report for model in self.models})

    def test_what_decant_reads_it_writes_again_byte_for_byte(self):
        for model in self.models:
            with self.of(model):
                again = self.folder / ("again" + model.theirs.suffix)
                self.convert(model.theirs, again, "-f")
                self.same_file(again, model.theirs, model.is_unordered)

    def test_a_conversion_gives_what_the_other_crate_writes_and_comes_back_without_a_loss(self):
        """On what both formats have."""
        common = [Common(model, self.folder / "common") for model in self.models]
        (self.folder / "common").mkdir()
        commands = [command for model in common for command in model.commands()]
        for command, answer in zip(commands, oracle(commands)):
            self.assertNotIn("error", answer, command)
        kept_some = 0
        for model in common:
            with self.subTest(model=model.name, seed=self.seed):
                bpk, back = model.path("ours.bpk"), model.path("ours.safetensors")
                self.convert(model.path("safetensors"), bpk)
                self.same_file(bpk, model.path("bpk"))
                self.convert(model.path("bpk"), back)
                self.same_kept(back, model.path("pt.safetensors"), model.is_unordered)
                self.same(model.path("safetensors"), bpk, model.spec)
                if model.keeps:
                    full = model.path("ours-full.safetensors")
                    self.convert(model.path("full.bpk"), full)
                    self.same_kept(full, model.path("kept.safetensors"), True)
                    again = model.path("again.bpk")
                    self.convert(full, again)
                    self.same_file(again, model.path("full.bpk"))
                    kept_some += 1
        self.assertGreater(kept_some, 10)

    def same_kept(self, ours, theirs, unordered):
        """But for the order of empty tensors, which only decant cares about."""
        metadata, *rest = parts(ours)
        if any(key == "decant.order" for key, _ in metadata):
            metadata = [pair for pair in metadata if pair[0] != "decant.order"]
            self.assertEqual(metadata, sorted(parts(theirs)[0], key=lambda pair: pair[0].encode()))
            self.assertEqual([rest[0], rest[2]], [parts(theirs)[1], parts(theirs)[3]])
        else:
            self.same_file(ours, theirs, unordered)

    def test_burnpack_comes_back_from_safetensors_to_the_byte(self):
        came_back = 0
        for model in filter(lambda model: not model.is_safetensors, self.models):
            if any(dtype_name(tensor["dtype"]) == "QFloat" for tensor in model.spec["tensors"]):
                continue
            with self.of(model):
                there, back = self.folder / "there.safetensors", self.folder / "back.bpk"
                self.convert(model.theirs, there, "-f")
                self.convert(there, back, "-f")
                self.same_file(back, model.theirs)
                self.check_there(there, model)
                came_back += 1
        self.assertGreater(came_back, 0)

    def check_there(self, path, model):
        """What the reference finds in such a file."""
        (answer,) = oracle([("read", path)])
        wanted, order = kept(model.spec["tensors"], model.spec.get("scalars", {}), model.spec.get("metadata"))
        self.assertEqual(answer["metadata"].pop("decant.order", order), order)
        self.assertEqual(answer["metadata"], wanted)
        stored = {}
        for tensor in model.report["tensors"]:
            dtype = dtype_name(tensor["dtype"])
            stored[tensor["name"]] = (KEPT.get(dtype, dtype), tensor["shape"], tensor["sha256"])
        self.assertEqual({t["name"]: (t["dtype"], t["shape"], t["sha256"]) for t in answer["tensors"]}, stored)

    def test_tensors_of_a_dtype_that_the_other_format_lacks_are_refused(self):
        refused = 0
        for model in self.models:
            with self.of(model):
                other = self.folder / ("other.bpk" if model.is_safetensors else "other.safetensors")
                names = [dtype_name(tensor["dtype"]) for tensor in model.spec["tensors"]]
                lacking = collections.Counter(name for name in names if name not in BOTH and name not in KEPT)
                if lacking:
                    losses = {f"{name} tensor": count for name, count in lacking.items()}
                    self.refused(model.theirs, other, counted(losses))
                    refused += 1
        self.assertGreater(refused, 20)

    @unittest.skipUnless(safetensors, "no safetensors for Python")
    def test_python_reads_what_decant_writes(self):
        for model in filter(lambda model: model.is_safetensors, self.models):
            with self.of(model):
                found = dict(safetensors.deserialize(model.ours.read_bytes()))
                wanted = {tensor["name"]: tensor for tensor in model.report["tensors"]}
                self.assertEqual(found.keys(), wanted.keys())
                for name, tensor in found.items():
                    self.assertEqual((tensor["dtype"], tensor["shape"]), (wanted[name]["dtype"], wanted[name]["shape"]))
                    self.assertEqual(hashlib.sha256(tensor["data"]).hexdigest(), wanted[name]["sha256"])

    @unittest.skipUnless(safetensors, "no safetensors for Python")
    def test_arrays_that_python_saves_come_back_through_decant(self):
        largest = 0
        for model in filter(lambda model: model.is_safetensors, self.models):
            with self.of(model):
                arrays = {}
                with safetensors.safe_open(model.ours, "numpy") as opened:
                    for tensor in model.report["tensors"]:
                        if tensor["dtype"] in NUMPY:
                            array = arrays[tensor["name"]] = opened.get_tensor(tensor["name"])
                            self.assertEqual(list(array.shape), tensor["shape"])
                            self.assertEqual(array.dtype, NUMPY[tensor["dtype"]])
                            self.assertEqual(hashlib.sha256(array.tobytes()).hexdigest(), tensor["sha256"])
                saved, again = self.folder / "python.safetensors", self.folder / "again.safetensors"
                safetensors.numpy.save_file(arrays, saved, writable(model.spec.get("metadata"), arrays))
                self.convert(saved, again, "-f")
                self.same_file(again, saved, model.is_unordered)
                largest = max(largest, len(arrays))
        self.assertGreater(largest, 4000 if self.count > 62 else 10)


class Common:
    """What both formats can hold of a model, as files that the crates write."""

    def __init__(self, model, folder):
        self.folder, self.name = folder, model.theirs.stem
        from_bpk = {dtype_name(theirs): ours for ours, theirs in BOTH.items()}
        tensors = [{**tensor, "dtype": from_bpk[dtype_name(tensor["dtype"])]} for tensor in model.spec["tensors"]
                   if dtype_name(tensor["dtype"]) in from_bpk]
        order = "BOOL U8 I8 I16 U16 F16 BF16 I32 U32 F32 F64 I64 U64".split()
        tensors.sort(key=lambda tensor: (-order.index(tensor["dtype"]), tensor["name"].encode()))
        plain = [{key: value for key, value in tensor.items() if key != "param_id"} for tensor in tensors]
        metadata, scalars = writable(model.spec.get("metadata"), tensors), model.spec.get("scalars", {})
        (loaders, _), (all_kept, _) = kept(plain, {}, metadata), kept(tensors, scalars, metadata)
        self.spec = {"tensors": plain}
        self.is_unordered = len(loaders) > 1
        self.keeps = scalars or any("param_id" in tensor for tensor in tensors)
        self.specs = {
            "safetensors": {"format": "safetensors", "tensors": plain, "metadata": metadata},
            "pt.safetensors": {"format": "safetensors", "tensors": plain, "metadata": loaders},
            "kept.safetensors": {"format": "safetensors", "tensors": plain, "metadata": all_kept},
            "bpk": {"format": "bpk", "tensors": self.for_bpk(plain), "metadata": metadata},
            "full.bpk": {"format": "bpk", "tensors": self.for_bpk(tensors), "metadata": metadata, "scalars": scalars},
        }

    @staticmethod
    def for_bpk(tensors):
        return [{**tensor, "dtype": BOTH[tensor["dtype"]]} for tensor in tensors]

    def path(self, ending):
        return self.folder / f"{self.name}.{ending}"

    def commands(self):
        for ending, spec in self.specs.items():
            self.path(ending + ".spec.json").write_text(json.dumps(spec))
            yield "write", self.path(ending + ".spec.json"), self.path(ending)


def todays(spec):
    """The spec of a file of an older Burn, in the forms of today."""
    if spec.pop("writer").endswith("0.19.0"):
        spec["metadata"] = {**spec.get("metadata", {}), "format": "burnpack", "producer": "burn", "version": "0.19.0"}
    for tensor in spec["tensors"]:
        if tensor["dtype"] == "Bool":
            tensor["dtype"] = {"Bool": "Native"}
        elif "QFloat" in tensor["dtype"]:
            scheme = tensor["dtype"]["QFloat"]
            level, param = scheme.pop("level"), scheme.pop("param")
            size = None if level == "Tensor" else level["Block"]["storage"][:level["Block"]["len"]]
            scheme["tensor"] = None if size else param
            scheme["block"] = {"size": size, "dtype": param} if size else None
    return spec


class Golden(Live):
    """The files of tests/data."""

    def test_decant_reads_what_the_crates_read(self):
        reports = [json.loads(line) for line in (DATA / "read.jsonl").read_text().splitlines()]
        reports = {DATA / report["file"]: report for report in reports if not report["file"].startswith("legacy-")}
        self.assertGreater(len(reports), 20)
        self.check_reading(reports)

    def test_files_of_older_versions_become_what_todays_crate_writes(self):
        legacy = sorted(DATA.glob("legacy-*.bpk"))
        self.assertEqual(len(legacy), 5)
        with tempfile.TemporaryDirectory() as folder:
            for path in legacy:
                with self.subTest(file=path.name):
                    ours, theirs, spec = (Path(folder, path.stem + end) for end in (".bpk", ".theirs.bpk", ".spec.json"))
                    self.convert(path, ours)
                    spec.write_text(json.dumps(todays(json.loads(path.with_suffix(".spec.json").read_text()))))
                    (answer,) = oracle([("write", spec, theirs)])
                    self.assertNotIn("error", answer)
                    self.same_file(ours, theirs)


class Real(Live):
    """silero-vad."""

    def test_a_real_model_becomes_burnpack_and_comes_back(self):
        with tempfile.TemporaryDirectory() as folder:
            model, bpk, back = (Path(folder, name) for name in ("model.safetensors", "model.bpk", "back.safetensors"))
            self.fetch(model)
            self.convert(model, bpk)
            self.convert(bpk, back)
            before, between, after = oracle(("read", path) for path in (model, bpk, back))
            self.assertGreater(len(before["tensors"]), 10)
            self.check_reading({model: before, bpk: between})
            for report in between, after:
                self.assertEqual(self.content(report), self.content(before))
            self.same(model, bpk, before)
            self.same(model, back, before)

    def fetch(self, model):
        """From the registry, once for all builds."""
        kept = Path(ORACLE).with_name("real.safetensors")
        if not kept.exists():
            fetched = subprocess.run([SOURCE / "tests" / "oracle" / "real_model.sh", model], capture_output=True, text=True)
            if fetched.returncode:
                self.skipTest(fetched.stderr.strip())
            scratch = kept.with_suffix(f".{os.getpid()}")
            shutil.copyfile(model, scratch)
            scratch.replace(kept)
        shutil.copyfile(kept, model)

    @staticmethod
    def content(report):
        return [[tensor[key] for key in ("name", "dtype", "shape", "sha256")] for tensor in report["tensors"]]


def load_tests(loader, tests, pattern):
    suite = unittest.TestSuite()
    for seed, count in enumerate(COUNTS, SEED):
        case = type(f"Models{seed}", (Models,), {"seed": seed, "count": count})
        suite.addTests(loader.loadTestsFromTestCase(case))
    for case in Golden, Real:
        suite.addTests(loader.loadTestsFromTestCase(case))
    return suite


if __name__ == "__main__":
    if ORACLE is None:
        print("live: no DECANT_ORACLE to compare with: skipped")
        sys.exit(77)
    venv = os.environ.get("DECANT_VENV", sys.executable)
    if os.path.abspath(venv) != os.path.abspath(sys.executable):
        os.execv(venv, [venv, *sys.argv])
    unittest.main()
