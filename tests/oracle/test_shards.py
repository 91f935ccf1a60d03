#!/usr/bin/env python3
"""Sets of files: decant beside huggingface_hub's own function, which deals tensors to files, and the reference writer."""

import importlib.metadata
import importlib.util
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("DECANT_BUILD", SOURCE / "build" / "dev"))
DECANT = os.environ.get("DECANT", str(BUILD / "decant"))
sys.path.insert(0, str(SOURCE / "tests" / "cli"))

import support

try:
    import numpy
    import safetensors.numpy
except ImportError: # it is run again by a Python that has them
    numpy = None


def load_reference():
    """The function alone: the package around it wants a dozen others, for the network."""
    files = importlib.metadata.files("huggingface_hub")
    path = next(f for f in files if str(f).endswith("serialization/_base.py")).locate()
    package = types.ModuleType("hub")
    package.logging, package.__path__ = logging, []
    logging.get_logger = logging.getLogger
    inner = types.ModuleType("hub.serialization")
    inner.__path__ = []
    sys.modules.update({"hub": package, "hub.serialization": inner})
    spec = importlib.util.spec_from_file_location("hub.serialization._base", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.split_state_dict_into_shards_factory


class Shards(unittest.TestCase):
    def test_models_are_dealt_as_the_hub_deals_them(self):
        split = load_reference()
        for seed in range(25):
            rng = random.Random(seed)
            cap = rng.choice([1, 50, 100, 1000])
            lens = [rng.choice([0, 1, 10, cap - 1, cap, cap + 1, 3 * cap, rng.randrange(2 * cap)]) for _ in range(rng.randrange(1, 30))]
            # the order of the names is that of the data where all have one dtype
            tensors = [("t%02d" % i, "U8", [n], None) for i, n in enumerate(lens)]
            with tempfile.TemporaryDirectory() as folder:
                support.write_model(os.path.join(folder, "m.safetensors"), tensors)
                order = json.loads(self.decant(folder, "ls", "--json", "m.safetensors"))["files"][0]["tensors"]
                want = split({t["name"]: int(t["bytes"]) for t in order}, get_storage_size=lambda n: n,
                             filename_pattern="model{suffix}.safetensors", max_shard_size=cap)
                self.decant(folder, "convert", "-q", "m.safetensors", "-o", "model.safetensors", "--max-shard-size", str(cap))
                names = sorted(n for n in os.listdir(folder) if n.startswith("model") and n.endswith(".safetensors"))
                self.assertEqual(names, sorted(want.filename_to_tensors), seed)
                if want.is_sharded:
                    with open(os.path.join(folder, "model.safetensors.index.json"), "rb") as f:
                        text = f.read().decode()
                    index = {"metadata": want.metadata, "weight_map": want.tensor_to_filename}
                    self.assertEqual(text, json.dumps(index, indent=2, sort_keys=True) + "\n", seed)

    def test_sets_that_the_hub_deals_and_the_reference_writes_are_read_whole(self):
        split = load_reference()
        for seed in range(10):
            rng = random.Random(seed)
            tensors = {"layer.%d.%s" % (i, rng.choice("ab")): numpy.frombuffer(rng.randbytes(4 * n), "<f4")
                       for i, n in enumerate(rng.choices(range(200), k=rng.randrange(2, 30)))}
            variant = rng.choice(["", ".fp16"])
            dealt = split(tensors, get_storage_size=lambda t: t.nbytes, filename_pattern="model%s{suffix}.safetensors" % variant,
                          max_shard_size=rng.choice([100, 1000, 5000]))
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "set"))
                for name, names in dealt.filename_to_tensors.items():
                    safetensors.numpy.save_file({t: tensors[t] for t in names}, os.path.join(folder, "set", name), {"format": "pt"})
                index = "model.safetensors.index%s.json" % variant
                if dealt.is_sharded: # as transformers' save_pretrained writes it
                    with open(os.path.join(folder, "set", index), "w", encoding="utf-8") as f:
                        f.write(json.dumps({"metadata": dealt.metadata, "weight_map": dealt.tensor_to_filename}, indent=2, sort_keys=True) + "\n")
                safetensors.numpy.save_file(tensors, os.path.join(folder, "one.safetensors"), {"format": "pt"})
                first = min(dealt.filename_to_tensors)
                for name in ["set", "set/" + first] + ["set/" + index] * dealt.is_sharded:
                    self.decant(folder, "diff", name, "one.safetensors")
                    noted = json.loads(self.decant(folder, "inspect", "--json", name))["files"][0]["notes"]
                    self.assertEqual([n for n in noted if n["key"] == "odd"], [])
                self.decant(folder, "convert", "set", "-o", "again.safetensors")
                with open(os.path.join(folder, "again.safetensors"), "rb") as a, open(os.path.join(folder, "one.safetensors"), "rb") as b:
                    self.assertEqual(a.read(), b.read(), seed)

    def decant(self, folder, *words):
        return subprocess.run([DECANT, *words], cwd=folder, check=True, capture_output=True).stdout


if __name__ == "__main__":
    venv = os.environ.get("DECANT_VENV", sys.executable)
    if os.path.abspath(venv) != os.path.abspath(sys.executable):
        os.execv(venv, [venv, *sys.argv])
    try:
        importlib.metadata.files("huggingface_hub")
    except importlib.metadata.PackageNotFoundError:
        print("shards: no huggingface_hub to compare with: skipped")
        sys.exit(77)
    unittest.main()
