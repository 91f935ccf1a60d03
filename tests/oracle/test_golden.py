#!/usr/bin/env python3
"""The oracle named by DECANT_ORACLE writes and reads the golden files exactly as they lie in tests/data."""

import filecmp
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent / "data"


def main(oracle):
    expected = {json.loads(line)["file"]: line for line in (DATA / "read.jsonl").read_text().splitlines()}
    written = [name for name in expected if not name.startswith("legacy-")]
    with tempfile.TemporaryDirectory() as scratch:
        commands = [f"read\t{DATA / name}" for name in expected]
        commands += [f"write\t{DATA / name.rsplit('.', 1)[0]}.spec.json\t{scratch}/{name}" for name in written]
        answers = subprocess.run([oracle, "batch"], input="\n".join(commands) + "\n", capture_output=True, text=True,
                                 check=True).stdout.splitlines()
        wrong = [f"reads {name} otherwise" for name, answer in zip(expected, answers) if answer != expected[name]]
        for name in written:
            out = Path(scratch, name)
            if not out.exists() or not filecmp.cmp(DATA / name, out, shallow=False):
                wrong.append(f"writes {name} otherwise")
    if len(answers) != len(commands):
        wrong.append(f"gives {len(answers)} answers to {len(commands)} commands")
    for what in wrong:
        print(f"golden: {oracle} {what}", file=sys.stderr)
    print(f"golden: {len(expected)} read, {len(written)} written, {len(wrong)} wrong")
    return 1 if wrong or not written else 0


if __name__ == "__main__":
    if "DECANT_ORACLE" not in os.environ:
        print("golden: no DECANT_ORACLE to check: skipped")
        sys.exit(77)
    sys.exit(main(os.environ["DECANT_ORACLE"]))
