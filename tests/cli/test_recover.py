"""recover: what a save of several files has left."""

import os

import support


class Recover(support.Case):
    def test_nothing_is_interrupted_in_an_empty_folder_or_at_a_model(self):
        self.model()
        for words in [[], ["."], ["m.safetensors"], ["none.safetensors"], ["--resume"], ["--undo", "."]]:
            result = self.works("recover", *words)
            place = "at " + words[-1] if words and words[-1] != "--resume" else "here"
            self.assertEqual((result.out, result.err), ("", "nothing is interrupted %s\n" % place))
            self.assertEqual(self.works("recover", "-q", *words).err, "")
            self.assertEqual(self.check_document(self.works("recover", "--json", *words))["saves"], [])

    def test_both_directions_at_once_are_wrong_usage(self):
        self.refused(2, "recover", "--resume", "--undo", says="exclude each other")
        self.refused(2, "recover", "a", "b", says="[PATH]")

    def test_a_folder_that_is_not_there_is_told(self):
        self.refused(4, "recover", "none/m.safetensors", says="none")

    def test_what_had_not_begun_is_shown_and_undone(self):
        support.write(self.path("m.decant-journal"), bytes(1024))
        shown = self.decant("recover")
        self.assertEqual(shown.code, 5)
        self.assertTrue(shown.out.startswith("m.decant-journal: interrupted before anything was written; nothing is lost\n"))
        self.assertIn("decant recover --undo m.decant-journal", shown.out)
        self.refused(4, "recover", "--resume", says="cannot be finished")
        self.assertEqual(self.works("recover", "--undo", "m.decant-journal").err,
                         "m.decant-journal: undone, all is as it was before\n")
        self.assertEqual(self.names(), [])

    def test_a_file_that_only_has_the_name_of_a_journal_is_left_alone(self):
        support.write(self.path("m.decant-journal"), b"a letter to a friend, which is longer than a cell of a journal\n" * 20)
        self.refused(4, "recover", says="no journal")
        self.refused(4, "recover", "--undo", says="no journal")

    def test_a_journal_that_others_can_write_to_is_not_believed(self):
        support.write(self.path("m.decant-journal"), bytes(1024))
        os.chmod(self.path("m.decant-journal"), 0o666)
        self.refused(4, "recover", "--undo", says="not to be believed")

    def test_what_is_wrong_with_a_journal_names_the_journal(self):
        name = "o.safetensors.index.json.decant-journal"
        self.model()
        support.write(self.path(name), b"garbage")
        self.refused(4, "recover", says=name + ": this is no journal")
        self.refused(4, "convert", "m.safetensors", "-o", "o.safetensors", "--max-shard-size", "4",
                     says=name + ": this is no journal")


if __name__ == "__main__":
    support.main()
