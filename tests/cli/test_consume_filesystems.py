"""Inputs that are given up, on real file systems: the room that it takes, and how they come into the output."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time
import unittest

import images
import support

NIGHTLY = os.environ.get("NIGHTLY") == "1"
MIB = 1 << 20
DATA = 2048 * MIB if NIGHTLY else 160 * MIB
KINDS = ["ext4", "xfs", "btrfs", "tmpfs"]
ENDINGS = ["safetensors", "bpk"]


def pairs(kinds):
    """Each file system with each format by night; by day each of them once."""
    return [(kind, ENDINGS[i % 2]) for i, kind in enumerate(kinds)] if not NIGHTLY else \
        [(kind, ending) for kind in kinds for ending in ENDINGS]


class Case(images.Case):
    def plan(self, paths, out, *flags):
        result = self.decant("plan", *paths, "-o", out, "--consume", "--json", *flags)
        return self.check_document(result)

    def weights(self, *paths):
        """What the tensors are, by name; wherever they lie."""
        lines = self.works("digest", *paths).out.splitlines()
        return sorted((line.split()[1], line.rsplit(":", 1)[1]) for line in lines if line.startswith("sha256"))

    def consume(self, folder, paths, out, *flags):
        """Gives the inputs up, to success. How many bytes more were used meanwhile than before."""
        before = self.weights(*paths)
        os.sync()
        base = images.used(folder)
        with images.Gauge(folder) as gauge:
            document = json.loads(self.works("convert", *paths, "-o", out, "--consume", "--json", *flags).out)
        self.assertEqual({source["route"] for source in document["inputs"]}, {"drain"})
        self.assertEqual([path for path in paths if os.path.exists(path)], [])
        self.assertEqual(self.weights(out), before)
        self.taken = int(document["taken"])
        return gauge.top - base


class Room(Case):
    def test_never_more_of_the_disk_is_used_than_was_planned(self):
        for kind, ending in pairs(["ext4", "xfs"]):  # btrfs frees when it likes: below
            with self.subTest(kind, ending=ending):
                folder = self.mounted(kind, 2 * DATA + 300 * MIB)
                paths, out = images.write_shards(folder, DATA, 16), folder + "/out." + ending
                room = int(self.plan(paths, out)["room"])
                self.assertLess(room, 2 * 64 * MIB + 2 * MIB)
                self.assertLessEqual(self.consume(folder, paths, out), room)
                self.assertTrue(64 * MIB <= self.taken <= room, self.taken)

    def test_btrfs_uses_no_more_than_was_planned_once_it_has_freed_what_it_was_given(self):
        """Which is at its next commit: the save is stopped again and again, and one is asked for."""
        folder = self.mounted("btrfs", 2 * DATA + 300 * MIB)
        paths, out = images.write_shards(folder, DATA, 16), folder + "/out.bpk"
        before, room = self.weights(*paths), int(self.plan(paths, out)["room"])
        os.sync()
        base, seen, attributes = images.used(folder), [], set()
        process = self.start("convert", *paths, "-o", out, "--consume")
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        while process.poll() is None:
            time.sleep(0.01)
            support.freeze(process)
            os.sync()
            seen.append(images.used(folder) - base)
            if os.path.exists(out + ".decant-journal"):  # a mark must need no room
                attributes.add(subprocess.run(["lsattr", out + ".decant-journal"], capture_output=True, text=True).stdout.split()[0])
            process.send_signal(signal.SIGCONT)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(attributes and all("C" in each for each in attributes), attributes)
        self.assertTrue(64 * MIB // 2 < max(seen) <= room, (room, seen))
        self.assertEqual(self.weights(out), before)

    def test_a_set_becomes_one_file_where_a_twentieth_of_it_is_free(self):
        for kind, ending in pairs(["ext4", "xfs"]):
            with self.subTest(kind, ending=ending):
                folder = self.mounted(kind, DATA + 300 * MIB)
                paths, out = images.write_shards(folder, DATA, 16), folder + "/out." + ending
                self.leave_free(folder, DATA // 20)
                self.assertLessEqual(self.consume(folder, paths, out), DATA // 20 + images.UNIT)

    def test_the_least_room_that_it_asks_for_is_enough_and_less_is_refused(self):
        for kind in KINDS:
            with self.subTest(kind):
                folder = self.mounted(kind, DATA + 300 * MIB)
                paths, out = images.write_shards(folder, DATA // 2, 8), folder + "/out.safetensors"
                step = MIB if kind == "btrfs" else images.UNIT
                self.leave_free(folder, MIB, step)
                least = int(self.plan(paths, out)["error"]["expected"])
                self.leave_free(folder, least - 2 * step, step)
                refused = self.decant("convert", *paths, "-o", out, "--consume")
                self.assertEqual(refused.code, 4, refused)
                self.assertIn("%d bytes free" % images.free(folder), refused.err)
                self.assertIn(str(least), refused.err)
                self.leave_free(folder, least + step, step)
                self.consume(folder, paths, out)

    def test_what_the_output_survives_is_told(self):
        for kind in KINDS:
            with self.subTest(kind):
                folder = self.mounted(kind)
                document = self.plan(images.write_shards(folder, MIB, 1), folder + "/out.bpk")
                self.assertEqual(document["output"]["survives"], "process" if kind == "tmpfs" else "power")

    def test_a_small_model_asks_for_little(self):
        folder = self.mounted("ext4")
        paths = images.write_shards(folder, MIB, 1)
        self.assertLess(int(self.plan(paths, folder + "/out.bpk")["room"]), 2 * MIB)
        paths = images.write_shards(folder, 3000, 3)
        self.assertLess(int(self.plan(paths, folder + "/out.bpk")["room"]), MIB // 2)

    def test_blocks_of_every_size_are_found_and_planned_with(self):
        for kind, make in [("ext4", ["-b", "1024"]), ("ext4", ["-O", "bigalloc", "-C", "65536"]),
                           ("ext4", ["-O", "bigalloc", "-C", "262144"]), ("xfs", ["-b", "size=1024"]),
                           ("xfs", ["-b", "size=16384"]), ("tmpfs", [])]:
            with self.subTest(kind, make=make):
                folder = self.mounted(kind, make=make)
                paths, out = images.write_shards(folder, 40 * MIB, 4), folder + "/out.bpk"
                document = json.loads(self.works("plan", *paths, "-o", out, "--consume", "--json").out)
                # what has larger units than a plan assumes takes more room: a few for each file
                more = 8 * 2 * 262144 if "262144" in make else 0
                self.assertLessEqual(self.consume(folder, paths, out), int(document["room"]) + more)


class Sharing(Case):
    def test_shared_inputs_are_gone_at_once(self):
        for kind in ["xfs", "btrfs"]:
            with self.subTest(kind):
                folder = self.mounted(kind)
                paths, out = images.write_shards(folder, 64 * MIB, 4), folder + "/out.bpk"
                before = self.weights(*paths)
                self.leave_free(folder, 4 * MIB, MIB)
                document = json.loads(self.works("convert", *paths, "-o", out, "--consume", "--layout", "congruent", "--json").out)
                for source in document["inputs"]:
                    self.assertEqual((source["route"], source["reason"]), ("clone", "blocks at the ends are copied"))
                self.assertEqual([path for path in paths if os.path.exists(path)], [])
                self.assertEqual(self.weights(out), before)

    @unittest.skipUnless(shutil.which("strace"), "there is no strace")
    def test_a_file_that_is_joined_takes_one_call_and_the_output_one_sync(self):
        for kind in ["xfs", "btrfs"]:
            with self.subTest(kind):
                folder = self.mounted(kind)
                parts = [folder + "/part%d" % i for i in range(3)]
                for i, part in enumerate(parts):
                    support.write(part, random.Random(i).randbytes(8 * MIB if i < 2 else 8 * MIB + 77))
                wanted = b"".join(self.read(part) for part in parts)
                os.sync()
                trace = self.path("trace")
                self.works("-f", "-o", trace, "-e", "trace=ioctl,fsync,fdatasync,pwrite64,copy_file_range", support.DECANT, "cat",
                           *parts, "-o", folder + "/whole", "--consume", program="strace",
                           env={"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"})  # that traces too
                calls = self.read("trace").decode()
                # one more each is the try on a file without a name
                self.assertEqual(len(re.findall("FICLONERANGE.* = 0", calls)), 2 * len(parts), calls)
                self.assertEqual(len(re.findall("(?:fsync|fdatasync)\\(", calls)), 3, calls)  # of the file, and its folder before and after
                self.assertEqual(os.listdir(folder), ["whole"])
                self.assertEqual(self.read(folder + "/whole"), wanted)

    def test_what_a_file_system_does_not_keep_is_found_out_by_the_save(self):
        for make in [["-m", "reflink=0"], ["-b", "size=16384"]]:
            with self.subTest(make=make):
                folder = self.mounted("xfs", make=make)
                paths, out = images.write_shards(folder, 8 * MIB, 2), folder + "/out.bpk"
                plan = self.plan(paths, out, "--layout", "congruent")
                self.assertEqual({source["route"] for source in plan["inputs"]}, {"clone"})
                self.consume(folder, paths, out, "--layout", "congruent")


class Remounted(images.Case):
    def mount_anew(self, folder):
        """From another device, as a disk that was pulled out and put in again: the system's number of it is another."""
        image = os.path.join(os.path.dirname(folder), "image")
        loop = subprocess.run(["losetup", "-f", "--show", image], check=True, capture_output=True, text=True).stdout.strip()
        self.addCleanup(subprocess.run, ["losetup", "-d", loop], check=True)  # once it is unmounted
        before = os.stat(folder).st_dev
        subprocess.run(["umount", folder], check=True)
        subprocess.run(["mount", loop, folder], check=True)
        self.assertNotEqual(os.stat(folder).st_dev, before)

    def test_what_is_mounted_anew_is_recovered_in_the_same_boot(self):
        for fault in ["renameat2 2", "unlinkat 1"]:  # the part has not got its name; the input is not gone
            with self.subTest(fault):
                folder = self.mounted("ext4", 64 << 20)
                [path], out = images.write_shards(folder, 4 * MIB, 1), folder + "/out.bpk"
                self.works("convert", path, "-o", self.path("out.bpk"), "-f")
                stopped = self.decant("convert", path, "-o", out, "--consume", env={"FAULT": fault, **self.faulty()})
                self.assertEqual((stopped.code, os.path.exists(path + ".moving")), (5, True), stopped)
                self.mount_anew(folder)
                self.works("recover", "--resume", out)
                self.assertEqual(sorted(os.listdir(folder)), ["lost+found", "out.bpk"])
                self.works("diff", self.path("out.bpk"), out)


if __name__ == "__main__":
    support.main()
