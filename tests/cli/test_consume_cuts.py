"""
Inputs that are given up, on real file systems whose power is cut: what a disk may hold then, mounted and recovered.

A save runs on a disk that logs its writes and flushes (tests/crash/blockdisk.c). For a moment in it an image is made of all
that was flushed and of a part of what was written since: each write kept, dropped or torn between sectors. The file system
mounts that with whatever it does itself after a crash, decant recovers, and everything has to be as it was, or as it was to be. The
recovery runs on such a disk, too, and is cut in the same way.
"""

import ctypes
import os
import random
import struct
import subprocess
import tempfile
import time

import images
import support

MIB = 1 << 20
STATES = int(os.environ.get("STATES", 30))  # of each kind
FIRST = int(os.environ.get("FIRST", 1))  # seed of the first save
EACH = 30  # states of a save
KINDS = [kind for kind in os.environ.get("KINDS", "ext4 xfs btrfs").split()]
# KIND:SEED:STATE, as a failure prints it: the same scene, and the same choices in a log that may differ a little.
ONLY = os.environ.get("CUT")
BLOCKDISK = os.path.join(os.environ.get("DECANT_BUILD", ""), "tests", "blockdisk")
BOOT = "/proc/sys/kernel/random/boot_id"

# The smallest that each can be made, and of what size a disk tears writes: a superblock of btrfs has 4096 bytes.
SIZE = {"ext4": 32 * MIB, "xfs": 64 * MIB, "btrfs": 120 * MIB}
MAKE = {"ext4": [], "xfs": ["--unsupported"], "btrfs": []}
SECTOR = {"ext4": 512, "xfs": 512, "btrfs": 4096}


def run(*words):
    return subprocess.run(words, check=True, capture_output=True)


def keep_mounts_apart():
    """What is mounted from here on is this process's and its children's, and is gone with them. Whether that can be had."""
    namespace, private = 0x20000, 0x44000  # CLONE_NEWNS; MS_REC | MS_PRIVATE
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(namespace) == 0 and libc.mount(b"none", b"/", None, private, None) == 0


def copy(source, to):
    """Without its holes."""
    with open(source, "rb") as f, open(to, "wb") as g:
        size = os.fstat(f.fileno()).st_size
        g.truncate(size)
        at = 0
        while at < size:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing more
                break
            end = os.lseek(f.fileno(), at, os.SEEK_HOLE)
            g.seek(at)
            os.lseek(f.fileno(), at, os.SEEK_SET)
            while at < end:
                at += os.sendfile(g.fileno(), f.fileno(), at, end - at)


class Log:
    """The writes of a disk, as (at, data), and flushes, as None."""

    def __init__(self, path):
        self.path = path

    def length(self):
        return os.path.getsize(self.path)

    def entries(self, upto):
        """And how many of them there are in each part of the log that ends at one of the lengths `upto`."""
        with open(self.path, "rb") as f:
            log = f.read(upto[-1])
        found, counts, at = [], [], 0
        while at < len(log):
            counts += [len(found)] * sum(1 for end in upto[len(counts):] if end <= at)
            kind, place, size = struct.unpack_from("<QQQ", log, at)
            found.append((place, log[at + 24:at + 24 + size]) if kind == 1 else None)
            at += 24 + size
        return found, counts + [len(found)] * (len(upto) - len(counts))


