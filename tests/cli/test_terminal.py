"""What a terminal shows and a pipe does not."""

import fcntl
import os
import pty
import signal
import struct
import termios
import time

import support


class Terminal(support.Case):
    def hold_up(self, process):
        """Stops a save where it has begun to write, for longer than a bar takes to be drawn."""
        while not any(name.endswith(".part") for name in self.names()) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        process.send_signal(signal.SIGCONT)

    def on_terminal(self, *words, columns=100, which=("stdout", "stderr"), slowly=False, **more):
        """Runs decant on a terminal of its own; gives the exit status and what the terminal got."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = self.start(*words, **{name: theirs for name in which}, **more)
        os.close(theirs)
        if slowly:
            self.hold_up(process)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError: # the other end is closed
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()
        return process.wait(), shown.decode().replace("\r\n", "\n")

    def big(self):
        support.write_sparse(self.path("big.safetensors"), 1 << 26)
        return ["convert", "-f", "big.safetensors", "-o", "big.bpk"]

    def test_columns_are_aligned(self):
        self.model("m.safetensors", [("a", "F32", [30, 40], None), ("longer.name", "BF16", [2], None)])
        code, shown = self.on_terminal("ls", "m.safetensors")
        self.assertEqual((code, shown), (0, "a            F32   [30, 40]  4,800\n"
                                            "longer.name  BF16  [2]           4\n"))

    def test_a_bar_shows_how_far_how_fast_and_how_long_and_then_goes(self):
        code, shown = self.on_terminal(*self.big(), slowly=True)
        self.assertEqual(code, 0)
        self.assertRegex(shown, r"\r\x1b\[Kbig\.bpk \x1b\[32m#*\.+\x1b\[0m +\d+ %  [0-9.]+ [kMG]?B(ytes)? of 67\.1 MB  [0-9.]+ ([kMG]?B|bytes)/s  [0-9.]+ (s|min) left")
        self.assertRegex(shown, r"\r\x1b\[Ksaved big\.bpk: [^\n\x1b]*\n\Z")
        for frame in shown.split("\r\x1b[K")[1:-1]:
            self.assertLess(len(frame.replace("\x1b[32m", "").replace("\x1b[0m", "")), 100)

    def test_no_color_is_honoured(self):
        _, shown = self.on_terminal(*self.big(), slowly=True, env={"NO_COLOR": "1"})
        self.assertIn(" left", shown)
        self.assertNotRegex(shown, r"\x1b\[[0-9;]*m")

    def test_a_narrow_terminal_gets_the_percentage_alone(self):
        _, shown = self.on_terminal(*self.big(), slowly=True, columns=30)
        self.assertRegex(shown, r"\r\x1b\[K +\d+ %\r")
        self.assertNotIn("left", shown)

    def test_no_bar_is_drawn_where_none_is_wanted(self):
        for words, more in [(["-q"], {}), (["--json"], {}), ([], {"env": {"TERM": "dumb"}}), ([], {"which": ("stdout",)})]:
            code, shown = self.on_terminal(*self.big(), *words, slowly=True, **more)
            self.assertEqual(code, 0)
            self.assertNotIn("\x1b", shown)
            self.assertNotIn("left", shown)


if __name__ == "__main__":
    support.main()
