"""Inputs that are given up, on real file systems, and what is left when that is stopped: killed, watched, without room."""

import errno
import os
import random
import shutil
import signal
import subprocess

import images
import support

NIGHTLY = os.environ.get("NIGHTLY") == "1"
MIB = 1 << 20
KINDS = os.environ.get("KINDS", "ext4 xfs btrfs tmpfs").split()
KILLS = os.path.join(os.environ.get("DECANT_BUILD", "build/dev"), "tests/crash_kills")
RUNS = int(os.environ.get("RUNS", 100))
FIRST = int(os.environ.get("FIRST", 1))  # seed of the first
WATCHED = 10


class Stopped(images.Case):
    """What is stopped, at any time and again while it is recovered, ends as it was or as it was to be."""

    def start_over(self, folder, seed):
        """Inputs and what is known of them; the output that they are for."""
        chance = random.Random(seed)
        os.makedirs(folder + "/in")
        os.makedirs(folder + "/out")
        paths = images.write_shards(folder + "/in", chance.choice([1, 4, 12]) * MIB, chance.choice([1, 4]), seed=seed)
        for i, path in enumerate(paths):
            os.chmod(path, chance.choice([0o644, 0o600, 0o640]))
            os.utime(path, ns=(10 ** 18, 10 ** 18 + seed * 1000 + i))
        out = folder + "/out/out." + chance.choice(["safetensors", "bpk"])
        if chance.random() < 0.3:  # one is replaced
            images.write_shards(folder + "/out", MIB, 1)
            os.rename(folder + "/out/model-00001-of-00001.safetensors", out)
        self.works("convert", *paths, "-o", self.path(os.path.basename(out)), "-f")
        return chance, paths, out, {
            "old": self.facts([*paths, out]),
            "new": images.digest(self.path(os.path.basename(out))),
        }

    def facts(self, paths):
        found = {}
        for path in paths:
            try:
                with open(path, "rb") as f:
                    status = os.fstat(f.fileno())
                    found[path] = (images.digest_of(f), status.st_ino, status.st_mode, status.st_mtime_ns)
            except FileNotFoundError:
                pass
        return found

    def check_whole(self, paths, out, known):
        """What opens under a name that a loader would try is whole (I2, I11)."""
        for path, facts in self.facts([*paths, out]).items():
            whole = [known["old"][path][0]] if path in known["old"] else []
            self.assertIn(facts[0], [*whole, known["new"]] if path == out else whole, path)

    def state(self, folder, paths, out, known):
        names = sorted(os.path.join(folder, part, name) for part in ["in", "out"] for name in os.listdir(os.path.join(folder, part)))
        if names == [out] and images.digest(out) == known["new"]:
            return "new"
        return "old" if names == sorted(known["old"]) and self.facts(names) == known["old"] else names

    def recover(self, out, way):
        """To the end, or the other way where it is too early or too late for this one."""
        result = self.decant("recover", "--" + way, out)
        if result.code == 4 and "cannot be" in result.err:
            result = self.decant("recover", "--undo" if way == "resume" else "--resume", out)
        self.assertIn(result.code, [0, 3], result)  # 3: there is nothing left of it
        return result

    def test_killed_at_any_time_it_ends_as_it_was_or_as_it_was_to_be(self):
        for kind in KINDS:
            with self.subTest(kind):
                folder = self.mounted(kind)
                process = self.start(program=os.path.abspath(KILLS), cwd=support.SOURCE, stderr=subprocess.STDOUT,
                                     env={"KILLS": "%s,%d,%d" % (folder, FIRST, RUNS), "DECANT": support.DECANT})
                out = process.communicate()[0].decode()
                self.assertEqual(process.returncode, 0, out)
                print(kind, *(line for line in out.splitlines() if " runs, " in line))

    def test_whoever_opens_an_input_or_the_output_meanwhile_finds_it_whole(self):
        for kind in KINDS:
            folder, opened = self.mounted(kind), 0
            for seed in range(WATCHED):
                with self.subTest(kind, seed=seed):
                    _, paths, out, known = self.start_over(folder, seed)
                    process = self.start("convert", *paths, "-o", out, "--consume", "-f")
                    while process.poll() is None:
                        self.check_whole(paths, out, known)
                        opened += 1
                    _, err = process.communicate()
                    # who has it open in the wrong moment stops it
                    self.assertEqual(self.state(folder, paths, out, known), "new" if process.returncode == 0 else "old", err)
                for name in ["in", "out"]:
                    shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
            self.assertGreater(opened, WATCHED)

    def fill_when_moving(self, process, folder, left):
        """Stops it when it has begun to give up, has another take the room but for `left` bytes, and lets it go on."""
        while process.poll() is None and not any(name.endswith(".moving") for name in os.listdir(folder + "/in")):
            pass
        support.freeze(process)
        with open(folder + "/filler", "wb", buffering=0) as f:
            try:
                while images.free(folder) > left:
                    f.write(random.randbytes(min(MIB, images.free(folder) - left)))
                os.fsync(f.fileno())
            except OSError as why:
                self.assertEqual(why.errno, errno.ENOSPC)
        process.send_signal(signal.SIGCONT)

    def with_inputs(self, folder):
        """The inputs of a save that takes room; its output, and what is known of them."""
        for name in ["in", "out"]:
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
            os.makedirs(os.path.join(folder, name))
        paths, out = images.write_shards(folder + "/in", 160 * MIB, 4), folder + "/out/out.bpk"
        self.works("convert", *paths, "-o", self.path("out.bpk"), "-f")
        os.sync()
        return paths, out, {"old": self.facts(paths), "new": images.digest(self.path("out.bpk"))}

    def end(self, folder, paths, out, known, process, seen):
        """When a save has met the end of the room, or not: there is room again, and what it left is recovered, one way or the other."""
        _, err = process.communicate()
        self.check_whole(paths, out, known)
        self.assertIn(process.returncode, [0, 4, 5], err)
        for filler in [name for name in os.listdir(folder) if "filler" in name] if process.returncode == 5 else []:
            os.remove(os.path.join(folder, filler))
        os.sync()
        if process.returncode == 5:
            self.recover(out, "resume" if sum(seen.values()) % 2 else "undo")
        state = self.state(folder, paths, out, known)
        self.assertIn(state, ["new"] if process.returncode == 0 else ["old"] if process.returncode == 4 else ["old", "new"], err)
        seen[process.returncode, state] = seen.get((process.returncode, state), 0) + 1

    def test_without_room_half_way_it_is_undone_or_can_go_on_and_nothing_is_lost(self):
        for kind in KINDS:
            folder, seen = self.mounted(kind), {}
            for left in range(0, 100) if NIGHTLY else [0]:
                with self.subTest(kind, left=left):
                    paths, out, known = self.with_inputs(folder)
                    process = self.start("convert", *paths, "-o", out, "--consume")
                    self.fill_when_moving(process, folder, left * MIB)
                    self.end(folder, paths, out, known, process, seen)
                    if os.path.exists(folder + "/filler"):
                        os.remove(folder + "/filler")
            print(kind, "filled half way, exit status and state:", seen)
            self.assertTrue(any(code for code, _ in seen), seen)

    def test_whatever_room_there_is_it_is_enough_or_refused_and_nothing_is_lost(self):
        for kind in KINDS:
            folder, seen = self.mounted(kind), {}
            for left in range(1, 101) if NIGHTLY else [1, 60]:
                with self.subTest(kind, left=left):
                    if (0, "new") in seen or left == 1:
                        for name in os.listdir(folder):
                            if name.startswith(".filler"):
                                os.remove(os.path.join(folder, name))
                        paths, out, known = self.with_inputs(folder)
                    self.leave_free(folder, left * MIB, MIB if kind == "btrfs" else images.UNIT)
                    self.end(folder, paths, out, known, self.start("convert", *paths, "-o", out, "--consume"), seen)
            print(kind, "filled before, exit status and state:", seen)
            self.assertTrue((4, "old") in seen and (0, "new") in seen, seen)


if __name__ == "__main__":
    support.main()
