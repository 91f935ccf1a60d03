"""Which file may include which: the folders of src/ stand in an order, and the program sees public headers only."""

import re
import sys
from pathlib import Path

# A folder includes itself and those before it.
ORDER = "base io bytes device codec model transform plan format output pour survey api".split()

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def complaint(root, file, bracket, name):
    """Why `file` may not include `name`, or None."""
    parts = file.relative_to(root).parts
    if bracket == "<":
        if name.startswith("decant/") and parts[0] == "cli" and name != "decant/decant.h":
            return "the program includes <decant/decant.h> alone"
        return None
    beside = file.parent / name
    target = beside if beside.is_file() else root / "src" / name
    if not target.is_file():
        return "is neither beside it nor under src/"
    target = target.resolve().relative_to(root).parts
    if parts[0] == "include":
        return None if target[:2] == ("include", "decant") else "a public header includes public headers alone"
    if parts[0] == "cli":
        return None if target[0] == "cli" else "the program includes <decant/decant.h> and its own headers alone"
    if target[0] != "src":
        return "the library includes its own headers alone"
    if target[1] not in ORDER:
        return f"{target[1]}/ has no place in the order"
    if ORDER.index(target[1]) > ORDER.index(parts[1]):
        return f"{target[1]}/ comes after {parts[1]}/"
    # Formats share what is in format/ itself; one does not know another.
    if target[1] == "format" and len(target) == 4 and parts[:3] != target[:3] and parts[1:3] != ("format", "registry.c"):
        return "a format stays in its folder"
    return None


def complaints(root):
    """All of them, each one line; and how many includes were looked at."""
    found, seen = [], 0
    for folder in ("include", "src", "cli"):
        for file in sorted((root / folder).rglob("*.[ch]")):
            parts = file.relative_to(root).parts
            if folder == "src" and parts[1] not in ORDER:
                found.append(f"{'/'.join(parts)}: is in no folder of the order")
                continue
            for bracket, name in INCLUDE.findall(file.read_text()):
                seen += 1
                why = complaint(root, file, bracket, name)
                if why:
                    found.append(f"{'/'.join(parts)}: includes {name}: {why}")
    return found, seen


if __name__ == "__main__":
    lines, count = complaints(Path(sys.argv[1]).resolve())
    print("\n".join(lines) if lines else f"{count} includes, all in order")
    sys.exit(bool(lines))
