"""What lint.py takes and what it does not."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import lint  # noqa: E402

LIST = """
# A comment.
lintian ebbtide-* no-bug not in Debian
rpmlint ebbtide-agent no-group EL 9 has none
"""


class Judge(unittest.TestCase):
    def setUp(self):
        self.entries = lint.accepted(LIST)

    def test_what_is_listed_is_accepted(self):
        said = "N: hints\nW: ebbtide-lab: no-bug [x]\n"
        self.assertEqual(lint.judge("lintian", said, self.entries), [])
        said = "ebbtide-agent.x86_64: W: no-group\n 1 packages checked\n"
        self.assertEqual(lint.judge("rpmlint", said, self.entries), [])

    def test_what_is_not_listed_is_refused(self):
        said = "W: ebbtide-lab: no-bug\nE: ebbtide-lab: no-copyright-file\n"
        self.assertEqual(
            lint.judge("lintian", said, self.entries),
            ["E: ebbtide-lab: no-copyright-file"],
        )
        # The tag of another package, and of another tool.
        said = "ebbtide-agent.x86_64: W: no-group\nebbtide-lab.x86_64: E: no-group\n"
        self.assertEqual(
            lint.judge("rpmlint", said, self.entries), ["ebbtide-lab.x86_64: E: no-group"]
        )
        said = "W: other: no-bug\nW: ebbtide-lab: no-bug\n"
        self.assertEqual(lint.judge("lintian", said, self.entries), ["W: other: no-bug"])

    def test_an_entry_that_nothing_needs_is_refused(self):
        self.assertEqual(
            lint.judge("lintian", "", self.entries),
            ["not needed any more: lintian ebbtide-* no-bug"],
        )

    def test_an_entry_needs_a_reason(self):
        with self.assertRaisesRegex(ValueError, "line 1 is no tool"):
            lint.accepted("lintian ebbtide-* no-bug")
        with self.assertRaisesRegex(ValueError, "line 2 is no tool"):
            lint.accepted("\nshellcheck a b reason")

    def test_the_list_in_use_is_well_formed(self):
        path = pathlib.Path(lint.__file__).with_name("lint-accepted.txt")
        self.assertTrue(lint.accepted(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    unittest.main()