class Cuts(images.Case):
    def setUp(self):
        super().setUp()
        if not os.access(BLOCKDISK, os.X_OK):
            self.skipTest("built without libfuse3, which tests/crash/blockdisk.c needs")
        if not os.access("/dev/fuse", os.W_OK) or not keep_mounts_apart():
            self.skipTest("it takes /dev/fuse and the right to mount")
        place = tempfile.TemporaryDirectory(prefix="decant-cuts-", dir="/dev/shm")
        self.addCleanup(place.cleanup)
        self.place = place.name
        for name in ("fuse", "mounted"):
            os.mkdir(self.at(name))
        self.disk = self.at("mounted")
        self.addCleanup(subprocess.run, ["umount", self.disk], capture_output=True)
        self.boot(1)
        run("mount", "--bind", self.at("boot"), BOOT)

    def at(self, name):
        return os.path.join(self.place, name)

    def boot(self, number):
        """Another one after each power cut: the system may give its disks other numbers."""
        support.write(self.at("boot"), b"00000000-0000-0000-0000-%012d\n" % number)

    def mount(self, disk):
        run("mount", "-o", "loop", disk, self.disk)

    def unmount(self, folder=None):
        for _ in range(100):
            if subprocess.run(["umount", folder or self.disk], capture_output=True).returncode == 0:
                return
            time.sleep(0.05)
        self.fail("%s is busy" % (folder or self.disk))

    # --- a save ------------------------------------------------------------------------------------------------------

    def start_over(self, kind, seed):
        """An image with inputs on it; the command; and what is known of the files."""
        chance = random.Random(seed)
        with open(self.at("image"), "wb") as f:
            f.truncate(SIZE[kind])
        run(*images.MAKE[kind], *MAKE[kind], self.at("image"))
        self.mount(self.at("image"))
        paths = images.write_shards(self.disk, chance.choice([5, 8]) * MIB, chance.choice([1, 2, 3]), seed=seed)
        for i, path in enumerate(paths):
            os.chmod(path, chance.choice([0o644, 0o600]))
            os.utime(path, ns=(10 ** 18, 10 ** 18 + seed * 1000 + i))
        out = self.disk + "/out." + chance.choice(["safetensors", "bpk"])
        flags = ["--layout", "congruent"] if kind != "ext4" and chance.random() < 0.4 else []
        if chance.random() < 0.3:  # one is replaced
            support.write_model(out)
            flags.append("-f")
        command = ["convert", *paths, "-o", out, "--consume", *flags]
        self.works("convert", *paths, "-o", self.path("out" + out[-4:]), *flags, "--to",
                   "burnpack" if out.endswith("bpk") else "safetensors", "-f")
        if chance.random() < 0.8:  # many small batches
            self.fill(2 * MIB)
            document = self.check_document(self.decant("plan", *command[1:], "--json"))
            self.fill(int(document["room"] if document["ok"] else document["error"]["expected"]) + MIB)
        known = {"old": self.facts(), "new": images.digest(self.path("out" + out[-4:])), "out": out}
        self.unmount()
        return chance, command, known

    def fill(self, left):
        """Takes all room but for that many bytes, by a file that takes none of the image."""
        with open(self.disk + "/.filler", "w") as f:
            run("sync", "-f", self.disk)
            if images.free(self.disk) > left:
                os.posix_fallocate(f.fileno(), 0, images.free(self.disk) - left)
        run("sync", "-f", self.disk)

    def facts(self):
        found = {}
        for entry in os.scandir(self.disk):
            if entry.is_file() and not entry.name.startswith("."):
                status = entry.stat()
                found[entry.path] = (images.digest(entry.path), status.st_ino, status.st_mode, status.st_mtime_ns)
        return found

    def film(self, *words):
        """Runs decant on a logged disk. The writes and flushes, and which of them came before it began and until it ended."""
        process = subprocess.Popen([BLOCKDISK, self.at("image"), self.at("log"), self.at("fuse")])
        try:
            for _ in range(500):
                if os.path.exists(self.at("fuse/disk")):
                    break
                time.sleep(0.01)
            log = Log(self.at("log"))
            self.mount(self.at("fuse/disk"))
            began = log.length()
            result = self.decant(*words)
            ended = log.length()
            self.unmount()
        finally:
            subprocess.run(["umount", self.at("fuse")], capture_output=True)
            process.wait()
        entries, counts = log.entries([began, ended])
        return result, entries, counts

    # --- a power cut -------------------------------------------------------------------------------------------------

    def torn(self, chance, kind, entry):
        """What a disk that loses its power makes of a write: sectors of it, any or those at its beginning or end."""
        at, data = entry
        sectors = [(at + i, data[i:i + SECTOR[kind]]) for i in range(0, len(data), SECTOR[kind])]
        cut, way = chance.randrange(len(sectors) + 1), chance.randrange(3)
        return sectors[:cut] if way == 0 else sectors[cut:] if way == 1 else \
            [sector for sector in sectors if chance.random() < 0.5]

    def kept(self, chance, kind, window):
        """Of the writes since the last flush those that a power cut keeps, in any order."""
        way = chance.randrange(6)
        if way == 0 or not window:
            return []
        if way == 1:
            return window
        if way == 2:
            return [chance.choice(window)]
        if way == 3:
            left_out = chance.randrange(len(window))
            return window[:left_out] + window[left_out + 1:]
        if way == 4:
            return [entry for entry in window if chance.random() < 0.5]
        return [part for entry in window for part in
                ([entry] if chance.random() < 0.4 else self.torn(chance, kind, entry) if chance.random() < 0.7 else [])]

    def cuts(self, chance, kind, base, entries, counts, most):
        """Makes images of moments between those two, one after the other, out of the one of before."""
        moments = sorted(chance.randint(*counts) for _ in range(most))
        at = 0
        for moment in moments:
            last = max((i for i in range(at, moment) if entries[i] is None), default=at)
            with open(base, "r+b") as f:
                for entry in entries[at:last]:
                    if entry:
                        os.pwrite(f.fileno(), entry[1], entry[0])
            at = last
            copy(base, self.at("image"))
            with open(self.at("image"), "r+b") as f:
                for entry in self.kept(chance, kind, [entry for entry in entries[last:moment] if entry]):
                    os.pwrite(f.fileno(), entry[1], entry[0])
            yield

    def check_lasts(self, known, base, entries, upto):
        """What was said to be done is, of what was flushed alone."""
        copy(base, self.at("image"))
        last = max(i for i in range(upto) if entries[i] is None)
        with open(self.at("image"), "r+b") as f:
            for entry in entries[:last]:
                if entry:
                    os.pwrite(f.fileno(), entry[1], entry[0])
        self.mount(self.at("image"))
        try:
            found = {path: facts[0] for path, facts in self.facts().items()}
            found.pop(known["out"] + ".decant-journal", None)  # it goes last, and nobody waits for that
            self.assertEqual(found, {known["out"]: known["new"]})
        finally:
            self.unmount()

    # --- and then ----------------------------------------------------------------------------------------------------

    def check_whole(self, known):
        """What opens under a name that a loader would try is whole (I2, I11)."""
        for path, facts in self.facts().items():
            if path in known["old"] and path != known["out"]:
                self.assertEqual(facts[0], known["old"][path][0], path)
            elif path == known["out"]:
                self.assertIn(facts[0], [known["new"], known["old"].get(path, [None])[0]])

    def words(self, way):
        return ["recover", "--" + way, self.disk]

    def go(self, known, way):
        result = self.decant(*self.words(way))
        if result.code == 5 and "No space left" in result.err:  # what was freed and lost is not free any more
            self.check_whole(known)
            os.remove(self.disk + "/.filler")
            self.without_room += 1
            result = self.decant(*self.words(way))
        return result

    def recover(self, known, way):
        """To the end, or the other way where it is too early or too late for this one."""
        ways = {"new", "old"}
        self.check_whole(known)
        has_journal = any(name.endswith(".decant-journal") for name in os.listdir(self.disk))
        result = self.go(known, way)
        if result.code == 4 and "cannot be" in result.err:
            result = self.go(known, "undo" if way == "resume" else "resume")
        elif has_journal and result.code == 0:
            ways = {"new"} if way == "resume" else {"old"}
        self.assertIn(result.code, [0, 3], result)  # 3: there is nothing left of it
        self.assertIn(self.end(known), ways)

    def mount_and_recover(self, known, way):
        self.mount(self.at("image"))
        try:
            self.recover(known, way)
        finally:
            self.unmount()

    def end(self, known):
        """Whether all is "new" or "old"; what is neither fails."""
        found = self.facts()
        if not known["drains"]:  # no journal: the next save sweeps what is left
            found = {path: facts for path, facts in found.items() if not path.endswith(".part")}
        new = found.get(known["out"], [None])[0] == known["new"]
        if new and not known["drains"]:  # without a journal: the inputs, which are whole, go when it is in place
            del found[known["out"]]
            self.assertLessEqual(found.items(), known["old"].items())
        elif new:
            self.assertEqual(list(found), [known["out"]])
        else:
            self.assertEqual(found, known["old"])
        self.seen.add("new" if new else "old")
        return "new" if new else "old"

    def cut_recovery(self, chance, kind, known, way):
        """Recovers on a disk that loses its power, too."""
        before = self.at("before-recovery")
        copy(self.at("image"), before)
        _, entries, counts = self.film(*self.words(way))
        if counts[0] == counts[1]:
            return 0
        for i, _ in enumerate(self.cuts(chance, kind, before, entries, counts, 3)):
            self.boot(3 + i)
            self.mount_and_recover(known, chance.choice(["resume", "undo"]))
        return 3

    def cut_save(self, kind, seed, most):
        """States of one save: how many, and how many of these of its recovery."""
        chance, command, known = self.start_over(kind, seed)
        self.boot(1)
        copy(self.at("image"), self.at("before"))
        result, entries, counts = self.film(*command, "--json")
        known["drains"] = any(source["route"] == "drain" for source in self.check_document(result)["inputs"])
        nested = 0
        with self.subTest("%s:%d, when it had ended" % (kind, seed)):
            self.check_lasts(known, self.at("before"), entries, counts[1])
        for i, _ in enumerate(self.cuts(chance, kind, self.at("before"), entries, counts, most)):
            own = random.Random("%d:%d" % (seed, i))
            self.boot(2)
            if ONLY and ONLY.split(":")[2] != str(i):
                continue
            with self.subTest("CUT=%s:%d:%d" % (kind, seed, i)):
                way = own.choice(["resume", "undo"])
                if own.random() < 0.1:
                    nested += self.cut_recovery(own, kind, known, way)
                    continue
                self.mount_and_recover(known, way)
        return most, nested

    def test_whatever_a_power_cut_leaves_ends_as_it_was_or_as_it_was_to_be(self):
        self.seen = set()
        for kind in KINDS if not ONLY else ONLY.split(":")[:1]:
            self.without_room = 0
            done, nested, seed = 0, 0, FIRST if not ONLY else int(ONLY.split(":")[1])
            while done < STATES:
                more = self.cut_save(kind, seed, EACH)
                done, nested, seed = done + more[0], nested + more[1], seed + 1
                if ONLY:
                    break
            print("%s: %d states, and %d of their recoveries; %d went on when there was room" %
                  (kind, done, nested, self.without_room), flush=True)
        if not ONLY:
            self.assertEqual(self.seen, {"old", "new"})


if __name__ == "__main__":
    support.main()
