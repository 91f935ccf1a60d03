"""Real file systems that share blocks: what an output takes of the disk, and how it got there."""

import json
import os
import subprocess
import support
import tempfile

SIZE = 20_000_000
MAKE = {"btrfs": ["mkfs.btrfs", "-q"], "xfs": ["mkfs.xfs", "-q"], "ext4": ["mkfs.ext4", "-q"]}


def used(folder):
    os.sync()
    space = os.statvfs(folder)
    return (space.f_blocks - space.f_bfree) * space.f_frsize


class Sharing(support.Case):
    def mounted(self, kind):
        """A new file system of this kind with a model on it; its folder."""
        place = tempfile.TemporaryDirectory(prefix="decant-image-")
        self.addCleanup(place.cleanup)
        image, folder = os.path.join(place.name, "image"), os.path.join(place.name, "folder")
        os.mkdir(folder)
        with open(image, "wb") as f:
            f.truncate(400 << 20)
        try:
            subprocess.run(MAKE[kind] + [image], check=True, capture_output=True)
            subprocess.run(["mount", "-o", "loop", image, folder], check=True, capture_output=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as why:
            self.skipTest("no %s can be mounted here: %s" % (kind, why))
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        data = os.urandom(SIZE)
        half = SIZE // 2
        support.write_model(os.path.join(folder, "m.safetensors"),
                            [("a", "U8", [half], data[:half]), ("b", "U8", [SIZE - half], data[half:])])
        return folder

    def convert(self, folder, *flags):
        """How the input came into the output, and how much more of the disk is used."""
        before = used(folder)
        document = json.loads(self.works("convert", folder + "/m.safetensors", "-o", folder + "/out.bpk", "--json", *flags).out)
        self.works("diff", folder + "/m.safetensors", folder + "/out.bpk", "-q")
        return document["inputs"][0], used(folder) - before

    def test_blocks_are_shared_where_the_layout_is_made_for_it(self):
        for kind in ["btrfs", "xfs"]:
            with self.subTest(kind):
                folder = self.mounted(kind)
                source, grown = self.convert(folder, "--layout", "congruent")
                self.assertEqual(source["route"], "clone")
                self.assertGreaterEqual(int(source["shared"]), SIZE - 2 * 4096)
                self.assertLess(grown, SIZE // 4)
                source, grown = self.convert(folder, "-f")
                self.assertEqual((source["route"], source["shared"]), ("copy", "0"))

    def test_a_disk_without_room_for_a_copy_has_room_for_shared_blocks(self):
        folder = self.mounted("xfs")
        space = os.statvfs(folder)
        with open(folder + "/filler", "wb") as f:
            os.posix_fallocate(f.fileno(), 0, space.f_bavail * space.f_frsize - SIZE // 2)
        self.refused(4, "convert", folder + "/m.safetensors", "-o", folder + "/out.bpk", says="no room")
        self.convert(folder, "--layout", "congruent")

    def test_where_blocks_cannot_be_shared_it_is_said(self):
        folder = self.mounted("ext4")
        source, grown = self.convert(folder, "--layout", "congruent")
        self.assertEqual(source["reason"], "the file system cannot share blocks")
        self.assertGreaterEqual(grown, SIZE)


if __name__ == "__main__":
    support.main()
