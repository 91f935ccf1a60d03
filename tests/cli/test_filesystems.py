"""Real file systems that share blocks: what an output takes of the disk, and how it got there."""

import json
import os

import images
import support

SIZE = 20_000_000


def used(folder):
    os.sync()
    return images.used(folder)


class Sharing(images.Case):
    def mounted(self, kind):
        """A new file system of this kind with a model on it; its folder."""
        folder = super().mounted(kind)
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
